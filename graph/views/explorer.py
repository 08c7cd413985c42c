"""The explorer: where to start, and the drawing around some nodes with its list and details."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from graph import services
from graph.forms import SIZES, GraphState
from graph.reading.arms import Grain
from graph.scopes import GraphScope
from graph.views.about import about_node
from graph.views.drawn import drawn, facets, left_out
from graph.views.finder import FOUND, asked, find, most_mentioned
from graph.views.shown import Shown, shown
from graph.views.whose import graph_page

ROWS = 50


@require_safe
@graph_page
def index(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """The drawing around `?id=`; what has `?find=` in its name; else where one could start."""
    state = GraphState.read(request.GET)
    if state.ids:
        context = _explored(scope, state)
        status = 200 if context["drawn"].nodes else 404
        return render(request, "graph/explore.html", context, status=status)
    return render(request, "graph/start.html", _start(scope, asked(request)))


@require_safe
@graph_page
def elements(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """The drawing of the same address, as cytoscape takes it."""
    shown = drawn(scope, GraphState.read(request.GET))
    response = JsonResponse({"elements": shown.elements})
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
@graph_page
def about(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What is known of one node, as a part of the page."""
    state = GraphState.read(request.GET)
    return render(request, "graph/about.html", {"state": state} | about_node(scope, state))


def _explored(scope: GraphScope, state: GraphState) -> dict[str, Any]:
    found = drawn(scope, state)
    first = (state.page - 1) * ROWS
    rows = found.nodes[first : first + ROWS]
    following = len(found.nodes) - first - len(rows)
    larger = next((size for size in SIZES if size > state.size), None) if found.is_cut else None
    return {
        "state": state,
        "drawn": found,
        "more": left_out(scope, state, found) if found.is_cut else None,
        "rows": rows,
        "following": max(following, 0),
        "previous_url": state.url(page=state.page - 1) if state.page > 1 else "",
        "following_url": state.url(page=state.page + 1) if following > 0 else "",
        "facets": facets(scope, state, found),
        "reaches": _reaches(state),
        "grains": _grains(state),
        "larger": larger,
        "larger_url": state.url(size=larger) if larger else "",
        "unfiltered_url": state.url(rels=(), labels=()),
        "closed_url": state.url(opened=()),
        "shown_url": state.url(hidden=()),
        "exports": {
            format: f"{state.url('graph_export')}&format={format}" for format in ("graphml", "json")
        },
    } | about_node(scope, state)


def _reaches(state: GraphState) -> list[dict[str, object]]:
    words = {1: "Neighbours", 2: "And theirs"}
    return [
        {"label": label, "url": state.url(hops=hops), "selected": hops == state.hops}
        for hops, label in words.items()
    ]


def _grains(state: GraphState) -> list[dict[str, object]]:
    words: dict[Grain, str] = {"document": "Documents", "chunk": "Passages"}
    return [
        {"label": label, "url": state.url(grain=grain), "selected": grain == state.grain}
        for grain, label in words.items()
    ]


def _start(scope: GraphScope, name: str) -> dict[str, Any]:
    if name:
        found = find(scope, name)
        return {"find": name, "found": found, "is_cut": len(found) == FOUND}
    counts = services.graph_statistics(scope=scope)
    return {
        "counts": counts,
        "labels": [
            Shown("", label, "node", (label,), number, GraphState())
            for label, number in counts.labels.items()
        ],
        "best": [
            shown(each.vertex, GraphState(), degree=each.degree) for each in counts.best_connected
        ],
        "mentioned": most_mentioned(scope),
    }
