"""Contexts: what users said."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import EXCERPT_CHARACTERS, excerpt, isolated, link_to_list
from common.wording import counted
from memory import services
from memory.admin.base import ForgettableAdmin, scope_of_row
from memory.models import Context, Fact


class EmbeddedFilter(admin.SimpleListFilter):
    """Whether a row is found by its meaning too."""

    title = "vector"
    parameter_name = "vector"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Waits for one")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(embedding__isnull=True) if self.value() == "no" else queryset


@admin.register(Context)
class ContextAdmin(ForgettableAdmin):
    """Looked at, and forgotten."""

    list_display = [
        "beginning",
        "user",
        "workspace",
        "conversation_name",
        "origin",
        "created_at",
        "has_vector",
    ]
    list_filter = [
        ("workspace", AutocompleteSelectFilter),
        "origin",
        EmbeddedFilter,
        "created_at",
    ]
    heavy_fields = ("embedding", "search_vector")
    list_heavy_fields = ("user_message", "assistant_response")
    ordering = ["-id"]
    sortable_by = ["beginning"]
    fields = [
        "user_link",
        "workspace",
        "conversation_name",
        "user_message",
        "assistant_response",
        "created_at",
        "origin",
        "learnt",
        "language",
        "size_in_words",
        "space",
        "has_vector",
        "embed_attempts",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Context]:
        embedded = ExpressionWrapper(Q(embedding__isnull=False), output_field=BooleanField())
        rows: QuerySet[Context] = super().get_queryset(request)
        return rows.annotate(embedded=embedded, said=Left("user_message", EXCERPT_CHARACTERS))

    def forget(self, rows: Iterable[Any]) -> None:
        def whose(row: Any) -> tuple[int, str]:
            return row.workspace_id, row.user_id

        for _, group in groupby(sorted(rows, key=whose), key=whose):
            theirs = list(group)
            services.forget_contexts(scope=scope_of_row(theirs[0]), ids=[row.pk for row in theirs])

    @display(description="said", ordering="id")
    def beginning(self, row: Any) -> SafeString | str:
        return excerpt(row.said) if row.said.strip() else "(only an answer)"

    @display(description="conversation")
    def conversation_name(self, row: Context) -> SafeString:
        return isolated(row.conversation)

    @display(description="facts learnt from it")
    def learnt(self, row: Context) -> SafeString:
        return link_to_list(
            Fact, counted(row.facts.count(), "fact"), source__id__exact=row.pk, held="all"
        )

    @display(description="bytes")
    def size_in_words(self, row: Context) -> str:
        return str(filesizeformat(row.size))

    @display(description="vector", boolean=True)
    def has_vector(self, row: Any) -> bool:
        return bool(row.embedded)
