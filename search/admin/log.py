"""The search log."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display

from common.admin import ReadOnlyAdmin, link_to
from documents.models import Collection, Document
from search.admin.questions import questions_page
from search.models import SearchLog
from search.results import MODES


class FoundFilter(admin.SimpleListFilter):
    """How much was found. By meaning something is always near: words tell more."""

    title = "found"
    parameter_name = "found"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("nothing", "Nothing"), ("no-words", "Nothing by words"), ("some", "Something")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "nothing":
                return queryset.filter(total=0)
            case "no-words":
                return queryset.filter(lexical_total=0)
            case "some":
                return queryset.filter(total__gt=0)
        return queryset


class DegradedFilter(admin.SimpleListFilter):
    """Whether a part of the site was out of order."""

    title = "degraded"
    parameter_name = "degraded"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "yes":
                return queryset.exclude(degraded=[])
            case "no":
                return queryset.filter(degraded=[])
        return queryset


class ModeFilter(admin.SimpleListFilter):
    """How was searched."""

    title = "mode"
    parameter_name = "mode"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(mode, mode.capitalize()) for mode in MODES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(mode=self.value()) if self.value() else queryset


@admin.register(SearchLog)
class SearchLogAdmin(ReadOnlyAdmin):
    """What was asked, to be judged. Rows can be deleted, not changed."""

    list_display = [
        "question",
        "found",
        "judge",
        "mode",
        "out_of_order",
        "took",
        "workspace",
        "user",
        "source",
        "created_at",
    ]
    list_filter = [
        FoundFilter,
        DegradedFilter,
        ModeFilter,
        "source",
        ("workspace", AutocompleteSelectFilter),
        "created_at",
    ]
    list_select_related = ["workspace", "user"]
    search_fields = ["query"]
    ordering = ["-id"]
    sortable_by = ["question"]
    fields = [
        "query",
        "judge",
        "mode",
        "filter",
        "where",
        "found",
        "best",
        "out_of_order",
        "took",
        "user",
        "source",
        "created_at",
    ]

    actions_list = ["open_questions"]

    @action(
        description="Open questions",
        permissions=["view"],
        icon="contact_support",
        url_path="open-questions",
    )
    def open_questions(self, request: HttpRequest) -> HttpResponse:
        """Those that nothing near was found for, grouped."""
        return questions_page(self, request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(super(ReadOnlyAdmin, self).has_delete_permission(request, obj))

    @display(description="question", ordering="id")
    def question(self, row: SearchLog) -> str:
        return row.query

    @display(
        description="listed",
        label={"nothing": "danger", "nothing by words": "warning"},
    )
    def found(self, row: SearchLog) -> str:
        if row.total == 0:
            return "nothing"
        return "nothing by words" if row.lexical_total == 0 else f"{row.total:,}"

    @display(description="judge")
    def judge(self, row: SearchLog) -> str:
        if not row.collections:
            return "—"
        address = reverse("admin:search_judgement_add")
        return format_html(
            '<a class="underline" href="{}?{}">Judge the answers</a>',
            address,
            urlencode({"log": row.pk}),
        )

    @display(description="out of order")
    def out_of_order(self, row: SearchLog) -> str:
        return ", ".join(row.degraded)

    @display(description="took")
    def took(self, row: SearchLog) -> str:
        return f"{row.milliseconds:,.0f} ms"

    @display(description="searched")
    def where(self, row: SearchLog) -> str:
        collections = Collection.objects.filter(pk__in=row.collections).order_by("name")
        return _lines(f"{row.workspace}: ", collections) or str(row.workspace)

    @display(description="best documents")
    def best(self, row: SearchLog) -> str:
        documents = Document.objects.in_bulk(row.documents)
        return _lines("", (documents[pk] for pk in row.documents if pk in documents)) or "none"


def _lines(before: str, rows: Iterable[Model]) -> str:
    return format_html_join("", "<div>{}{}</div>", ((before, link_to(row)) for row in rows))
