"""Admin of collections, documents and chunks, and of ingestion runs, which are here; runs and
spaces are mostly read-only."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.html import format_html_join
from django.utils.translation import gettext, gettext_lazy, ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    ReadOnlyAdmin,
    choice_column,
    link_column,
    link_to_list,
    requires,
)
from common.stored_messages import translated_message
from common.translation import format_number
from common.web import errors_as_messages
from documents import services
from documents.admin import chunks, collections, spaces
from documents.admin import documents as admin_documents
from documents.models import IngestionItem, IngestionRun

__all__ = ["IngestionRunAdmin", "admin_documents", "chunks", "collections", "spaces"]

MAX_LISTED_FAILURES = 50
RUN_COLOURS = {
    IngestionRun.State.RUNNING: "info",
    IngestionRun.State.SUCCEEDED: "success",
    IngestionRun.State.PARTIAL: "warning",
    IngestionRun.State.FAILED: "danger",
    IngestionRun.State.CANCELLED: "default",
}
ITEM_COLOURS = {
    IngestionItem.State.PARSING: "info",
    IngestionItem.State.EMBEDDING: "info",
    IngestionItem.State.READY: "success",
    IngestionItem.State.SKIPPED: "success",
    IngestionItem.State.FAILED: "danger",
}


@admin.register(IngestionRun)
class IngestionRunAdmin(ReadOnlyAdmin):
    """Ingestion runs and their outcome. Read-only, but a run can be cancelled and its failed files
    retried."""

    list_display = ["name", "collection", "state_label", "progress", "user", "started_at", "took"]
    list_filter = ["state", ("collection", AutocompleteSelectFilter)]
    search_fields = ["source"]
    actions = ["cancel", "retry"]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    "source",
                    "collection_link",
                    "user",
                    "policy",
                    "retried_run",
                    "state",
                    "progress",
                    "failures",
                    "files",
                ]
            },
        ),
        (
            gettext_lazy("Work"),
            {
                "fields": [
                    "total",
                    "ready",
                    "skipped",
                    "failed",
                    "cancelled",
                    "duplicates",
                    "size",
                    "chunks",
                    "embedded",
                    "tokens",
                    "mentions",
                    "relations",
                ]
            },
        ),
        (gettext_lazy("Time"), {"fields": ["started_at", "finished_at", "took", "timings"]}),
    ]

    #: For cancelling and retrying.
    has_operate_permission = requires("documents.change_ingestionrun")

    @admin.action(description=gettext_lazy("Cancel"), permissions=["operate"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[IngestionRun]) -> None:
        self._each(request, queryset, services.cancel_run, gettext("Run {run_pk} is cancelled."))

    @admin.action(description=gettext_lazy("Retry failed files"), permissions=["operate"])
    def retry(self, request: HttpRequest, queryset: QuerySet[IngestionRun]) -> None:
        self._each(
            request, queryset, services.retry_failed, gettext("Run {run_pk} is tried again.")
        )

    def _each(
        self, request: HttpRequest, runs: QuerySet[IngestionRun], act: Callable[..., Any], done: str
    ) -> None:
        for run in runs:
            with errors_as_messages(request):
                act(run=run)
                messages.success(request, done.format(run_pk=run.pk))

    retried_run = link_column("retry_of")
    collection_link = link_column("collection")
    state_label = choice_column("state", RUN_COLOURS)

    @display(description=gettext_lazy("run"), ordering="id")
    def name(self, run: IngestionRun) -> str:
        return f"{run.pk}: {run.source}" if run.source else f"{run.pk}"

    @display(description=gettext_lazy("progress"))
    def progress(self, run: IngestionRun) -> str:
        parts = [
            gettext("{done} of {total}").format(
                done=number_format(run.settled, force_grouping=True),
                total=number_format(run.total, force_grouping=True),
            )
        ]
        for number, words in (
            (run.skipped, gettext("{number} unchanged")),
            (run.failed, gettext("{number} failed")),
            (run.cancelled, gettext("{number} cancelled")),
        ):
            if number:
                parts.append(words.format(number=number_format(number, force_grouping=True)))
        return ", ".join(parts)

    @display(description=gettext_lazy("took"))
    def took(self, run: IngestionRun) -> str:
        if run.finished_at is None:
            return "—"
        return f"{format_number((run.finished_at - run.started_at).total_seconds(), 1)} s"

    @display(description=gettext_lazy("bytes"))
    def size(self, run: IngestionRun) -> str:
        return str(filesizeformat(run.bytes))

    @display(description=gettext_lazy("failures"))
    def failures(self, run: IngestionRun) -> str:
        failed = run.items.filter(state=IngestionItem.State.FAILED)[:MAX_LISTED_FAILURES]
        rows = [(item.name, translated_message(item.error)) for item in failed]
        return format_html_join("", "<div><b>{}</b>: {}</div>", rows) or gettext("none")

    @display(description=gettext_lazy("files"))
    def files(self, run: IngestionRun) -> str:
        files = ngettext("{number} file", "{number} files", run.total).format(
            number=number_format(run.total, force_grouping=True)
        )
        return link_to_list(IngestionItem, files, run__id__exact=run.pk)


@admin.register(IngestionItem)
class IngestionItemAdmin(ReadOnlyAdmin):
    """One file of a run."""

    list_display = ["name", "run_link", "state_label", "error", "document_link"]
    list_filter = ["state", ("run", AutocompleteSelectFilter)]
    list_select_related = ["run__collection", "document"]
    list_heavy_fields = ("document__metadata", "document__declared")
    search_fields = ["name"]
    fields = ["name", "run_link", "document_link", "size", "state", "error_code", "error"]
    run_link = link_column("run")
    document_link = link_column("document")
    state_label = choice_column("state", ITEM_COLOURS)
