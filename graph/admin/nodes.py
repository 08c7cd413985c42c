"""Admin of nodes: list, description, the page of their mentions, the page to merge them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple
from functools import partial
from itertools import groupby
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    EXCERPT_CHARACTERS,
    bidi_isolated,
    counted,
    excerpt,
    link_to,
    link_to_list,
)
from common.errors import RagsiteError
from common.text import parse_integer, pluralized
from documents.models import Chunk
from graph import services
from graph.admin.forms import (
    GraphAdmin,
    LabelFilter,
    NewNodeForm,
    NodeForm,
    bounded_count,
    cached_per_row,
    matches_node,
    node_label,
    row_scope,
)
from graph.models import Alias, Edge, Mention, Node
from graph.node_ids import is_retired_id_form
from graph.querysets import Origin

MENTIONS_PER_PAGE = 50


def mentions_page(model_admin: ModelAdmin, request: HttpRequest, pk: int) -> HttpResponse:
    """Mentions of a node after passage `after`, in order of passages. Mention has a
    composite key, which the admin cannot list.
    """
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    node: Node = get_object_or_404(Node.objects.only("name", "key"), pk=pk)
    mentions = Mention.objects.filter(node=node).order_by("chunk_id")
    after = parse_integer(request.GET.get("after", ""))
    if after is not None:
        mentions = mentions.filter(chunk__gt=after)
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
        )[: MENTIONS_PER_PAGE + 1]
    )
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Passages that mention {node}").format(node=node),
        "opts": model_admin.opts,
        "node": node,
        "rows": [(row, row.chunk.text[row.start : row.end]) for row in rows[:MENTIONS_PER_PAGE]],
        "next": rows[MENTIONS_PER_PAGE - 1].chunk_id if len(rows) > MENTIONS_PER_PAGE else None,
        "begins_later": bool(after),
        "media": model_admin.media,
    }
    return TemplateResponse(request, "admin/graph/mentions.html", context)


#: Nodes that are merged at once by hand.
MAX_MERGED = 50


def merge_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Previews the merge; merges if the preview was confirmed."""
    if not model_admin.has_merge_permission(request):
        raise PermissionDenied
    ids = request.GET.get("ids", "")
    wanted = [number for part in ids.split(",") if (number := parse_integer(part)) is not None]
    nodes = list(Node.objects.filter(pk__in=wanted[:MAX_MERGED]).defer("props").order_by("pk"))
    back = reverse("admin:graph_node_changelist")
    if len(nodes) < 2 or len({node.workspace_id for node in nodes}) > 1:
        messages.error(request, gettext("Select at least two nodes of one workspace to merge."))
        return HttpResponseRedirect(back)
    asked = (request.POST if request.method == "POST" else request.GET).get("keep")
    # A given node, or else the oldest.
    kept = next((node for node in nodes if str(node.pk) == asked), None) or next(
        (node for node in nodes if node.origin == Origin.GIVEN), nodes[0]
    )
    others = [node for node in nodes if node != kept]
    names: dict[str, Any] = {"keep": kept.key, "others": [node.key for node in others]}
    try:
        if "merge" in request.POST and request.POST.get("shown") == str(kept.pk):
            done = services.merge_nodes(scope=row_scope(kept), **names)
            model_admin.log_change(
                request, kept, f"Merged {pluralized(len(others), 'node')} into it."
            )
            messages.success(
                request,
                gettext("{nodes} are merged. The node gained {edges} and {mentions}.").format(
                    nodes=counted(Node, done.nodes + 1),
                    edges=counted(Edge, done.edges),
                    mentions=counted(Mention, done.mentions),
                ),
            )
            return HttpResponseRedirect(reverse("admin:graph_node_change", args=[kept.pk]))
        preview = services.merge_preview(scope=row_scope(kept), **names)
    except RagsiteError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(back)
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Merge nodes"),
        "opts": model_admin.opts,
        "kept": kept,
        "candidates": [
            {
                "node": node,
                "edges": gettext("{all} out, {all_2} in").format(
                    all=bounded_count(node.outgoing.all()), all_2=bounded_count(node.incoming.all())
                ),
                "mentions": bounded_count(Mention.objects.filter(node=node)),
                "is_kept": node == kept,
            }
            for node in nodes
        ],
        "preview": preview,
        "all_found": all(node.origin == Origin.EXTRACTED for node in nodes),
        "media": model_admin.media,
        "back": back,
    }
    return TemplateResponse(request, "admin/graph/merge.html", context)


MAX_EDGES = 20
MAX_MENTIONS = 10
MAX_NAMES = 50
#: In the order of `graph.services.Deletion`.
DELETED_KINDS = (
    gettext_noop("nodes"),
    gettext_noop("edges"),
    gettext_noop("mentions"),
    gettext_noop("names in texts"),
    gettext_noop("nodes without a description"),
)
RETURNS_NOTE = gettext_lazy(": returns when a document with this name is read again")


@admin.register(Node)
class NodeAdmin(GraphAdmin):
    """Saves through the services: a node that a person describes becomes given, and
    stays when no document mentions it.
    """

    form, new_form = NodeForm, NewNodeForm
    edited_fields = ["name", "labels", "props"]
    list_display = [
        "name_label",
        "id_label",
        "labels_text",
        "origin_label",
        "workspace",
        "updated_at",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), LabelFilter, "origin", "is_stub"]
    list_heavy_fields = ("props",)
    search_fields = ["name"]
    search_help_text = gettext_lazy("Part of its name, or the full text of another name or its id.")
    sortable_by = ["name_label"]
    autocomplete_fields = ["workspace"]
    actions = ["merge_selected"]
    shown_fields = [
        "id_label",
        "workspace",
        "origin",
        "described",
        "names",
        "outgoing",
        "incoming",
        "mentioned",
        "created_at",
        "updated_at",
    ]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("merge/", view(partial(merge_page, self)), name="graph_node_merge"),
            path(
                "<int:pk>/mentions/",
                view(partial(mentions_page, self)),
                name="graph_node_mentions",
            ),
        ]
        return [*own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        rows: QuerySet[Node] = super().get_queryset(request)
        return rows.annotate(beginning=Left("key", EXCERPT_CHARACTERS))

    def search_rows(self, rows: QuerySet[Node], term: str) -> QuerySet[Node]:
        return rows.filter(matches_node(term))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not for rows that stand for documents and passages."""
        return bool(super().has_change_permission(request, obj)) and not _is_content_node(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and not _is_content_node(obj)

    def has_merge_permission(self, request: HttpRequest) -> bool:
        """Merging changes one node and deletes the others."""
        return self.has_change_permission(request) and self.has_delete_permission(request)

    def delete_rows(self, rows: Iterable[Node]) -> None:
        for group in _grouped_by_workspace(rows):
            services.delete_nodes(scope=row_scope(group[0]), ids=[row.key for row in group])

    def deletion_counts(self, rows: list[Node]) -> dict[str, int]:
        gone: Counter[str] = Counter()
        for group in _grouped_by_workspace(rows):
            deleted = services.deletion_preview(
                scope=row_scope(group[0]), ids=[row.key for row in group]
            )
            gone.update(dict(zip(DELETED_KINDS, astuple(deleted), strict=True)))
        return {gettext(name): number for name, number in gone.items() if number}

    def deletion_name(self, row: Node) -> str:
        return f"{row}{RETURNS_NOTE if row.origin == Origin.EXTRACTED else ''}"

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Nodes of documents and passages are protected."""
        rows = list(objs)
        own = [row for row in rows if not _is_content_node(row)]
        shown, counts, missing, _ = super().get_deleted_objects(own, request)
        content = [
            gettext("{row}: deleted with its document or its edges").format(row=row)
            for row in rows
            if _is_content_node(row)
        ]
        return shown, counts, missing, content

    @admin.action(description=gettext_lazy("Merge selected nodes…"), permissions=["merge"])
    def merge_selected(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        ids = list(queryset.values_list("pk", flat=True)[: MAX_MERGED + 1])
        if not 2 <= len(ids) <= MAX_MERGED:
            messages.error(
                request,
                gettext("Select 2 to {limit} nodes to merge.").format(limit=MAX_MERGED),
            )
            return None
        address = reverse("admin:graph_node_merge")
        return HttpResponseRedirect(f"{address}?{urlencode({'ids': ','.join(map(str, ids))})}")

    @display(description=gettext_lazy("node"), ordering="id")
    def name_label(self, row: Node) -> SafeString:
        return node_label(row)

    @display(description=gettext_lazy("id"))
    def id_label(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description=gettext_lazy("labels"))
    def labels_text(self, row: Node) -> SafeString:
        return bidi_isolated(", ".join(row.labels))

    @display(description=gettext_lazy("stands for"))
    def described(self, row: Node) -> str:
        if row.document_id:
            return link_to(row.document)
        if row.chunk_id:
            return link_to(Chunk.objects.only("document_id", "ordinal").get(pk=row.chunk_id))
        return gettext("without a description") if row.is_stub else "itself"

    @display(description=gettext_lazy("names in texts"))
    @cached_per_row
    def names(self, row: Node) -> SafeString:
        rows = row.aliases.order_by("form")[:MAX_NAMES]
        shown = [bidi_isolated(each.form) for each in rows if not is_retired_id_form(each.form)]
        parts = format_html_join(" · ", "{}", ((each,) for each in shown))
        link = link_to_list(Alias, "all", node__id__exact=row.pk)
        return format_html("{} · {}", parts, link) if shown else format_html("none · {}", link)

    @display(description=gettext_lazy("outgoing edges"))
    @cached_per_row
    def outgoing(self, row: Node) -> SafeString:
        return _edge_list(row, "source", "target")

    @display(description=gettext_lazy("incoming edges"))
    @cached_per_row
    def incoming(self, row: Node) -> SafeString:
        return _edge_list(row, "target", "source")

    @display(description=gettext_lazy("mentioned in"))
    @cached_per_row
    def mentioned(self, row: Node) -> SafeString:
        mentions = Mention.objects.filter(node=row).order_by("chunk_id")
        shown = mentions.select_related("chunk__document").only(
            "kind", "count", "chunk__ordinal", "chunk__document__title", "chunk__document__key"
        )[:MAX_MENTIONS]
        lines = (
            (link_to(each.chunk, f"{each.chunk.document} #{each.chunk.ordinal + 1}"), each.count)
            for each in shown
        )
        listed = format_html_join("", "<div>{} · {} ×</div>", lines)
        if not listed:
            return format_html(gettext("no passage"))
        address = reverse("admin:graph_node_mentions", args=[row.pk])
        return format_html(
            '{}<a class="underline" href="{}">{} ({})</a>',
            listed,
            address,
            gettext("all passages"),
            bounded_count(mentions),
        )


def _edge_list(node: Node, end: str, other: str) -> SafeString:
    """The weightiest edges at whose `end` the node is."""
    edges = Edge.objects.filter(**{end: node}).order_by("-weight", f"{other}_id", "rel")
    shown = edges.select_related(other).defer("props", f"{other}__props")[:MAX_EDGES]
    lines = ((link_to(each, each.rel), link_to(getattr(each, other))) for each in shown)
    listed = format_html_join("", "<div><bdi>{}</bdi> <bdi>{}</bdi></div>", lines)
    if not listed:
        return format_html("nothing")
    every = {f"{end}__id__exact": node.pk}
    return format_html(
        "{}{}",
        listed,
        link_to_list(
            Edge, gettext("all edges ({edges})").format(edges=bounded_count(edges)), **every
        ),
    )


def _is_content_node(row: Any) -> bool:
    return row is not None and bool(row.document_id or row.chunk_id)


def _grouped_by_workspace(rows: Iterable[Any]) -> Iterable[list[Any]]:
    ordered = sorted(rows, key=lambda row: row.workspace_id)
    return (list(group) for _, group in groupby(ordered, key=lambda row: row.workspace_id))
