"""Tables of documents: looked at here, and corrected on their pages by editors of the workspace."""

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_column
from tables.models import Table


@admin.register(Table)
class TableAdmin(ReadOnlyAdmin):
    """Tables with the types of their columns."""

    document_link = link_column("document")
    list_display = ["id", "name", "document_link", "collection", "column_names", "row_count"]
    list_filter = [("collection", AutocompleteSelectFilter), "is_current"]
    list_heavy_fields = ("document__metadata", "document__declared")
    search_fields = ["name", "document__key", "document__title"]
    fields = [
        *("document_link", "collection", "ordinal", "name", "heading_path", "columns"),
        *("row_count", "rows_left_out", "columns_left_out", "is_current"),
    ]

    def page_address(self, row: Table) -> str:
        return reverse("table", args=[row.pk])

    @display(description=gettext_lazy("columns"))
    def column_names(self, row: Table) -> str:
        """Names and types of the first columns."""
        shown = [f"{each['name']} ({each['type']})" for each in row.columns[:6]]
        return ", ".join(shown) + (" …" if len(row.columns) > 6 else "")
