"""Sources and their runs; names of files are on the pages of those who may see the documents."""

from django.contrib import admin
from django.urls import reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from common.admin import ReadOnlyAdmin
from sources.models import DataSource, DataSourceItem, DataSourceNotice, DataSourceRun


@admin.register(DataSource)
class DataSourceAdmin(ReadOnlyAdmin):
    """Its options are on its page, for editors; its passwords nowhere."""

    list_display = [
        "name",
        "workspace",
        "collection",
        "connector",
        "state",
        "problem",
        "failures",
        "due_at",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "connector", "state", "problem"]
    search_fields = ["name"]
    ordering = ["name", "id"]
    sortable_by = ["due_at"]
    fields = [
        *list_display,
        *("schedule", "delete_missing", "max_deletions", "problem_since", "error"),
    ]

    def page_address(self, row: DataSource) -> str:
        return reverse("source_change", args=[row.pk])


@admin.register(DataSourceItem)
class DataSourceItemAdmin(ReadOnlyAdmin):
    """What a source lists, without names."""

    list_display = ["id", "source", "workspace", "size", "failures", "modified_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "failures"]
    search_fields = ["source__name"]
    sortable_by = ["modified_at"]
    fields = list_display[1:]


@admin.register(DataSourceRun)
class DataSourceRunAdmin(ReadOnlyAdmin):
    """What each run found and did."""

    list_display = [
        "source",
        "workspace",
        "state",
        "cause",
        "new",
        "changed",
        "deleted",
        "failed",
        "started_at",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "state", "started_at"]
    search_fields = ["source__name"]
    sortable_by = ["started_at"]
    fields = [*list_display, "listed", "fetched", "renamed", "bytes", "error", "finished_at"]


@admin.register(DataSourceNotice)
class DataSourceNoticeAdmin(ReadOnlyAdmin):
    """Messages that are to be sent, and those that were given up with the reason."""

    list_display = ["source", "workspace", "user", "problem", "is_over", "state", "due_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "state", "problem"]
    search_fields = ["source__name"]
    sortable_by = ["due_at"]
    fields = [*list_display, "since", "attempts", "outages", "error", "created_at"]
