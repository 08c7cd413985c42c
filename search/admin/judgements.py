"""Admin of relevance judgements: the list, and the page to judge the hits of a question."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.audit import Action
from common.admin import (
    LargeTableAdmin,
    ServiceDeletion,
    choice_column,
    link_column,
    link_to,
)
from common.errors import RagsiteError
from documents.models import Chunk, Collection, Document
from search.evaluation.datasets import count_answered_questions
from search.evaluation.learned_weights import MIN_QUESTIONS
from search.judgements import Grade, judge, question_key, record_judgement, remove_judgement, row_id
from search.models import Judgement, SearchLog
from search.query import MAX_QUERY_CHARACTERS
from search.query_options import site_scope
from search.results import Hit
from search.services import search

JUDGED_HITS = 20
TAKEN_BACK = "none"
BUTTONS = (
    (Grade.PINNED, "keep", "The best there is: it should come first"),
    (Grade.GOOD, "thumb_up", "It answers the question"),
    (Grade.BAD, "thumb_down", "It does not answer the question"),
)


class QuestionForm(forms.Form):
    """The question to judge, in which collection. The collection field has the admin's
    autocompletion.
    """

    question = forms.CharField(max_length=MAX_QUERY_CHARACTERS, widget=UnfoldAdminTextInputWidget())

    def __init__(self, data: Any, *, collection: forms.Field) -> None:
        super().__init__(data)
        self.fields = {"collection": collection, **self.fields}


class OtherDocumentForm(forms.Form):
    """A document that answers the question but was not found."""

    def __init__(self, *, document: forms.Field) -> None:
        super().__init__()
        document.label = "Document"
        document.help_text = "Of this collection; search it by title or key."
        self.fields["document"] = document


def grade_buttons(given: int | None) -> list[dict[str, Any]]:
    """The three grades, the current one pressed; pressing that removes it."""
    return [
        {
            "label": grade.label,
            "icon": icon,
            "hint": hint if given != grade else "Press to take it back",
            "value": TAKEN_BACK if given == grade else grade.value,
            "pressed": given == grade,
        }
        for grade, icon, hint in BUTTONS
    ]


def judging_page(model_admin: ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Shows the question's hits, or saves the pressed grade and shows them again."""
    if "log" in request.GET:
        # From a row of the search log to its question, in the collection of the best hit.
        row = get_object_or_404(SearchLog, pk=row_id(request.GET["log"]))
        best = Document.objects.filter(pk__in=row.documents[:1])
        found = best.values_list("collection", flat=True).first()
        return redirect(judging_address(found or next(iter(row.collections), 0), row.query))
    form = QuestionForm(
        request.GET if "question" in request.GET else None,
        collection=_form_field(model_admin, request, "collection"),
    )
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": "Judge answers",
        "opts": model_admin.opts,
        "form": form,
        "least_questions": MIN_QUESTIONS,
    }
    if form.is_valid():
        collection, question = form.cleaned_data["collection"], form.cleaned_data["question"]
        if request.method == "POST":
            return save_grade(request, collection, question)
        try:
            scope = site_scope(workspace=collection.workspace, collections=[collection.slug])
            hits = search(question, scope=scope, k=JUDGED_HITS, group=True).hits
        except RagsiteError as error:
            form.add_error("question", str(error))
        else:
            other = OtherDocumentForm(document=_form_field(model_admin, request, "document"))
            context |= judging_context(collection, question, hits) | {"other": other}
    context["media"] = model_admin.media + form.media
    return TemplateResponse(request, "admin/search/judge.html", context)


def _form_field(model_admin: ModelAdmin, request: HttpRequest, name: str) -> Any:
    return model_admin.formfield_for_foreignkey(Judgement._meta.get_field(name), request)


def judging_address(collection: int, question: str) -> str:
    """URL of the page on which the hits of a question are judged."""
    query = urlencode([("collection", str(collection)), ("question", question)])
    return f"{reverse('admin:search_judgement_add')}?{query}"


def judging_context(collection: Collection, question: str, hits: tuple[Hit, ...]) -> dict[str, Any]:
    """The question's hits, and documents judged that the search did not find, with their
    judgements and buttons.
    """
    rows = Judgement.objects.filter(collection=collection, question_sha256=question_key(question))
    given = {row.document_id: row for row in rows.select_related("document", "user")}
    documents = Document.objects.in_bulk([hit.document_id for hit in hits])

    def judged(document: Document, hit: Hit | None = None) -> dict[str, Any]:
        row = given.get(document.pk)
        buttons = grade_buttons(row.grade if row else None)
        return {"document": document, "judgement": row, "hit": hit, "buttons": buttons}

    found = {hit.document_id for hit in hits}
    return {
        "collection": collection,
        "question": question,
        "address": judging_address(collection.pk, question),
        "hits": [
            judged(documents[hit.document_id], hit) for hit in hits if hit.document_id in documents
        ],
        "elsewhere": [judged(row.document) for pk, row in sorted(given.items()) if pk not in found],
        "answered": count_answered_questions(collection),
        "new_buttons": grade_buttons(None),
    }


def save_grade(request: HttpRequest, collection: Collection, question: str) -> HttpResponse:
    """Saves the grade and returns to the same place of the page."""
    document = get_object_or_404(Document, pk=row_id(request.POST.get("document")))
    grade = request.POST.get("grade")
    try:
        if grade == TAKEN_BACK:
            remove_judgement(collection=collection, question=question, document=document)
        else:
            judge(
                collection=collection,
                question=question,
                document=document,
                grade=row_id(grade),
                user=request.user,
                chunk=Chunk.objects.filter(
                    pk=row_id(request.POST.get("chunk")), document=document
                ).first(),
            )
    except RagsiteError as error:
        messages.error(request, str(error))
    return HttpResponseRedirect(
        f"{judging_address(collection.pk, question)}#document-{document.pk}"
    )


GRADE_COLOURS = {
    Judgement.Grade.PINNED: "info",
    Judgement.Grade.GOOD: "success",
    Judgement.Grade.BAD: "danger",
}


@admin.register(Judgement)
class JudgementAdmin(ServiceDeletion, LargeTableAdmin):
    """Judgements are added on the judging page; grade and note can be edited here."""

    list_display = ["question", "grade_label", "document_link", "collection", "user", "updated_at"]
    list_filter = ["grade", ("collection", AutocompleteSelectFilter), "updated_at"]
    list_select_related = ["document", "collection", "user"]
    list_heavy_fields = ("document__metadata", "document__declared", "note")
    search_fields = ["question", "document__title", "document__key"]
    autocomplete_fields = ["collection", "document"]
    ordering = ["-id"]
    document_link = link_column("document")
    grade_label = choice_column("grade", GRADE_COLOURS)
    fields = ["question", "hits", "document_link", "passage", "grade", "note", "user", "updated_at"]
    readonly_fields = ["question", "hits", "document_link", "passage", "user", "updated_at"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Judging shows passages, so it needs permission to view chunks."""
        may_read = request.user.has_perm("documents.view_chunk")
        return bool(may_read and super().has_add_permission(request))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The judging page: the hits of a question with grade buttons."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return judging_page(self, request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if "grade" in form.changed_data:
            obj.user = request.user
        with transaction.atomic():
            obj.save(update_fields=["grade", "note", "user", "updated_at"])
            record_judgement(Action.JUDGED, obj)

    def delete_rows(self, rows: Iterable[Judgement]) -> None:
        with transaction.atomic():
            for row in rows:
                record_judgement(Action.TAKEN_BACK, row)
                row.delete()

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
