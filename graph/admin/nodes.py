"""Nodes: found, described, merged, removed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple
from itertools import groupby
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    EXCERPT_CHARACTERS,
    LargeTableAdmin,
    LoggedByNumber,
    deletion_preview,
    excerpt,
    isolated,
    link_to,
    link_to_list,
)
from documents.models import Chunk
from graph import services
from graph.admin.base import (
    LabelFilter,
    bounded_count,
    is_found_by,
    named,
    once_a_row,
    scope_of_row,
)
from graph.admin.forms import NewNodeForm, NodeForm
from graph.admin.mentions import mentions_address, mentions_page
from graph.admin.merging import MOST_MERGED, merging_address, merging_page
from graph.keys import is_retired_form
from graph.models import Alias, Edge, Mention, Node, Origin

SHOWN_EDGES = 20
SHOWN_MENTIONS = 10
SHOWN_NAMES = 50
#: In the order of `graph.services.Deletion`.
GONE = ("nodes", "edges", "mentions", "names in texts", "nodes that nobody described")
COMES_BACK = ": comes back when a document is read again that names it"
ORIGIN_COLOURS = {Origin.GIVEN: "info", Origin.EXTRACTED: "default"}


@admin.register(Node)
class NodeAdmin(LoggedByNumber, LargeTableAdmin):
    """Described by the services: what a person describes is given, and stays when no document
    mentions it any more."""

    list_display = [
        "shown_name",
        "shown_key",
        "shown_labels",
        "shown_origin",
        "workspace",
        "updated_at",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), LabelFilter, "origin", "is_stub"]
    list_select_related = ["workspace"]
    list_heavy_fields = ("props",)
    search_fields = ["name"]
    search_help_text = "Letters of its name, or the whole of another name or of its id."
    ordering = ["-id"]
    sortable_by = ["shown_name"]
    autocomplete_fields = ["workspace"]
    actions = ["merge_selected"]
    shown_fields = [
        "shown_key",
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
            path("merge/", view(self.merge_view), name="graph_node_merge"),
            path("<int:pk>/mentions/", view(self.mentions_view), name="graph_node_mentions"),
        ]
        return [*own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        rows: QuerySet[Node] = super().get_queryset(request)
        return rows.annotate(beginning=Left("key", EXCERPT_CHARACTERS))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Node], search_term: str
    ) -> tuple[QuerySet[Node], bool]:
        if not search_term:
            return queryset, False
        return queryset.filter(is_found_by(search_term)), False

    # --- what may be done ------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A row that stands for a document or passage is described by that."""
        return bool(super().has_change_permission(request, obj)) and not _is_content(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and not _is_content(obj)

    def has_merge_permission(self, request: HttpRequest) -> bool:
        """Merging changes one node and removes the others."""
        return self.has_change_permission(request) and self.has_delete_permission(request)

    # --- writing ---------------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = NodeForm if obj else NewNodeForm
        return super().get_form(request, obj, change, **{"form": form, **kwargs})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*NodeForm.Meta.fields, *self.shown_fields] if obj else NewNodeForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown_fields if obj else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given = form.cleaned_data
        wanted = form.changed_data if change else NodeForm.Meta.fields
        if not wanted:
            return
        services.upsert_node(
            scope=scope_of_row(obj),
            id=obj.key,
            **{name: given[name] for name in ("name", "labels", "props") if name in wanted},
            replace_props=True,
        )
        obj.__dict__.update(Node.objects.get(workspace=obj.workspace_id, key=obj.key).__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        services.delete_nodes(scope=scope_of_row(obj), ids=[obj.key])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for rows in _by_workspace(queryset):
            services.delete_nodes(scope=scope_of_row(rows[0]), ids=[row.key for row in rows])

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(objs)
        content = [
            f"{row}: goes with its document, or with its edges" for row in rows if _is_content(row)
        ]
        own = [row for row in rows if not _is_content(row)]
        names = [f"{row}{COMES_BACK if row.origin == Origin.EXTRACTED else ''}" for row in own]
        shown, counts, missing, _ = deletion_preview(self, request, names, _counted(own))
        return shown, counts, missing, content

    @admin.action(description="Merge selected nodes…", permissions=["merge"])
    def merge_selected(self, request: HttpRequest, queryset: QuerySet[Node]) -> HttpResponse | None:
        ids = list(queryset.values_list("pk", flat=True)[: MOST_MERGED + 1])
        if not 2 <= len(ids) <= MOST_MERGED:
            messages.error(request, f"Select 2 to {MOST_MERGED} nodes to merge.")
            return None
        return HttpResponseRedirect(merging_address(ids))

    def merge_view(self, request: HttpRequest) -> HttpResponse:
        """Which one stays, and what becomes of the others."""
        return merging_page(self, request)

    def mentions_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """All passages that mention a node, in pages."""
        return mentions_page(self, request, pk)

    # --- what is shown ---------------------------------------------------------------------------

    @display(description="node", ordering="id")
    def shown_name(self, row: Node) -> SafeString:
        return named(row)

    @display(description="id")
    def shown_key(self, row: Any) -> SafeString:
        return excerpt(row.beginning)

    @display(description="labels")
    def shown_labels(self, row: Node) -> SafeString:
        return isolated(", ".join(row.labels))

    @display(description="origin", ordering="origin", label=ORIGIN_COLOURS)
    def shown_origin(self, row: Node) -> tuple[str, str]:
        return row.origin, row.get_origin_display()

    @display(description="stands for")
    def described(self, row: Node) -> str:
        if row.document_id:
            return link_to(row.document)
        if row.chunk_id:
            return link_to(Chunk.objects.only("document_id", "ordinal").get(pk=row.chunk_id))
        return "nobody described it yet" if row.is_stub else "itself"

    @display(description="names in texts")
    @once_a_row
    def names(self, row: Node) -> SafeString:
        rows = row.aliases.order_by("form")[:SHOWN_NAMES]
        shown = [isolated(each.form) for each in rows if not is_retired_form(each.form)]
        parts = format_html_join(" · ", "{}", ((each,) for each in shown))
        link = link_to_list(Alias, "all", node__id__exact=row.pk)
        return format_html("{} · {}", parts, link) if shown else format_html("none · {}", link)

    @display(description="leads to")
    @once_a_row
    def outgoing(self, row: Node) -> SafeString:
        edges = row.outgoing.select_related("target").order_by("-weight", "target_id", "rel")
        return _edges(edges, "target", source__id__exact=row.pk)

    @display(description="is led to from")
    @once_a_row
    def incoming(self, row: Node) -> SafeString:
        edges = row.incoming.select_related("source").order_by("-weight", "source_id", "rel")
        return _edges(edges, "source", target__id__exact=row.pk)

    @display(description="mentioned in")
    @once_a_row
    def mentioned(self, row: Node) -> SafeString:
        mentions = Mention.objects.filter(node=row).order_by("chunk_id")
        shown = mentions.select_related("chunk__document").only(
            "kind", "count", "chunk__ordinal", "chunk__document__title", "chunk__document__key"
        )[:SHOWN_MENTIONS]
        lines = (
            (link_to(each.chunk, f"{each.chunk.document} #{each.chunk.ordinal + 1}"), each.count)
            for each in shown
        )
        listed = format_html_join("", "<div>{} · {} ×</div>", lines)
        if not listed:
            return format_html("no passage")
        address = mentions_address(row.pk)
        return format_html(
            '{}<a class="underline" href="{}">all passages ({})</a>',
            listed,
            address,
            bounded_count(mentions),
        )


def _edges(edges: QuerySet[Edge], other: str, **all_of_them: Any) -> SafeString:
    shown = edges.defer("props", f"{other}__props")[:SHOWN_EDGES]
    lines = ((link_to(each, each.rel), link_to(getattr(each, other))) for each in shown)
    listed = format_html_join("", "<div><bdi>{}</bdi> <bdi>{}</bdi></div>", lines)
    if not listed:
        return format_html("nothing")
    return format_html(
        "{}{}", listed, link_to_list(Edge, f"all edges ({bounded_count(edges)})", **all_of_them)
    )


def _is_content(row: Any) -> bool:
    return row is not None and bool(row.document_id or row.chunk_id)


def _by_workspace(rows: Iterable[Any]) -> Iterable[list[Any]]:
    ordered = sorted(rows, key=lambda row: row.workspace_id)
    return (list(group) for _, group in groupby(ordered, key=lambda row: row.workspace_id))


def _counted(rows: list[Any]) -> dict[str, int]:
    """What goes with these nodes."""
    counts: Counter[str] = Counter()
    for group in _by_workspace(rows):
        gone = services.deletion_preview(
            scope=scope_of_row(group[0]), ids=[row.key for row in group]
        )
        counts.update(dict(zip(GONE, astuple(gone), strict=True)))
    return {name: number for name, number in counts.items() if number}
