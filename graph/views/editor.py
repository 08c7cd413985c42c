"""Pages on which editors change the graph: a node, an edge, a merge, deletions."""

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

from django.contrib import messages
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import InvalidInput, NotFound
from common.web import View, errors_in_form
from documents.models import Chunk
from graph import services
from graph.forms import EdgeForm, GraphState, MergeForm, NewEdgeForm, NewNodeForm, NodeForm
from graph.models import Evidence
from graph.presentation import node_view
from graph.querysets import Origin
from graph.reading.results import Link
from graph.reading.vertices import Vertex, resolve, vertex_rows
from graph.scopes import AccessFilter, GraphScope
from graph.views.explorer import graph_page

#: Nodes that are merged at once by hand.
MAX_MERGED = 25
#: Nodes with similar names that are offered for a merge.
MAX_SIMILAR = 8
EDGES_PER_PAGE = 25
EDGE_NAMES = ("source", "rel", "target")


def editor_page(view: Callable[..., HttpResponseBase]) -> View:
    """Decorator of a `graph_page` with a form, for editors of the workspace."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @graph_page
    @wraps(view)
    def guarded(
        request: HttpRequest, scope: GraphScope, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        require_editor(user=request.user, workspace=request_workspace(request))
        return view(request, scope, *args, **kwargs)

    return guarded


def node_url(node: Vertex) -> str:
    """The page on which the node is changed; for a document or passage the drawing around it."""
    return reverse("graph_node" if node.kind == "node" else "graph", query={"id": node.id})


def _form_page(request: HttpRequest, name: str, form: Form, **context: Any) -> HttpResponse:
    status = 400 if form.errors else 200
    return render(request, f"graph/{name}.html", {"form": form, **context}, status=status)


def _named_node(request: HttpRequest, scope: GraphScope) -> Vertex:
    """The node `?id=`. Raises NotFound, also for documents and passages."""
    vertex = services.get_node(scope=scope, id=request.GET.get("id", ""))
    if vertex is None or vertex.kind != "node":
        raise NotFound(gettext("No node has this id, or you may not see it."))
    return vertex


def _say_whether_name_is_taken(request: HttpRequest, taken: tuple[str, ...]) -> None:
    for name in taken:
        text = gettext("Texts with the name “{name}” refer to another node.")
        messages.warning(request, text.format(name=name))


@editor_page
def add_node(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """A new node."""
    form = NewNodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with errors_in_form(form, "id"):
            taken = services.describe_node(scope=scope, is_new=True, **form.cleaned_data)
            id = form.cleaned_data["id"]
            name = form.cleaned_data["name"] or id
            messages.success(request, gettext("“{name}” is added.").format(name=name))
            _say_whether_name_is_taken(request, taken)
            return redirect(reverse("graph_node", query={"id": id}))
    return _form_page(request, "node_new", form)


@editor_page
def change_node(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """A node with its edges. What is saved makes an extracted node a given one."""
    vertex = _named_node(request, scope)
    form = NodeForm.of(scope, vertex, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with errors_in_form(form, "name"):
            if given := form.given():
                taken = services.describe_node(scope=scope, id=vertex.id, **given)
                _say_whether_name_is_taken(request, taken)
            name = given.get("name") or vertex.name
            messages.success(request, gettext("“{name}” is changed.").format(name=name))
            return redirect(reverse("graph", query={"id": vertex.id}))
    context = {
        "vertex": vertex,
        "node": node_view(vertex, GraphState()),
        "edge_lists": [
            _edge_list(request, scope, vertex, end, title)
            for end, title in (
                ("source", gettext("Edges from here")),
                ("target", gettext("Edges to here")),
            )
        ],
    }
    return _form_page(request, "node_change", form, **context)


def _edge_list(
    request: HttpRequest, scope: GraphScope, vertex: Vertex, end: str, title: str
) -> dict[str, Any]:
    """Edges at whose `end` the vertex is, newest first, from the cursor `?<end>=` on."""
    links, following = services.list_edges(
        scope=scope, **{end: vertex.id}, limit=EDGES_PER_PAGE, cursor=request.GET.get(end, "")
    )
    others = [link.target if end == "source" else link.source for link in links]
    names = resolve(AccessFilter(scope), others)
    rows = [
        {
            "link": link,
            "other": node_view(names[id], GraphState()),
            "url": edge_url(link),
        }
        for link, id in zip(links, others, strict=True)
        if id in names
    ]
    more = reverse("graph_node", query={"id": vertex.id, end: following}) if following else ""
    return {"end": end, "title": title, "rows": rows, "more_url": more}


@editor_page
def delete_node(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What is deleted with a node; deletes it."""
    vertex = _named_node(request, scope)
    gone = services.deletion_preview(scope=scope, ids=[vertex.id])
    if request.method == "POST":
        services.delete_nodes(scope=scope, ids=[vertex.id])
        messages.success(request, gettext("“{name}” is deleted.").format(name=vertex.name))
        return redirect("graph")
    context = {
        "node": node_view(vertex, GraphState()),
        "gone": gone,
        "returns": vertex.origin == Origin.EXTRACTED,
    }
    return render(request, "graph/node_delete.html", context)


@editor_page
def merge(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What a merge of the nodes `?id=` into `?keep=` moves; merges them."""
    form = MergeForm(scope, request.GET or None)
    ids = list(dict.fromkeys(request.GET.getlist("id")))
    if form.is_valid() and (other := form.cleaned_data["other"]):
        more = {"id": [*ids, other.id], "keep": request.GET.get("keep", ids[:1])}
        return redirect(reverse("graph_merge", query=more))
    found = resolve(AccessFilter(scope), ids[:MAX_MERGED])
    nodes = {each.id: each for each in found.values() if each.kind == "node"}
    if not nodes:
        raise NotFound(gettext("No node has this id, or you may not see it."))
    given = [each.id for each in nodes.values() if each.origin == Origin.GIVEN]
    # Unless one is chosen, a given node, or else the first.
    keep = next((id for id in (request.GET.get("keep"), *given, *nodes) if id in nodes), "")
    names: dict[str, Any] = {"keep": keep, "others": [id for id in nodes if id != keep]}
    if request.method == "POST" and names["others"]:
        done = services.merge_nodes(scope=scope, **names)
        text = gettext("Merged into “{name}”, which gained {edges} edges and {mentions} mentions.")
        told = {name: value for name, value in asdict(done).items() if name != "nodes"}
        messages.success(request, text.format(name=nodes[keep].name, **told))
        return redirect(reverse("graph", query={"id": keep}))
    name = nodes[keep].name
    # Called so, or by one of the two longest words of it.
    similar = {
        each.id: each
        for text in (name, *sorted(name.split(), key=len)[-2:])
        for each in services.find_nodes(scope=scope, text=text, kinds=["node"], limit=MAX_SIMILAR)
        if each.id not in nodes
    }
    context = {
        "keep": node_view(nodes[keep], GraphState()),
        "nodes": [node_view(each, GraphState()) for each in nodes.values()],
        "similar": [node_view(each, GraphState()) for each in similar.values()][:MAX_SIMILAR],
        "preview": services.merge_preview(scope=scope, **names) if names["others"] else None,
        "all_extracted": not given,
        "merge_url": reverse("graph_merge", query={"id": list(nodes), "keep": keep}),
    }
    return _form_page(request, "merge", form, **context)


def edge_url(edge: Link, page: str = "graph_edge") -> str:
    """Address of a page about the edge."""
    return reverse(page, query={name: getattr(edge, name) for name in EDGE_NAMES})


def _named_edge(request: HttpRequest, scope: GraphScope) -> Link:
    """The edge `?source=&rel=&target=`. Raises NotFound."""
    named: dict[str, Any] = {name: request.GET.get(name, "") for name in EDGE_NAMES}
    links, _ = services.list_edges(scope=scope, **named)
    if not links:
        raise NotFound(gettext("This edge does not exist, or you may not see it."))
    return links[0]


def _edge_context(request: HttpRequest, scope: GraphScope, edge: Link) -> dict[str, Any]:
    """The edge with its ends and the number of visible passages that state it."""
    found = resolve(AccessFilter(scope), [edge.source, edge.target])
    rows = vertex_rows(found)
    ends = {"edge__source": rows[edge.source], "edge__target": rows[edge.target]}
    chunks = Chunk.objects.visible_to(request.user)
    return {
        "edge": edge,
        "source": node_view(found[edge.source], GraphState()),
        "target": node_view(found[edge.target], GraphState()),
        "evidence": Evidence.objects.filter(edge__rel=edge.rel, **ends, chunk__in=chunks).count(),
        "url": edge_url(edge),
        "delete_url": edge_url(edge, "graph_edge_delete"),
        "node_url": node_url(found[edge.source]),
        "is_extracted": edge.origin == Origin.EXTRACTED,
    }


@editor_page
def add_edge(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """A new edge, from or to the nodes `?source=` and `?target=`."""
    ends = {name: request.GET.get(name, "") for name in ("source", "target")}
    form = NewEdgeForm(scope, request.POST if request.method == "POST" else None, initial=ends)
    if form.is_valid():
        source = form.cleaned_data["source"]
        given = form.cleaned_data | {name: form.cleaned_data[name].id for name in ends}
        with errors_in_form(form, "rel"):
            named = {name: given[name] for name in EDGE_NAMES}
            if services.list_edges(scope=scope, **named)[0]:
                raise InvalidInput(gettext("This edge already exists."), field="rel")
            services.upsert_edge(scope=scope, **given)
            messages.success(request, gettext("The edge is added."))
            return redirect(node_url(source))
    near = services.get_node(scope=scope, id=ends["source"] or ends["target"])
    back = node_url(near) if near else reverse("graph")
    return _form_page(request, "edge_new", form, back=back)


@editor_page
def change_edge(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """Weight and properties of an edge. What is saved makes an extracted edge a given one."""
    edge = _named_edge(request, scope)
    context = _edge_context(request, scope, edge)
    form = EdgeForm.of(edge, request.POST if request.method == "POST" else None)
    if form.is_valid():
        with errors_in_form(form, "weight"):
            if given := form.given():
                named = {name: getattr(edge, name) for name in EDGE_NAMES}
                services.upsert_edge(scope=scope, **named, **given, replace_props=True)
            messages.success(request, gettext("The edge is changed."))
            return redirect(context["node_url"])
    return _form_page(request, "edge_change", form, **context)


@editor_page
def delete_edge(request: HttpRequest, scope: GraphScope) -> HttpResponse:
    """What is deleted with an edge; deletes it."""
    edge = _named_edge(request, scope)
    context = _edge_context(request, scope, edge)
    if request.method == "POST":
        services.delete_edge(scope=scope, **{name: getattr(edge, name) for name in EDGE_NAMES})
        messages.success(request, gettext("The edge is deleted."))
        # A node without a description goes with its last edge.
        is_left = services.get_node(scope=scope, id=edge.source) is not None
        return redirect(context["node_url"] if is_left else "graph")
    return render(request, "graph/edge_delete.html", context)
