"""Samples: the data behind the dashboard's charts."""

from django.contrib import admin
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from common.admin import ReadOnlyAdmin
from dashboard.models import Sample


@admin.register(Sample)
class SampleAdmin(ReadOnlyAdmin):
    """Read only: samples are taken by the scheduler."""

    list_display = ["at", "workspace", "documents", "chunks", "waiting", "failed"]
    list_filter = [("workspace", AutocompleteSelectFilter), "is_estimated", "at"]
    search_fields = ["workspace__name", "workspace__slug"]
