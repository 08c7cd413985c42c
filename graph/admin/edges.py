"""Edges: found by their nodes, weighed, added, removed."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import LargeTableAdmin, LoggedByNumber, deletion_preview, isolated, link_to
from graph import services
from graph.admin.base import (
    RelationFilter,
    bounded_count,
    found_ids,
    named,
    once_a_row,
    scope_of_row,
)
from graph.admin.forms import EdgeForm, NewEdgeForm
from graph.admin.nodes import ORIGIN_COLOURS
from graph.models import Edge, Evidence
from graph.services.curating import delete_edges

SHOWN_EVIDENCE = 20
SENTENCE_CHARACTERS = 500


@admin.register(Edge)
class EdgeAdmin(LoggedByNumber, LargeTableAdmin):
    """What an edge leads from and to, and how, stays; another relation is another edge."""

    list_display = ["source_name", "rel_name", "target_name", "weight", "shown_origin", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), RelationFilter, "origin"]
    list_select_related = ["workspace", "source", "target"]
    list_heavy_fields = ("props", "source__props", "target__props")
    search_fields = ["source__name"]
    search_help_text = "One of its nodes: letters of the name, or the whole id."
    ordering = ["-id"]
    sortable_by = ["rel_name"]
    list_display_links = ["rel_name"]
    autocomplete_fields = ["source", "target"]
    shown_fields = [
        "source_link",
        "rel_name",
        "target_link",
        "workspace",
        "origin",
        "told_by",
        "updated_at",
    ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Edge], search_term: str
    ) -> tuple[QuerySet[Edge], bool]:
        if not search_term:
            return queryset, False
        nodes = found_ids(search_term)
        return queryset.filter(Q(source__in=nodes) | Q(target__in=nodes)), False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Edges of documents and passages are written by the ids of these, which may mean a newer
        version meanwhile."""
        return bool(super().has_change_permission(request, obj)) and not _is_of_content(obj)

    # --- writing ---------------------------------------------------------------------------------

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = EdgeForm if obj else NewEdgeForm
        return super().get_form(request, obj, change, **{"form": form, **kwargs})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*EdgeForm.Meta.fields, *self.shown_fields] if obj else NewEdgeForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.shown_fields if obj else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change and not form.changed_data:
            return
        given = form.cleaned_data
        services.upsert_edge(
            scope=scope_of_row(obj.source),
            source=obj.source.key,
            rel=obj.rel,
            target=obj.target.key,
            weight=given["weight"],
            props=given["props"],
            replace_props=True,
        )
        there = Edge.objects.get(source=obj.source_id, rel=obj.rel, target=obj.target_id)
        obj.__dict__.update(there.__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        delete_edges(edge_ids=[obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        delete_edges(edge_ids=list(queryset.values_list("pk", flat=True)))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(
            Edge.objects.filter(pk__in=[row.pk for row in objs]).select_related("source", "target")
        )
        evidence = Evidence.objects.filter(edge__in=rows)
        counts = {"edges": len(rows), "pieces of evidence": evidence.count()}
        return deletion_preview(
            self, request, [f"{row.source} {row.rel} {row.target}" for row in rows], counts
        )

    # --- what is shown ---------------------------------------------------------------------------

    @display(description="from")
    def source_name(self, row: Edge) -> SafeString:
        return named(row.source)

    @display(description="relation", ordering="rel")
    def rel_name(self, row: Edge) -> SafeString:
        return isolated(row.rel)

    @display(description="to")
    def target_name(self, row: Edge) -> SafeString:
        return named(row.target)

    @display(description="from")
    def source_link(self, row: Edge) -> str:
        return link_to(row.source)

    @display(description="to")
    def target_link(self, row: Edge) -> str:
        return link_to(row.target)

    @display(description="origin", ordering="origin", label=ORIGIN_COLOURS)
    def shown_origin(self, row: Edge) -> tuple[str, str]:
        return row.origin, row.get_origin_display()

    @display(description="passages that say so")
    @once_a_row
    def told_by(self, row: Edge) -> SafeString:
        evidence = Evidence.objects.filter(edge=row).order_by("chunk_id")
        shown = evidence.select_related("chunk__document").only(
            "start",
            "end",
            "chunk__text",
            "chunk__ordinal",
            "chunk__document__title",
            "chunk__document__key",
        )[:SHOWN_EVIDENCE]
        lines = (
            (
                link_to(each.chunk, f"{each.chunk.document} #{each.chunk.ordinal + 1}"),
                each.chunk.text[each.start : each.end][:SENTENCE_CHARACTERS],
            )
            for each in shown
        )
        listed = format_html_join("", "<div>{}: <bdi>{}</bdi></div>", lines)
        return (
            format_html("{}{} in all", listed, bounded_count(evidence))
            if listed
            else format_html("none")
        )


def _is_of_content(row: Any) -> bool:
    ends = () if row is None else (row.source, row.target)
    return any(node.document_id or node.chunk_id for node in ends)
