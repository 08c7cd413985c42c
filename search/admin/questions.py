"""The page of open questions: what people asked and were not answered, grouped."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.models import Workspace
from search.open_questions import OpenQuestion, Reason, open_questions

SHOWN = 50
DAYS = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"))
MOST_PAGES = 100
#: How each reason is told, and in which colour.
TOLD: dict[Reason, tuple[str, str]] = {
    "nothing": ("nothing found", "danger"),
    "refused": ("no answer", "warning"),
    "far": ("nothing near", "info"),
}


class QuestionsForm(forms.Form):
    """Which open questions."""

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
        required=False, min_value=1, max_value=MOST_PAGES, widget=forms.HiddenInput()
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """A question with what can be done about it."""

    row: OpenQuestion
    workspace: str

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """In words, each with its colour."""
        told = []
        for name, count in self.row.reasons.items():
            words, colour = TOLD[name]
            told.append((f"{words} {count}×" if count > 1 else words, colour))
        return told

    @property
    def judge(self) -> str:
        """Where its answers are judged."""
        return f"{reverse('admin:search_judgement_add')}?{urlencode({'log': self.row.log_id})}"

    @property
    def search(self) -> str:
        """Where it is searched again."""
        return f"{reverse('search')}?{urlencode({'q': self.row.question})}"

    @property
    def log(self) -> str:
        """Where its single searches are listed."""
        address = reverse("admin:search_searchlog_changelist")
        return f"{address}?{urlencode({'q': self.row.question})}"


def questions_page(model_admin: Any, request: HttpRequest) -> HttpResponse:
    """Show the open questions that the form asks for."""
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
        limit=SHOWN + 1,
        offset=(page - 1) * SHOWN,
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
        "questions": [Shown(row, names.get(row.workspace_id, "")) for row in found[:SHOWN]],
        "several_workspaces": len(names) > 1,
        "newer": _address(request, page - 1) if page > 1 else "",
        "older": _address(request, page + 1) if len(found) > SHOWN and page < MOST_PAGES else "",
        "media": model_admin.media,
        "is_narrowed": any(given.get(name) for name in ("words", "reason", "workspace")),
    }
    return TemplateResponse(request, "admin/search/questions.html", context)


def _address(request: HttpRequest, page: int) -> str:
    query = request.GET.copy()
    query["page"] = str(page)
    return f"?{query.urlencode()}"
