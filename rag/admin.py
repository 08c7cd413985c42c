"""Pipelines and how their runs went. Questions and answers are visible to their user only."""

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin
from rag.models import Conversation, DatabaseConnection, Message, Pipeline, Span, Summary, Trace


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Conversations and their users; not their titles, which are the first questions."""

    list_display = ["number", "user", "workspace", "pipeline", "created_at", "updated_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "updated_at"]
    search_fields = ["user__username"]
    sortable_by = ["created_at"]
    fields = list_display

    @display(description=gettext_lazy("conversation"))
    def number(self, row: Conversation) -> str:
        return str(row)


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    """Figures of answers, without any text of users or documents."""

    list_display = [
        "conversation",
        "workspace",
        "role",
        "state",
        "model",
        "finish_reason",
        "input_tokens",
        "output_tokens",
        "elapsed_ms",
        "error_code",
        "created_at",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "role", "state", "created_at"]
    search_fields = ["model"]
    sortable_by = ["created_at"]
    fields = [*list_display, "generator", "pipeline", "degraded", "first_token_ms"]


@admin.register(Span)
class SpanAdmin(ReadOnlyAdmin):
    """Which steps take long, and which fail."""

    list_display = [
        "trace",
        "workspace",
        "kind",
        "type",
        "state",
        "started_at",
        "taken",
        "input_tokens",
        "output_tokens",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "kind", "state", "started_at"]
    sortable_by = ["started_at"]
    fields = [*list_display, "iteration"]

    @display(description=gettext_lazy("milliseconds"))
    def taken(self, row: Span) -> str:
        return f"{row.milliseconds:.0f}"


@admin.register(Pipeline)
class PipelineAdmin(ReadOnlyAdmin):
    """Read only: pipelines are edited on their own page, which validates them."""

    list_display = ["name", "slug", "workspace", "version", "changed_by", "updated_at"]
    list_filter = [("workspace", AutocompleteSelectFilter)]
    search_fields = ["name", "slug"]
    ordering = ["slug"]
    fields = [
        "name",
        "slug",
        "workspace",
        "description",
        "definition",
        "version",
        "changed_by",
        "created_at",
        "updated_at",
    ]

    def page_address(self, row: Pipeline) -> str:
        return reverse("pipeline_edit", args=[row.slug])


@admin.register(DatabaseConnection)
class DatabaseConnectionAdmin(ReadOnlyAdmin):
    """They are made and changed on the page Databases, where they are tried. Their passwords are
    shown nowhere."""

    list_display = ["name", "address", "username", "workspace", "is_enabled", "updated_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "is_enabled", "by_operator"]
    search_fields = ["name", "address"]
    ordering = ["name", "id"]
    sortable_by = ["name", "updated_at"]
    fields = [
        *("name", "workspace", "collection", "address", "database", "username", "encryption"),
        *("seconds", "max_rows", "access", "is_enabled", "by_operator"),
        *("server_version", "tried_at", "created_at", "updated_at"),
    ]

    def page_address(self, row: DatabaseConnection) -> str:
        return reverse("database", args=[row.pk])


@admin.register(Trace)
class TraceAdmin(ReadOnlyAdmin):
    """Figures only: no question, no answer, no text of documents."""

    list_display = [
        "pipeline",
        "workspace",
        "user",
        "state",
        "started_at",
        "seconds",
        "input_tokens",
        "output_tokens",
        "error_code",
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "state", "started_at"]
    search_fields = ["pipeline"]
    sortable_by = ["started_at"]
    fields = ["version", *list_display, "removed_at"]

    @display(description=gettext_lazy("seconds"))
    def seconds(self, row: Trace) -> str:
        if row.ended_at is None:
            return "–"
        return f"{(row.ended_at - row.started_at).total_seconds():.1f}"


@admin.register(Summary)
class SummaryAdmin(ReadOnlyAdmin):
    """How they were made; not their texts, which only those may read who may read the documents."""

    list_display = ["id", "workspace", "kind", "model", "state", "passage_count", "created_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "kind", "state", "created_at"]
    search_fields = ["model"]
    sortable_by = ["created_at"]
    fields = [*list_display[1:], "calls_done", "calls_total", "error_code"]
