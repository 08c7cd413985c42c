"""What is drawn, as a file."""

import json
from collections.abc import Iterable

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from common.errors import InvalidInput
from graph import services
from graph.forms import GraphState
from graph.scopes import GraphScope
from graph.views.whose import graph_page

GRAPHML = "application/graphml+xml"


@require_safe
@graph_page
def download(request: HttpRequest, scope: GraphScope) -> HttpResponseBase:
    """The nodes and links of the same address as `?format=graphml`, or as JSON for cytoscape."""
    state = GraphState.read(request.GET)
    format = request.GET.get("format", "graphml")
    if format == "graphml":
        return _file(_graphml(scope, state), GRAPHML, "graphml")
    if format == "json":
        return _file(_json(scope, state), "application/json", "json")
    raise InvalidInput(
        f"There is no format “{format}”. There are graphml and json.", field="format"
    )


def _graphml(scope: GraphScope, state: GraphState) -> Iterable[bytes]:
    return services.export_graphml(
        scope=scope,
        ids=state.starts,
        hops=state.hops,
        cap=state.size,
        rels=state.rels,
        labels=state.labels,
    )


def _json(scope: GraphScope, state: GraphState) -> Iterable[bytes]:
    found = services.subgraph(
        scope=scope,
        ids=state.starts,
        hops=state.hops,
        cap=state.size,
        rels=state.rels,
        labels=state.labels,
        grain=state.grain,
        props=True,
    )
    return [json.dumps(services.export_cytoscape(found), ensure_ascii=False).encode()]


def _file(parts: Iterable[bytes], content_type: str, suffix: str) -> HttpResponseBase:
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="graph.{suffix}"'
    response["Cache-Control"] = "private, no-store"
    return response
