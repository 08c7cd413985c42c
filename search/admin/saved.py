"""Saved searches, each its owner's alone."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin
from search.models import SavedSearch


@admin.register(SavedSearch)
class SavedSearchAdmin(ReadOnlyAdmin):
    """Made and renamed on the search page. Rows can be deleted here, not changed."""

    list_display = ["name", "parameters", "user", "workspace", "updated_at"]
    list_filter = [("user", AutocompleteSelectFilter), ("workspace", AutocompleteSelectFilter)]
    list_select_related = ["user", "workspace"]
    search_fields = ["name", "parameters"]
    ordering = ["-id"]
    fields = ["name", "run", "parameters", "user", "workspace", "created_at", "updated_at"]
    readonly_fields = ["run"]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(super(ReadOnlyAdmin, self).has_delete_permission(request, obj))

    @display(description="search")
    def run(self, row: Any) -> str:
        return format_html(
            '<a class="underline" href="{}?{}">Search it</a>', reverse("search"), row.parameters
        )
