"""Nodes by their names, and those that one could start from."""

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from graph import services
from graph.forms import GraphState
from graph.scopes import GraphScope
from graph.views.shown import Shown, shown
from graph.views.whose import graph_page

FOUND = 40
OFFERED = 8
BEST = 24


@require_safe
@graph_page
def options(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What has `?q=` in its name, as options of a list."""
    q = request.GET.get("q", "").replace("\0", "").strip()
    found = find(scope, q, limit=OFFERED) if q else ()
    return render(request, "graph/options.html", {"q": q, "found": found})


def find(scope: GraphScope, text: str, *, limit: int = FOUND) -> Sequence[Shown]:
    """The nodes with `text` in their name, those that fit best first."""
    found = services.find_nodes(scope=scope, text=text, limit=limit)
    return [shown(vertex, GraphState()) for vertex in found]
