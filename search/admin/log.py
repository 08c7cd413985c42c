"""Admin of the search log, the page of unanswered questions, and saved searches."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.models import Workspace
from common.admin import ConditionFilter, ReadOnlyAdmin, link_to
from documents.models import Collection, Document
from search.log import OpenQuestion, Reason, open_questions
from search.models import SavedSearch, SearchLog
from search.results import MODES

PAGE_SIZE = 50
DAYS = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
MAX_PAGES = 100
#: Label and colour of each reason.
REASON_LABELS: dict[Reason, tuple[str, str]] = {
    "nothing": ("nothing found", "danger"),
    "refused": ("no answer", "warning"),
    "far": ("nothing near", "info"),
}


class QuestionsForm(forms.Form):
    words = forms.CharField(
        required=False,
        max_length=200,
        label="Words",
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "A part of the question"}),
    )
    days = forms.ChoiceField(
        choices=DAYS, required=False, label="Asked within", widget=UnfoldAdminSelectWidget()
    )
    reason = forms.ChoiceField(
        choices=[
            ("", "Anything"),
            ("nothing", "Nothing was found"),
            ("refused", "A chat had no answer"),
            ("far", "Nothing near was found"),
        ],
        required=False,
        label="What went wrong",
        widget=UnfoldAdminSelectWidget(),
    )
    workspace = forms.ModelChoiceField(
        Workspace.objects.order_by("name"),
        required=False,
        empty_label="All",
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
        "title": "Open questions",
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

    title = parameter_name = "found"
    conditions = {
        "nothing": ("Nothing", Q(total=0)),
        "no-words": ("Nothing by words", Q(lexical_total=0)),
        "some": ("Something", Q(total__gt=0)),
    }


class DegradedFilter(ConditionFilter):
    """Whether a part of the search did not work."""

    title = parameter_name = "degraded"
    conditions = {"yes": ("Yes", ~Q(degraded=[])), "no": ("No", Q(degraded=[]))}


class ModeFilter(ConditionFilter):
    title = parameter_name = "mode"
    conditions = {mode: (mode.capitalize(), Q(mode=mode)) for mode in MODES}


@admin.register(SearchLog)
class SearchLogAdmin(ReadOnlyAdmin):
    """The search log, from which hits can be judged. Rows can be deleted, not changed."""

    can_delete = True
    list_display = ["question", "found", "judge", "mode", "out_of_order", "took", "workspace"]
    list_display += ["user", "source", "created_at"]
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
    fields = ["query", "judge", "mode", "filter", "where", "found", "best", "out_of_order", "took"]
    fields += ["user", "source", "created_at"]
    actions_list = ["open_questions"]

    @action(
        description="Open questions",
        permissions=["view"],
        icon="contact_support",
        url_path="open-questions",
    )
    def open_questions(self, request: HttpRequest) -> HttpResponse:
        """Page of questions without a good answer, grouped."""
        return questions_page(self, request)

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
        return _link_lines(f"{row.workspace}: ", collections) or str(row.workspace)

    @display(description="best documents")
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
    list_select_related = ["user", "workspace"]
    search_fields = ["name", "parameters"]
    ordering = ["-id"]
    fields = ["name", "run", "parameters", "user", "workspace", "created_at", "updated_at"]
    readonly_fields = ["run"]

    @display(description="search")
    def run(self, row: Any) -> str:
        return format_html(
            '<a class="underline" href="{}?{}">Search it</a>', reverse("search"), row.parameters
        )
