"""What the page of a document shows of the graph: what its passages name most often."""

from collections import Counter

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from common.errors import NotFound
from documents.models import Chunk, Document
from graph.forms import GraphState
from graph.models import Mention
from graph.reading.vertices import Ref, load
from graph.scopes import GraphScope, sight
from graph.views.shown import shown
from graph.views.whose import graph_page

SHOWN = 12
#: Kinds of mentions that tell nothing of what is in the text.
OWN = (Mention.Kind.SELF,)


@require_safe
@graph_page
def beside_document(request: HttpRequest, scope: GraphScope, pk: int) -> HttpResponse:
    """The nodes that a document names most often, as a part of its page."""
    document = Document.objects.visible_to(request.user).select_related("collection")
    found = document.filter(pk=pk, workspace=scope.workspace_id).first()
    if found is None:
        raise NotFound("There is no such document. It may have been deleted.")
    chunks = Chunk.objects.visible_to(request.user).filter(document=found.text_id)
    rows = Mention.objects.filter(chunk__in=chunks.values("pk")).exclude(kind__in=OWN)
    counts = Counter(dict(rows.values_list("node").annotate(times=Sum("count"))))
    often = sorted(counts, key=lambda node: (-counts[node], node))[:SHOWN]
    vertices = load(sight(scope), [Ref("node", node) for node in often])
    pairs = ((vertices.get(Ref("node", node)), counts[node]) for node in often)
    context = {
        "document": found,
        "nodes": [shown(vertex, GraphState(), degree=times) for vertex, times in pairs if vertex],
        "more": max(0, len(counts) - SHOWN),
    }
    return render(request, "graph/beside_document.html", context)
