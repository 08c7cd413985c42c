"""Pages of the dashboard: charts of a time range, and retrieval quality by collection."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_noop
from django.views.decorators.http import require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.members import is_owner
from accounts.services import can_edit, require_editor
from common.text import parse_integer
from common.web import login_required_page
from dashboard.charts import dashboard_charts, metric_curves
from dashboard.figures import RANGE_CHOICES, read_dashboard, unanswered_questions
from dashboard.quality import (
    ANSWER_DAYS,
    ComparedQuestion,
    Comparison,
    JudgedCollection,
    answer_quality,
    compare,
    judged_collection,
    judged_collections,
)
from dashboard.usage import read_usage, require_reader, usage_charts, usage_tables
from documents.models import Collection
from documents.services import get_collection
from model_servers.services import may_manage
from search.tasks import request_evaluation
from sources.models import DataSource
from sources.notices import describe_problem

#: Questions on one page.
QUESTIONS_PER_PAGE = 100
QUESTION_FILTERS = {
    "all": gettext_noop("All"),
    "worse": gettext_noop("Worse"),
    "better": gettext_noop("Better"),
    "missed": gettext_noop("Not found"),
    "new": gettext_noop("New"),
}


@require_safe
@login_required_page
def quality_page(request: HttpRequest) -> HttpResponse:
    """Retrieval quality of every collection with judgements, and how often answers are right."""
    workspace = request_workspace(request)
    judged = judged_collections(workspace=workspace, user=request.user)
    collections = Collection.objects.visible_to(request.user).filter(workspace=workspace)
    context: dict[str, Any] = {
        "cards": [_card(each, compare(each)) for each in judged],
        "is_open": any(each.is_open for each in judged),
        "has_collections": collections.exists(),
        "degrees": answer_quality(workspace=workspace),
        "answer_days": ANSWER_DAYS,
    }
    return render(request, "dashboard/quality.html", context)


@require_safe
@login_required_page
def collection_quality(request: HttpRequest, slug: str) -> HttpResponse:
    """One collection, question by question."""
    collection = _collection(request, slug)
    judged = judged_collection(collection)
    against = parse_integer(request.GET.get("against", ""))
    comparison = compare(judged, against=against)
    show = request.GET.get("show", "")
    show = show if show in QUESTION_FILTERS else "all"
    questions = _questions(comparison, show) if comparison else []
    extra_parameters: dict[str, int] = {} if against is None else {"against": against}
    filter_links = [
        {
            "label": gettext(label),
            "count": len(_questions(comparison, name)),
            "selected": name == show,
            "url": f"?{urlencode([('show', name), *extra_parameters.items()])}",
        }
        for name, label in QUESTION_FILTERS.items()
        if comparison
    ]
    context: dict[str, Any] = {
        **_card(judged, comparison),
        "is_open": judged.is_open,
        "shown": questions[:QUESTIONS_PER_PAGE],
        "more": max(0, len(questions) - QUESTIONS_PER_PAGE),
        "shows": filter_links,
        "show": show,
        "earlier": [row for row in judged.history[::-1] if judged.last and row.pk < judged.last.pk],
    }
    return render(request, "dashboard/quality_of.html", context)


@require_POST
@login_required_page
def measure(request: HttpRequest, slug: str) -> HttpResponse:
    """Request an evaluation of the collection, and redirect to its page."""
    collection = _collection(request, slug)
    require_editor(user=request.user, workspace=collection.workspace)
    request_evaluation(collection=collection, user=request.user)
    messages.success(
        request,
        gettext("“{collection}” is being measured. The result appears on this page.").format(
            collection=collection
        ),
    )
    return redirect("dashboard_quality_of", slug=slug)


def _collection(request: HttpRequest, slug: str) -> Collection:
    return get_collection(workspace=request_workspace(request), slug=slug)


def _card(judged: JudgedCollection, comparison: Comparison | None) -> dict[str, Any]:
    return {"judged": judged, "comparison": comparison, "curves": metric_curves(judged.history)}


def _questions(comparison: Comparison, show: str) -> list[ComparedQuestion]:
    """The questions sorted by gain, worst first."""
    fits = [
        each
        for each in comparison.questions
        if (each.now.first_rank is None if show == "missed" else show in {"all", each.change})
    ]
    return sorted(fits, key=lambda each: (each.gain, each.now.ndcg, each.question))


@require_safe
@login_required_page
def dashboard_page(request: HttpRequest) -> HttpResponse:
    """Figures of the workspace; only the changing part if a script requests it."""
    workspace = request_workspace(request)
    may_edit = can_edit(user=request.user, workspace=workspace)
    board = read_dashboard(workspace=workspace, range_name=request.GET.get("range", ""))
    questions, different = unanswered_questions(
        workspace=workspace, user=request.user, range=board["range"]
    )
    context: dict[str, Any] = {
        "board": board,
        "charts": dashboard_charts(board, may_edit=may_edit),
        "ranges": [
            {
                "label": gettext(label),
                "url": f"{reverse('dashboard')}?{urlencode({'range': name})}",
                "selected": name == board["range"].name,
            }
            for name, label in RANGE_CHOICES
        ],
        "may_see_usage": may_manage(user=request.user, workspace=None)
        or is_owner(user=request.user, workspace=workspace),
        "questions": questions,
        "different": different,
        "nothing": sum(board["searched"]["nothing"]),
        "source_problems": [
            (source, text)
            for source in DataSource.objects.visible_to(request.user).filter(workspace=workspace)
            if (text := describe_problem(source))
        ],
    }
    is_part = request.headers.get("X-Part") == "figures"
    template = "dashboard/figures.html" if is_part else "dashboard/dashboard.html"
    return render(request, template, context)


@require_safe
@login_required_page
def usage_page(request: HttpRequest) -> HttpResponse:
    """What language models read, wrote and cost in the workspace, or on the whole site (`all`)."""
    workspace = request_workspace(request)
    may_see_site = may_manage(user=request.user, workspace=None)
    may_see_workspace = is_owner(user=request.user, workspace=workspace)
    is_site = "all" in request.GET or (may_see_site and not may_see_workspace)
    chosen = None if is_site else workspace
    require_reader(user=request.user, workspace=chosen)
    usage = read_usage(workspace=chosen)
    context: dict[str, Any] = {
        "charts": usage_charts(usage),
        "has_cost": usage["total"]["cost"] is not None,
        "estimated": usage["total"]["estimated_calls"],
        "tables": usage_tables(usage),
        "is_site": is_site,
        "may_see_site": may_see_site,
        "may_see_workspace": may_see_workspace,
    }
    return render(request, "dashboard/usage.html", context)
