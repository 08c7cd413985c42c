"""Pages of the graph: explorer, finder, export, and the panel on a document's page.
Begin with `index`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from accounts.current_workspace import request_workspace
from common.errors import InvalidInput, NotFound
from common.web import View, login_required_page
from documents.models import Chunk, Document
from graph import services
from graph.forms import SIZES, GraphState
from graph.models import Mention
from graph.presentation import (
    NodeView,
    count_undrawn_links,
    draw,
    drawing_facets,
    node_detail,
    node_view,
)
from graph.reading.vertices import Ref, load_vertices
from graph.scopes import AccessFilter, GraphScope, graph_scope


def graph_page(view: Callable[..., HttpResponseBase]) -> View:
    """Decorator of a page view that takes the `GraphScope` of its user after the request."""

    @login_required_page
    @wraps(view)
    def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        scope = graph_scope(user=request.user, workspace=request_workspace(request))
        return view(request, scope, *args, **kwargs)

    return opened


MAX_FOUND = 40
MAX_OPTIONS = 8


@require_safe
@graph_page
def options(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """Nodes that match `?find=`, as options of a list."""
    name = requested_name(request)
    found = find_views(scope, name, limit=MAX_OPTIONS) if name else ()
    return render(request, "graph/options.html", {"find": name, "found": found})


def requested_name(request: HttpRequest) -> str:
    """The name to find. PostgreSQL's text holds no NUL."""
    return request.GET.get("find", "").replace("\0", "").strip()


def find_views(scope: GraphScope, name: str, *, limit: int = MAX_FOUND) -> Sequence[NodeView]:
    """Nodes that match `name`, best first."""
    found = services.find_nodes(scope=scope, text=name, limit=limit)
    return [node_view(vertex, GraphState()) for vertex in found]


def most_counted(scope: GraphScope, counts: Mapping[int, int], *, limit: int) -> list[NodeView]:
    """Visible nodes with the highest counts, by primary key."""
    often = sorted(counts, key=lambda node: (-counts[node], node))[:limit]
    vertices = load_vertices(AccessFilter(scope), [Ref("node", node) for node in often])
    return [
        node_view(vertices[ref], GraphState(), degree=counts[ref.pk])
        for node in often
        if (ref := Ref("node", node)) in vertices
    ]


PANEL_NODES = 12


@require_safe
@graph_page
def document_panel(request: HttpRequest, scope: GraphScope, pk: int) -> HttpResponse:
    """The nodes that a document mentions most, as a panel of its page."""
    document = Document.objects.visible_to(request.user).select_related("collection")
    found = document.filter(pk=pk, workspace=scope.workspace_id).first()
    if found is None:
        raise NotFound(gettext("This document does not exist. It may have been deleted."))
    chunks = Chunk.objects.visible_to(request.user).filter(document=found.text_id)
    rows = Mention.objects.filter(chunk__in=chunks.values("pk")).exclude(kind=Mention.Kind.SELF)
    counts = dict(rows.values_list("node").annotate(times=Sum("count")))
    context = {
        "document": found,
        "nodes": most_counted(scope, counts, limit=PANEL_NODES),
        "more": max(0, len(counts) - PANEL_NODES),
    }
    return render(request, "graph/beside_document.html", context)


GRAPHML = "application/graphml+xml"


@require_safe
@graph_page
def export_file(request: HttpRequest, scope: GraphScope) -> HttpResponseBase:
    """The drawn nodes and links as `?format=graphml`, or as JSON for cytoscape.js."""
    state = GraphState.read(request.GET)
    format = request.GET.get("format", "graphml")
    around: dict[str, Any] = {
        "scope": scope,
        "ids": state.starts,
        "hops": state.hops,
        "cap": state.size,
        "rels": state.rels,
        "labels": state.labels,
    }
    if format == "graphml":
        return _file_response(services.export_graphml(**around), GRAPHML, "graphml")
    if format == "json":
        found = services.subgraph(**around, grain=state.grain, props=True)
        json_parts = [json.dumps(services.export_cytoscape(found), ensure_ascii=False).encode()]
        return _file_response(json_parts, "application/json", "json")
    raise InvalidInput(
        gettext("The format “{format}” does not exist. Use graphml or json.").format(format=format),
        field="format",
    )


def _file_response(parts: Iterable[bytes], content_type: str, suffix: str) -> HttpResponseBase:
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="graph.{suffix}"'
    response["Cache-Control"] = "private, no-store"
    return response


ROWS_PER_PAGE = 50


@require_safe
@graph_page
def index(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """The drawing around `?id=`; nodes that match `?find=`; else the start page."""
    state = GraphState.read(request.GET)
    if state.ids:
        context = _explorer_context(scope, state)
        status = 200 if context["drawn"].nodes else 404
        return render(request, "graph/explore.html", context, status=status)
    if name := requested_name(request):
        found = find_views(scope, name)
        context = {"find": name, "found": found, "is_cut": len(found) == MAX_FOUND}
        return render(request, "graph/start.html", context)
    counts = services.graph_statistics(scope=scope)
    context = {
        "counts": counts,
        "labels": [
            NodeView("", label, "node", (label,), number, GraphState())
            for label, number in counts.labels.items()
        ],
        "best": [
            node_view(each.vertex, GraphState(), degree=each.degree)
            for each in counts.best_connected
        ],
        "named": [
            {
                "collection": of.collection,
                "nodes": [
                    node_view(each.vertex, GraphState(), degree=each.degree) for each in of.nodes
                ],
            }
            for of in services.most_named(scope=scope)
        ],
    }
    return render(request, "graph/start.html", context)


@require_safe
@graph_page
def elements(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """The drawing in the format of cytoscape.js."""
    shown = draw(scope, GraphState.read(request.GET))
    response = JsonResponse({"elements": shown.elements})
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
@graph_page
def about(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """Details of one node, as a part of the page."""
    state = GraphState.read(request.GET)
    return render(request, "graph/about.html", {"state": state} | node_detail(scope, state))


def _explorer_context(scope: GraphScope, state: GraphState) -> dict[str, Any]:
    found = draw(scope, state)
    first = (state.page - 1) * ROWS_PER_PAGE
    rows = found.nodes[first : first + ROWS_PER_PAGE]
    following = len(found.nodes) - first - len(rows)
    larger = next((size for size in SIZES if size > state.size), None) if found.is_cut else None
    return {
        "state": state,
        "drawn": found,
        "more": count_undrawn_links(scope, state, found) if found.is_cut else None,
        "rows": rows,
        "following": max(following, 0),
        "previous_url": state.url(page=state.page - 1) if state.page > 1 else "",
        "following_url": state.url(page=state.page + 1) if following > 0 else "",
        "facets": drawing_facets(scope, state, found),
        "reaches": [
            {"label": label, "url": state.url(hops=hops), "selected": hops == state.hops}
            for hops, label in ((1, gettext("Neighbors")), (2, gettext("Two steps")))
        ],
        "grains": [
            {"label": label, "url": state.url(grain=grain), "selected": grain == state.grain}
            for grain, label in (("document", gettext("Documents")), ("chunk", gettext("Passages")))
        ],
        "larger": larger,
        "larger_url": state.url(size=larger) if larger else "",
        "unfiltered_url": state.url(rels=(), labels=()),
        "closed_url": state.url(opened=()),
        "shown_url": state.url(hidden=()),
        "exports": {
            format: f"{state.url('graph_export')}&format={format}" for format in ("graphml", "json")
        },
    } | node_detail(scope, state)
