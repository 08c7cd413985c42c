"""All passages that mention a node, in pages: mentions have no numbers, which the admin needs."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.admin import ModelAdmin

from graph.models import Mention, Node

PAGE = 50


def mentions_address(node_id: int) -> str:
    """Where they are shown."""
    return reverse("admin:graph_node_mentions", args=[node_id])


def mentions_page(model_admin: ModelAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Those behind the passage `after`, in the order of the passages."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    node: Node = get_object_or_404(Node.objects.only("name", "key"), pk=pk)
    mentions = Mention.objects.filter(node=node).order_by("chunk_id")
    after = request.GET.get("after", "")
    if after.isascii() and after.isdigit() and len(after) < 19:
        mentions = mentions.filter(chunk__gt=int(after))
    rows = list(
        mentions.select_related("chunk__document__collection").only(
            "kind",
            "count",
            "start",
            "end",
            "chunk__ordinal",
            "chunk__text",
            "chunk__is_current",
            "chunk__document__title",
            "chunk__document__key",
            "chunk__document__collection__name",
        )[: PAGE + 1]
    )
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": f"Passages that mention {node}",
        "opts": model_admin.opts,
        "node": node,
        "rows": [(row, row.chunk.text[row.start : row.end]) for row in rows[:PAGE]],
        "next": rows[PAGE - 1].chunk_id if len(rows) > PAGE else None,
        "begins_later": bool(after),
        "media": model_admin.media,
    }
    return TemplateResponse(request, "admin/graph/mentions.html", context)
