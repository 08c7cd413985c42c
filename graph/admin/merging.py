"""The page to merge nodes on: which one stays, and what becomes of the others."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from common.errors import RagsiteError
from common.wording import counted
from graph import services
from graph.admin.base import bounded_count, scope_of_row
from graph.models import Edge, Mention, Node, Origin

#: Nodes that are merged at once by hand.
MOST_MERGED = 50


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may stay, and what hangs on it."""

    node: Node
    edges: str
    mentions: str
    is_kept: bool


def merging_address(ids: list[int], keep: int | None = None) -> str:
    """Where these nodes are merged."""
    asked: list[tuple[str, Any]] = [("ids", ",".join(map(str, ids)))]
    asked += [("keep", keep)] if keep is not None else []
    return f"{reverse('admin:graph_node_merge')}?{urlencode(asked)}"


def merging_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show what would become of the nodes, or merge them if that was shown before."""
    if not model_admin.has_merge_permission(request):
        raise PermissionDenied
    nodes = _nodes(request.GET.get("ids", ""))
    back = reverse("admin:graph_node_changelist")
    if len(nodes) < 2 or len({node.workspace_id for node in nodes}) > 1:
        messages.error(request, "Select at least two nodes of one workspace to merge.")
        return HttpResponseRedirect(back)
    asked = (request.POST if request.method == "POST" else request.GET).get("keep")
    kept = next((node for node in nodes if str(node.pk) == asked), None) or _likeliest(nodes)
    others = [node for node in nodes if node != kept]
    names: dict[str, Any] = {"keep": kept.key, "others": [node.key for node in others]}
    try:
        if "merge" in request.POST and request.POST.get("shown") == str(kept.pk):
            merged = services.merge_nodes(scope=scope_of_row(kept), **names)
            model_admin.log_change(request, kept, f"Merged {counted(len(others), 'node')} into it.")
            done = merged.done
            messages.success(
                request,
                f"{counted(done.nodes + 1, 'node')} are one, with {counted(done.edges, 'edge')} and"
                f" {counted(done.mentions, 'mention')} more than before.",
            )
            return HttpResponseRedirect(reverse("admin:graph_node_change", args=[kept.pk]))
        preview = services.merge_preview(scope=scope_of_row(kept), **names)
    except RagsiteError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(back)
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": "Merge nodes",
        "opts": model_admin.opts,
        "kept": kept,
        "candidates": [_candidate(node, kept) for node in nodes],
        "preview": preview,
        "all_found": all(node.origin == Origin.EXTRACTED for node in nodes),
        "media": model_admin.media,
        "back": back,
    }
    return TemplateResponse(request, "admin/graph/merge.html", context)


def _nodes(ids: str) -> list[Node]:
    numbers = [part for part in ids.split(",") if part.isascii() and part.isdigit()]
    wanted = [int(part) for part in numbers[:MOST_MERGED] if len(part) < 19]
    return list(Node.objects.filter(pk__in=wanted).defer("props").order_by("pk"))


def _likeliest(nodes: list[Node]) -> Node:
    """What somebody gave, or else the oldest."""
    return next((node for node in nodes if node.origin == Origin.GIVEN), nodes[0])


def _candidate(node: Node, kept: Node) -> Candidate:
    outgoing, incoming = Edge.objects.filter(source=node), Edge.objects.filter(target=node)
    return Candidate(
        node=node,
        edges=f"{bounded_count(outgoing)} out, {bounded_count(incoming)} in",
        mentions=bounded_count(Mention.objects.filter(node=node)),
        is_kept=node == kept,
    )
