"""Admin of edges and of aliases."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from accounts.models import Workspace
from common.admin import bidi_isolated, link_column, link_to
from graph.admin.forms import (
    EdgeForm,
    GraphAdmin,
    NewAliasForm,
    NewEdgeForm,
    RelationFilter,
    bounded_count,
    cached_per_row,
    matching_node_ids,
    node_label,
)
from graph.extraction.normalized_names import normalize_name
from graph.models import Alias, Edge, Evidence
from graph.node_ids import is_retired_id_form
from graph.services.edits import delete_edges, remove_aliases


@admin.register(Alias)
class AliasAdmin(GraphAdmin):
    """Aliases are added and removed, never edited."""

    form = new_form = NewAliasForm
    list_display = ["name", "node_name", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), ("node", AutocompleteSelectFilter)]
    list_select_related = ["node", "workspace"]
    list_heavy_fields = ("node__props",)
    search_fields = ["form"]
    search_help_text = gettext_lazy("The full name, in any spelling.")
    sortable_by = ["name"]
    autocomplete_fields = ["node"]
    shown_fields = ["node", "name", "workspace"]

    def search_rows(self, rows: QuerySet[Alias], term: str) -> QuerySet[Alias]:
        # With the workspaces named, an index finds the name.
        workspaces = list(Workspace.objects.values_list("pk", flat=True))
        return rows.filter(workspace__in=workspaces, form__in={normalize_name(term), term})

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def delete_rows(self, rows: Iterable[Alias]) -> None:
        remove_aliases(alias_ids=[row.pk for row in rows])

    @display(description=gettext_lazy("name"), ordering="form")
    def name(self, row: Alias) -> SafeString:
        """The normalised name; for a merged node, its former id."""
        is_id = is_retired_id_form(row.form)
        return bidi_isolated(
            gettext("former id {value}").format(value=row.form[1:]) if is_id else row.form
        )

    @display(description=gettext_lazy("means"))
    def node_name(self, row: Alias) -> SafeString:
        return node_label(row.node)


MAX_EVIDENCE = 20
MAX_SENTENCE_CHARACTERS = 500


@admin.register(Edge)
class EdgeAdmin(GraphAdmin):
    """Weight and properties can be edited; another relation is another edge."""

    form, new_form = EdgeForm, NewEdgeForm
    edited_fields = ["weight", "props"]
    list_display = ["source_name", "rel_name", "target_name", "weight", "origin_label", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), RelationFilter, "origin"]
    list_select_related = ["workspace", "source", "target"]
    list_heavy_fields = ("props", "source__props", "target__props")
    search_fields = ["source__name"]
    search_help_text = gettext_lazy("One of its nodes: part of the name, or the full id.")
    sortable_by = ["rel_name"]
    list_display_links = ["rel_name"]
    autocomplete_fields = ["source", "target"]
    source_link = link_column("source", "from")
    target_link = link_column("target", "to")
    shown_fields = [
        "source_link",
        "rel_name",
        "target_link",
        "workspace",
        "origin",
        "evidence_list",
        "updated_at",
    ]

    def search_rows(self, rows: QuerySet[Edge], term: str) -> QuerySet[Edge]:
        nodes = matching_node_ids(term)
        return rows.filter(Q(source__in=nodes) | Q(target__in=nodes))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not for edges of documents and passages: ids of these may mean a newer
        version meanwhile.
        """
        ends = () if obj is None else (obj.source, obj.target)
        is_content = any(node.document_id or node.chunk_id for node in ends)
        return bool(super().has_change_permission(request, obj)) and not is_content

    def delete_rows(self, rows: Iterable[Edge]) -> None:
        delete_edges(edge_ids=[row.pk for row in rows])

    def deletion_counts(self, rows: list[Edge]) -> dict[str, int]:
        evidence = Evidence.objects.filter(edge__in=[row.pk for row in rows])
        return {**super().deletion_counts(rows), gettext("pieces of evidence"): evidence.count()}

    def deletion_name(self, row: Edge) -> str:
        return f"{row.source} {row.rel} {row.target}"

    @display(description=gettext_lazy("from"))
    def source_name(self, row: Edge) -> SafeString:
        return node_label(row.source)

    @display(description=gettext_lazy("relation"), ordering="rel")
    def rel_name(self, row: Edge) -> SafeString:
        return bidi_isolated(row.rel)

    @display(description=gettext_lazy("to"))
    def target_name(self, row: Edge) -> SafeString:
        return node_label(row.target)

    @display(description=gettext_lazy("supporting passages"))
    @cached_per_row
    def evidence_list(self, row: Edge) -> SafeString:
        evidence = Evidence.objects.filter(edge=row).order_by("chunk_id")
        shown = evidence.select_related("chunk__document").only(
            "start",
            "end",
            "chunk__text",
            "chunk__ordinal",
            "chunk__document__title",
            "chunk__document__key",
        )[:MAX_EVIDENCE]
        lines = (
            (
                link_to(each.chunk, f"{each.chunk.document} #{each.chunk.ordinal + 1}"),
                each.chunk.text[each.start : each.end][:MAX_SENTENCE_CHARACTERS],
            )
            for each in shown
        )
        listed = format_html_join("", "<div>{}: <bdi>{}</bdi></div>", lines)
        return (
            format_html(gettext("{}{} in all"), listed, bounded_count(evidence))
            if listed
            else format_html("{}", gettext("none"))
        )
