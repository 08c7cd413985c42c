"""The page to judge on: what a question finds now, each hit with its buttons."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from common.errors import RagsiteError
from documents.models import Chunk, Collection, Document
from search.evaluation.golden import answered_questions
from search.evaluation.tuning import LEAST_QUESTIONS
from search.judging import Grade, judge, question_key, unjudge
from search.models import Judgement, SearchLog
from search.query import MAX_QUERY_CHARACTERS
from search.results import Hit
from search.services import search, site_scope

SHOWN_HITS = 20
TAKEN_BACK = "none"
BUTTONS = (
    (Grade.PINNED, "keep", "The best there is: it should come first"),
    (Grade.GOOD, "thumb_up", "It answers the question"),
    (Grade.BAD, "thumb_down", "It does not answer the question"),
)


class QuestionForm(forms.Form):
    """What is judged. The collection's field is the admin's, with its autocompletion."""

    question = forms.CharField(max_length=MAX_QUERY_CHARACTERS, widget=UnfoldAdminTextInputWidget())

    def __init__(self, data: Any, *, collection: forms.Field) -> None:
        super().__init__(data)
        self.fields = {"collection": collection, **self.fields}


class OtherDocumentForm(forms.Form):
    """An answer that the search does not bring."""

    def __init__(self, *, document: forms.Field) -> None:
        super().__init__()
        document.label = "Document"
        document.help_text = "Of this collection; search it by title or key."
        self.fields["document"] = document


@dataclass(frozen=True, slots=True)
class Button:
    """A grade to press; pressing the one that holds takes it back."""

    label: str
    icon: str
    hint: str
    value: int | str
    pressed: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """A document with what was said of it; `hit` is None where the search does not bring it."""

    document: Document
    judgement: Judgement | None
    hit: Hit | None = None

    @property
    def buttons(self) -> list[Button]:
        """Pinned, good, bad."""
        said = self.judgement.grade if self.judgement else None
        return [
            Button(
                label=grade.label,
                icon=icon,
                hint=hint if said != grade else "Press to take it back",
                value=TAKEN_BACK if said == grade else grade.value,
                pressed=said == grade,
            )
            for grade, icon, hint in BUTTONS
        ]


def judging_page(model_admin: ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Show the question's hits, or do what was pressed and show them again."""
    if "log" in request.GET:
        return _question_of_log(request)
    form = QuestionForm(
        request.GET if "question" in request.GET else None,
        collection=_field(model_admin, request, "collection"),
    )
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": "Judge answers",
        "opts": model_admin.opts,
        "form": form,
        "least_questions": LEAST_QUESTIONS,
    }
    if form.is_valid():
        collection, question = form.cleaned_data["collection"], form.cleaned_data["question"]
        if request.method == "POST":
            return _pressed(request, collection, question)
        try:
            hits = _hits(collection, question)
        except RagsiteError as error:
            form.add_error("question", str(error))
        else:
            other = OtherDocumentForm(document=_field(model_admin, request, "document"))
            context |= _found(collection, question, hits) | {"other": other}
    context["media"] = model_admin.media + form.media
    return TemplateResponse(request, "admin/search/judge.html", context)


def _field(model_admin: ModelAdmin, request: HttpRequest, name: str) -> Any:
    return model_admin.formfield_for_foreignkey(Judgement._meta.get_field(name), request)


def _question_of_log(request: HttpRequest) -> HttpResponse:
    """From a row of the search log to its question, in the collection of the best hit."""
    row = get_object_or_404(SearchLog, pk=_number(request.GET["log"]))
    best = Document.objects.filter(pk__in=row.documents[:1]).values_list("collection", flat=True)
    collection = best.first() or next(iter(row.collections), 0)
    return redirect(judging_address(collection, row.query))


def judging_address(collection: int, question: str) -> str:
    """Where the answers to a question are judged."""
    query = urlencode([("collection", str(collection)), ("question", question)])
    return f"{reverse('admin:search_judgement_add')}?{query}"


def _hits(collection: Collection, question: str) -> tuple[Hit, ...]:
    scope = site_scope(workspace=collection.workspace, collections=[collection.slug])
    return search(question, scope=scope, k=SHOWN_HITS, group=True).hits


def _found(collection: Collection, question: str, hits: tuple[Hit, ...]) -> dict[str, Any]:
    said = {
        row.document_id: row
        for row in Judgement.objects.filter(
            collection=collection, question_sha256=question_key(question)
        ).select_related("document", "user")
    }
    documents = Document.objects.in_bulk([hit.document_id for hit in hits])
    found = {hit.document_id for hit in hits}
    return {
        "collection": collection,
        "question": question,
        "address": judging_address(collection.pk, question),
        "hits": [
            Judged(documents[hit.document_id], said.get(hit.document_id), hit)
            for hit in hits
            if hit.document_id in documents
        ],
        "elsewhere": [
            Judged(row.document, row) for pk, row in sorted(said.items()) if pk not in found
        ],
        "answered": answered_questions(collection),
        "new_buttons": Judged(Document(), None).buttons,
    }


def _pressed(request: HttpRequest, collection: Collection, question: str) -> HttpResponse:
    """Judge, and come back to the same place of the page."""
    document = get_object_or_404(Document, pk=_number(request.POST.get("document")))
    grade = request.POST.get("grade")
    try:
        if grade == TAKEN_BACK:
            unjudge(collection=collection, question=question, document=document)
        else:
            judge(
                collection=collection,
                question=question,
                document=document,
                grade=_number(grade),
                user=request.user,
                chunk=Chunk.objects.filter(
                    pk=_number(request.POST.get("chunk")), document=document
                ).first(),
            )
    except RagsiteError as error:
        messages.error(request, str(error))
    return HttpResponseRedirect(
        f"{judging_address(collection.pk, question)}#document-{document.pk}"
    )


def _number(value: str | None) -> int:
    """What was sent as a number; anything else is one that nothing has."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else -1
