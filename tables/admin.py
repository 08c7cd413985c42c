"""Tables of documents: looked at here, and corrected on their pages by editors of the workspace.
Suggested matches of groups are accepted and refused here, too."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_column, link_to_list, requires
from common.web import errors_as_messages
from tables.groups import curation
from tables.models import Table, TableGroup, TableLayout


@admin.register(Table)
class TableAdmin(ReadOnlyAdmin):
    """Tables with the types of their columns."""

    document_link = link_column("document")
    list_display = ["id", "name", "document_link", "collection", "column_names", "row_count"]
    list_filter = [("collection", AutocompleteSelectFilter), "is_current", "is_apart"]
    list_heavy_fields = ("document__metadata", "document__declared")
    search_fields = ["name", "document__key", "document__title"]
    fields = [
        *("document_link", "collection", "ordinal", "name", "heading_path", "columns"),
        *("row_count", "rows_left_out", "columns_left_out", "is_current", "is_apart"),
    ]

    def page_address(self, row: Table) -> str:
        return reverse("table", args=[row.pk])

    @display(description=gettext_lazy("columns"))
    def column_names(self, row: Table) -> str:
        """Names and types of the first columns."""
        shown = [f"{each['name']} ({each['type']})" for each in row.columns[:6]]
        return ", ".join(shown) + (" …" if len(row.columns) > 6 else "")


#: Columns of one of the tables of a layout.
_COLUMNS = Subquery(
    Table.objects.filter(collection=OuterRef("collection"), fingerprint=OuterRef("fingerprint"))
    .order_by("-is_current", "pk")
    .values("columns")[:1]
)


def _names(columns: Sequence[Mapping[str, Any]] | None) -> str:
    """Names of the first columns."""
    names = [column["name"] for column in columns or ()]
    return ", ".join(names[:6]) + (" …" if len(names) > 6 else "")


@admin.register(TableGroup)
class TableGroupAdmin(ReadOnlyAdmin):
    """Tables that are asked as one."""

    list_display = ["id", "collection", "column_names", "layout_link", "suggestion_count"]
    list_filter = [("collection", AutocompleteSelectFilter)]
    search_fields = ["collection__slug"]
    fields = ["collection", "column_names", "layout_link", "suggestion_count"]
    readonly_fields = ["column_names", "layout_link", "suggestion_count"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = rows.annotate(
            fingerprint=Subquery(
                TableLayout.objects.filter(group=OuterRef("pk"))
                .order_by("pk")
                .values("fingerprint")[:1]
            ),
            shown_columns=_COLUMNS,
            layout_count=Count("layouts", distinct=True),
            suggested_count=Count("suggestions", distinct=True),
        )
        return counted

    def page_address(self, row: TableGroup) -> str:
        table = curation.tables_of_group(row.pk, Table.objects.all()).first()
        return reverse("table_group", args=[table.pk]) if table else ""

    @display(description=gettext_lazy("columns"))
    def column_names(self, row: Any) -> str:
        return _names(row.shown_columns)

    @display(description=gettext_lazy("layouts"))
    def layout_link(self, row: Any) -> str:
        number = number_format(row.layout_count, force_grouping=True)
        return link_to_list(TableLayout, number, group__id__exact=row.pk)

    @display(description=gettext_lazy("suggested matches"))
    def suggestion_count(self, row: Any) -> str:
        return number_format(row.suggested_count, force_grouping=True)


@admin.register(TableLayout)
class TableLayoutAdmin(ReadOnlyAdmin):
    """Tables with the same columns, with the group that is suggested for them."""

    group_link = link_column("group")
    suggested_group_link = link_column("suggested_group")
    list_display = [
        *("id", "collection", "column_names", "group_link", "suggested_group_link"),
        "is_corrected",
    ]
    list_filter = [
        ("collection", AutocompleteSelectFilter),
        ("suggested_group", admin.EmptyFieldListFilter),
        "is_corrected",
    ]
    list_select_related = ["collection", "group", "suggested_group"]
    search_fields = ["collection__slug"]
    fields = [
        *("collection", "column_names", "group_link", "positions"),
        *("suggested_group_link", "suggested_positions", "is_corrected"),
    ]
    readonly_fields = ["column_names"]
    actions = ["accept_suggestions", "refuse_suggestions"]
    has_curate_permission = requires("tables.change_tablelayout")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        named: QuerySet[Any] = rows.annotate(shown_columns=_COLUMNS)
        return named

    def page_address(self, row: TableLayout) -> str:
        table = _table_of(row)
        return reverse("table_group", args=[table.pk]) if table else ""

    @display(description=gettext_lazy("columns"))
    def column_names(self, row: Any) -> str:
        return _names(row.shown_columns)

    @admin.action(
        description=gettext_lazy("Ask together with the suggested group"), permissions=["curate"]
    )
    def accept_suggestions(self, request: HttpRequest, queryset: QuerySet[TableLayout]) -> None:
        self._each(request, queryset, curation.accept_suggestion)

    @admin.action(description=gettext_lazy("Refuse the suggested group"), permissions=["curate"])
    def refuse_suggestions(self, request: HttpRequest, queryset: QuerySet[TableLayout]) -> None:
        self._each(request, queryset, curation.refuse_suggestion)

    def _each(
        self, request: HttpRequest, rows: QuerySet[TableLayout], act: Callable[..., None]
    ) -> None:
        done = 0
        for layout in rows.order_by("pk"):
            if table := _table_of(layout):
                with errors_as_messages(request, f"{layout}: "):
                    act(table=table)
                    done += 1
        if done:
            number = number_format(done, force_grouping=True)
            self.message_user(request, gettext("Changed: {number}.").format(number=number))


def _table_of(layout: TableLayout) -> Table | None:
    """One of the tables that are laid out so."""
    rows = Table.objects.filter(collection=layout.collection_id, fingerprint=layout.fingerprint)
    return rows.select_related("document").order_by("-is_current", "pk").first()
