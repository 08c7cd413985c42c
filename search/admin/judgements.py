"""Judgements: the list, and instead of an empty form the page to judge hits on."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from accounts.history import Action
from common.admin import LargeTableAdmin, link_to
from documents.models import Chunk
from search.admin.judging import judging_address, judging_page
from search.judging import note_judgement
from search.models import Judgement

GRADE_COLOURS = {
    Judgement.Grade.PINNED: "info",
    Judgement.Grade.GOOD: "success",
    Judgement.Grade.BAD: "danger",
}


@admin.register(Judgement)
class JudgementAdmin(LargeTableAdmin):
    """Made where the hits are looked at; grade and note can be changed here."""

    list_display = ["question", "shown_grade", "document_link", "collection", "user", "updated_at"]
    list_filter = ["grade", ("collection", AutocompleteSelectFilter), "updated_at"]
    list_select_related = ["document", "collection", "user"]
    list_heavy_fields = ("document__metadata", "document__declared", "note")
    search_fields = ["question", "document__title", "document__key"]
    autocomplete_fields = ["collection", "document"]
    ordering = ["-id"]
    fields = ["question", "hits", "document_link", "passage", "grade", "note", "user", "updated_at"]
    readonly_fields = ["question", "hits", "document_link", "passage", "user", "updated_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Who judges reads passages."""
        may_read = request.user.has_perm("documents.view_chunk")
        return bool(may_read and super().has_add_permission(request))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The judging page: hits of a question, with buttons."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return judging_page(self, request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if "grade" in form.changed_data:
            obj.user = request.user
        with transaction.atomic():
            obj.save(update_fields=["grade", "note", "user", "updated_at"])
            note_judgement(Action.JUDGED, obj)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, Judgement.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Judgement]) -> None:
        with transaction.atomic():
            for row in queryset:
                note_judgement(Action.TAKEN_BACK, row)
            queryset.delete()

    @display(description="grade", ordering="grade", label=GRADE_COLOURS)
    def shown_grade(self, row: Judgement) -> tuple[int, str]:
        return row.grade, row.get_grade_display()

    @display(description="document", ordering="document")
    def document_link(self, row: Judgement) -> str:
        return link_to(row.document)

    @display(description="passage")
    def passage(self, row: Judgement) -> str:
        chunks = Chunk.objects.only("document_id", "ordinal")
        return link_to(chunks.filter(pk=row.chunk_id).first() if row.chunk_id else None)

    @display(description="hits")
    def hits(self, row: Judgement) -> str:
        return format_html(
            '<a class="underline" href="{}">Judge all answers in {}</a>',
            judging_address(row.collection_id, row.question),
            row.collection,
        )
