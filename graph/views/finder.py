"""Nodes by their names, and those that one could start from."""

from collections import Counter
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from documents.models import Chunk
from graph import services
from graph.forms import GraphState
from graph.models import Mention
from graph.reading.vertices import Ref, load
from graph.scopes import GraphScope, sight
from graph.views.shown import Shown, shown
from graph.views.whose import graph_page

FOUND = 40
OFFERED = 8
MENTIONED = 15
#: So many mentions are looked at for what is named most often: enough to start from.
LOOKED_AT = 20_000


@require_safe
@graph_page
def options(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What has `?find=` in its name, as options of a list."""
    name = asked(request)
    found = find(scope, name, limit=OFFERED) if name else ()
    return render(request, "graph/options.html", {"find": name, "found": found})


def asked(request: HttpRequest) -> str:
    """The name to look for. PostgreSQL's text holds no NUL."""
    return request.GET.get("find", "").replace("\0", "").strip()


def find(scope: GraphScope, name: str, *, limit: int = FOUND) -> Sequence[Shown]:
    """The nodes with `name` in theirs, those that fit best first."""
    found = services.find_nodes(scope=scope, text=name, limit=limit)
    return [shown(vertex, GraphState()) for vertex in found]


def most_mentioned(scope: GraphScope) -> Sequence[Shown]:
    """The nodes that the most documents name, with the number of these documents."""
    chunks = Chunk.objects.filter(workspace=scope.workspace_id, is_current=True)
    readable = chunks.visible_to(scope.user) if scope.user else chunks
    named = Mention.objects.filter(chunk__in=readable).values_list("node", "chunk__document")
    documents = Counter(node for node, _ in set(named[:LOOKED_AT]))
    often = sorted(documents, key=lambda node: (-documents[node], node))[:MENTIONED]
    vertices = load(sight(scope), [Ref("node", node) for node in often])
    found = ((vertices.get(Ref("node", node)), documents[node]) for node in often)
    return [shown(vertex, GraphState(), degree=number) for vertex, number in found if vertex]
