"""Prunings: what the quotas took."""

from django.contrib import admin
from django.template.defaultfilters import filesizeformat
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from memory.admin.base import RememberedAdmin
from memory.models import Pruning


@admin.register(Pruning)
class PruningAdmin(RememberedAdmin):
    """Counts only: what was removed said nothing that is kept."""

    list_display = ["user", "workspace", "reason", "rows", "size", "until", "created_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "reason", "created_at"]
    ordering = ["-id"]
    sortable_by = ["user"]
    fields = ["user_link", "workspace", "reason", "rows", "size", "until", "created_at"]

    @display(description="bytes", ordering="bytes")
    def size(self, row: Pruning) -> str:
        return str(filesizeformat(row.bytes))
