"""Curation of searching: the search log and the page of unanswered questions, judgements and the
page to judge the hits of a question, evaluations. Begin with `SearchLogAdmin` and `JudgementAdmin`.
"""

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy, gettext_noop
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.audit import Action
from accounts.models import Workspace
from common.admin import (
    ConditionFilter,
    DeletionPreview,
    LargeTableAdmin,
    ReadOnlyAdmin,
    ServiceDeletion,
    choice_column,
    link_column,
    link_to,
    value_filter,
)
from common.errors import RagsiteError
from documents.models import Chunk, Collection, Document
from search.evaluation.datasets import count_answered_questions
from search.evaluation.learned_weights import MIN_QUESTIONS
from search.judgements import Grade, judge, question_key, record_judgement, remove_judgement, row_id
from search.log import OpenQuestion, Reason, open_questions
from search.models import EvaluatedQuestion, Evaluation, Judgement, SavedSearch, SearchLog
from search.query import MAX_QUERY_CHARACTERS
from search.query_options import site_scope
from search.querysets import EvaluatedQuestionQuerySet
from search.results import MODES, Hit
from search.services import search

PAGE_SIZE = 50
DAYS = (
    ("7", gettext_lazy("7 days")),
    ("30", gettext_lazy("30 days")),
    ("90", gettext_lazy("90 days")),
)
MAX_PAGES = 100
#: Label and colour of each reason.
REASON_LABELS: dict[Reason, tuple[str, str]] = {
    "nothing": (gettext_noop("nothing found"), "danger"),
    "refused": (gettext_noop("no answer"), "warning"),
    "far": (gettext_noop("nothing near"), "info"),
}


class QuestionsForm(forms.Form):
    words = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Words"),
        widget=UnfoldAdminTextInputWidget(
            attrs={"placeholder": gettext_lazy("A part of the question")}
        ),
    )
    days = forms.ChoiceField(
        choices=DAYS,
        required=False,
        label=gettext_lazy("Asked within"),
        widget=UnfoldAdminSelectWidget(),
    )
    reason = forms.ChoiceField(
        choices=[
            ("", gettext_lazy("Anything")),
            ("nothing", gettext_lazy("Nothing was found")),
            ("refused", gettext_lazy("A chat had no answer")),
            ("far", gettext_lazy("Nothing near was found")),
        ],
        required=False,
        label=gettext_lazy("What went wrong"),
        widget=UnfoldAdminSelectWidget(),
    )
    workspace = forms.ModelChoiceField(
        Workspace.objects.order_by("name"),
        required=False,
        empty_label=gettext_lazy("All"),
        widget=UnfoldAdminSelectWidget(),
    )
    page = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAGES, widget=forms.HiddenInput()
    )


def question_row(row: OpenQuestion, workspace: str) -> dict[str, Any]:
    """A question with its failure reasons as (label, colour), and links to judge, search and list
    it.
    """
    reasons = []
    for name, count in row.reasons.items():
        label, colour = REASON_LABELS[name]
        label = gettext(label)
        reasons.append((f"{label} {count}×" if count > 1 else label, colour))
    searched = urlencode({"q": row.question})
    return {
        "row": row,
        "workspace": workspace,
        "reasons": reasons,
        "judge": f"{reverse('admin:search_judgement_add')}?{urlencode({'log': row.log_id})}",
        "search": f"{reverse('search')}?{searched}",
        "log": f"{reverse('admin:search_searchlog_changelist')}?{searched}",
    }


def questions_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Shows the open questions that the form selects."""
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    form = QuestionsForm(request.GET or {"days": "30"})
    given = form.cleaned_data if form.is_valid() else {}
    page = given.get("page") or 1
    workspace = given.get("workspace")
    found = open_questions(
        workspace_id=workspace.pk if workspace else None,
        days=float(given.get("days") or 30),
        reason=given.get("reason") or None,
        words=given.get("words", ""),
        limit=PAGE_SIZE + 1,
        offset=(page - 1) * PAGE_SIZE,
    )
    names = dict(
        Workspace.objects.filter(pk__in={row.workspace_id for row in found}).values_list(
            "pk", "name"
        )
    )
    context: dict[str, Any] = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Open questions"),
        "opts": model_admin.opts,
        "form": form,
        "fields": [form[name] for name in ("words", "reason", "days", "workspace")],
        "questions": [
            question_row(row, names.get(row.workspace_id, "")) for row in found[:PAGE_SIZE]
        ],
        "several_workspaces": len(names) > 1,
        "newer": _page_address(request, page - 1) if page > 1 else "",
        "older": _page_address(request, page + 1)
        if len(found) > PAGE_SIZE and page < MAX_PAGES
        else "",
        "media": model_admin.media,
        "is_narrowed": any(given.get(name) for name in ("words", "reason", "workspace")),
    }
    return TemplateResponse(request, "admin/search/questions.html", context)


def _page_address(request: HttpRequest, page: int) -> str:
    query = request.GET.copy()
    query["page"] = str(page)
    return f"?{query.urlencode()}"


class FoundFilter(ConditionFilter):
    """How much was found. Vector search always finds something, so lexical hits say more."""

    title = gettext_lazy("found")
    parameter_name = "found"
    conditions = {
        "nothing": (gettext_noop("Nothing"), Q(total=0, tables=None)),
        "no-words": (gettext_noop("Nothing by words"), Q(lexical_total=0)),
        "some": (gettext_noop("Something"), Q(total__gt=0)),
    }


class DegradedFilter(ConditionFilter):
    """Whether a part of the search did not work."""

    title = gettext_lazy("degraded")
    parameter_name = "degraded"
    conditions = {
        "yes": (gettext_noop("Yes"), ~Q(degraded=[])),
        "no": (gettext_noop("No"), Q(degraded=[])),
    }


@admin.register(SearchLog)
class SearchLogAdmin(ReadOnlyAdmin):
    """The search log, from which hits can be judged. Rows can be deleted, not changed."""

    can_delete = True
    list_display = ["question", "found", "judge", "mode", "out_of_order", "took", "workspace"]
    list_display += ["user", "source", "created_at"]
    list_filter = [
        FoundFilter,
        DegradedFilter,
        value_filter(gettext_lazy("mode"), "mode", MODES),
        "confidence",
        "source",
        ("workspace", AutocompleteSelectFilter),
        "created_at",
    ]
    search_fields = ["query"]
    sortable_by = ["question"]
    fields = ["query", "judge", "mode", "filter", "where", "total", "best", "out_of_order", "took"]
    fields += ["confidence", "user", "source", "created_at"]
    actions_list = ["open_questions"]

    @action(
        description=gettext_lazy("Open questions"),
        permissions=["view"],
        icon="contact_support",
        url_path="open-questions",
    )
    def open_questions(self, request: HttpRequest) -> HttpResponse:
        """Page of questions without a good answer, grouped."""
        return questions_page(self, request)

    @display(description=gettext_lazy("question"), ordering="id")
    def question(self, row: SearchLog) -> str:
        return row.query

    @display(
        description="listed",
        label={"nothing": "danger", "words": "warning"},
    )
    def found(self, row: SearchLog) -> str | tuple[str, str]:
        if row.total == 0 and row.tables is None:
            return "nothing", gettext("nothing")
        if row.lexical_total == 0:
            return "words", gettext("nothing by words")
        return number_format(row.total, force_grouping=True)

    @display(description=gettext_lazy("judge"))
    def judge(self, row: SearchLog) -> str:
        if not row.collections:
            return "—"
        address = reverse("admin:search_judgement_add")
        return format_html(
            '<a class="underline" href="{}?{}">{}</a>',
            address,
            urlencode({"log": row.pk}),
            gettext("Judge the answers"),
        )

    @display(description=gettext_lazy("out of order"))
    def out_of_order(self, row: SearchLog) -> str:
        return ", ".join(row.degraded)

    @display(description=gettext_lazy("took"))
    def took(self, row: SearchLog) -> str:
        return f"{number_format(row.milliseconds, 0, force_grouping=True)} ms"

    @display(description=gettext_lazy("searched"))
    def where(self, row: SearchLog) -> str:
        collections = Collection.objects.filter(pk__in=row.collections).order_by("name")
        return _link_lines(f"{row.workspace}: ", collections) or str(row.workspace)

    @display(description=gettext_lazy("best documents"))
    def best(self, row: SearchLog) -> str:
        documents = Document.objects.in_bulk(row.documents)
        return _link_lines("", (documents[pk] for pk in row.documents if pk in documents)) or "none"


def _link_lines(before: str, rows: Iterable[Model]) -> str:
    return format_html_join("", "<div>{}{}</div>", ((before, link_to(row)) for row in rows))


@admin.register(SavedSearch)
class SavedSearchAdmin(ReadOnlyAdmin):
    """Saved searches are made and renamed on the search page; here they can be deleted."""

    can_delete = True
    list_display = ["name", "parameters", "user", "workspace", "updated_at"]
    list_filter = [("user", AutocompleteSelectFilter), ("workspace", AutocompleteSelectFilter)]
    search_fields = ["name", "parameters"]
    fields = ["name", "run", "parameters", "user", "workspace", "created_at", "updated_at"]
    readonly_fields = ["run"]

    @display(description=gettext_lazy("search"))
    def run(self, row: Any) -> str:
        return format_html(
            '<a class="underline" href="{}?{}">{}</a>',
            reverse("search"),
            row.parameters,
            gettext("Search it"),
        )


JUDGED_HITS = 20
TAKEN_BACK = "none"
BUTTONS = (
    (Grade.PINNED, "keep", gettext_lazy("The best there is: it should come first")),
    (Grade.GOOD, "thumb_up", gettext_lazy("It answers the question")),
    (Grade.BAD, "thumb_down", gettext_lazy("It does not answer the question")),
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
        document.label = gettext("Document")
        document.help_text = gettext("Of this collection; search it by title or key.")
        self.fields["document"] = document


def grade_buttons(given: int | None) -> list[dict[str, Any]]:
    """The three grades, the current one pressed; pressing that removes it."""
    return [
        {
            "label": grade.label,
            "icon": icon,
            "hint": hint if given != grade else gettext("Press to take it back"),
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
        "title": gettext("Rate answers"),
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
    list_heavy_fields = ("document__metadata", "document__declared", "note")
    search_fields = ["question", "document__title", "document__key"]
    autocomplete_fields = ["collection", "document"]
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

    @display(description=gettext_lazy("passage"))
    def passage(self, row: Judgement) -> str:
        chunks = Chunk.objects.only("document_id", "ordinal")
        return link_to(chunks.filter(pk=row.chunk_id).first() if row.chunk_id else None)

    @display(description=gettext_lazy("hits"))
    def hits(self, row: Judgement) -> str:
        return format_html(
            '<a class="underline" href="{}">{}</a>',
            judging_address(row.collection_id, row.question),
            gettext("Judge all answers in {collection}").format(collection=row.collection),
        )


STATE_COLOURS = {
    Evaluation.State.DONE: "success",
    Evaluation.State.FAILED: "danger",
    Evaluation.State.RUNNING: "info",
}


@admin.register(Evaluation)
class EvaluationAdmin(DeletionPreview, ReadOnlyAdmin):
    """Read only: evaluations are requested on the dashboard, by judging, and daily."""

    list_display = ["number", "collection", "state_label", "cause", "questions"]
    list_display += ["ndcg", "recall", "mrr", "created_at"]
    list_filter = ["state", "cause", ("collection", AutocompleteSelectFilter), "created_at"]
    list_heavy_fields = ("error",)
    search_fields = ["collection__name", "collection__slug"]
    can_delete = True
    collection_link = link_column("collection")
    state_label = choice_column("state", STATE_COLOURS)
    fields = ["collection_link", "state", "error", "cause", "user", "questions", "judgements"]
    fields += ["ndcg", "recall", "mrr", "k", "mode", "documents", "chunks", "tuning"]
    fields += ["p50_ms", "p95_ms", "created_at", "finished_at"]

    def deletion_counts(self, rows: list[Evaluation]) -> dict[str, int]:
        """With the questions that are deleted with the evaluations."""
        questions = EvaluatedQuestion.objects.filter(evaluation__in=[row.pk for row in rows])
        return {**super().deletion_counts(rows), "questions": questions.count()}

    @display(description=gettext_lazy("evaluation"), ordering="id")
    def number(self, row: Evaluation) -> str:
        return str(row)


@admin.register(EvaluatedQuestion)
class EvaluatedQuestionAdmin(ReadOnlyAdmin):
    """Results of single questions within evaluations."""

    list_display = ["question", "evaluation", "ndcg", "recall", "first_rank", "found", "good"]
    list_filter = [("evaluation__collection", AutocompleteSelectFilter)]
    search_fields = ["question_sha256"]
    evaluation_link = link_column("evaluation")
    fields = ["question", "evaluation_link", "ndcg", "recall", "first_rank", "found", "good"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = cast("EvaluatedQuestionQuerySet[Any]", super().get_queryset(request))
        return rows.with_question()

    def search_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Searches the text of the questions, which is stored with the judgements."""
        judged = Judgement.objects.filter(question__icontains=term.replace("\0", " "))
        return rows.filter(question_sha256__in=judged.values("question_sha256"))

    @display(description=gettext_lazy("question"))
    def question(self, row: Any) -> str:
        return row.judged_question or gettext("no longer judged")
