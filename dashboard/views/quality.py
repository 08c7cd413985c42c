"""Quality: how good the answers are by what people judged, collection by collection."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from accounts.choosing import workspace_of
from accounts.services import require_editor
from common.web import page
from dashboard.charts.curve import curves
from dashboard.reading.quality import (
    Compared,
    Comparison,
    Judged,
    compare,
    judged_collection,
    judged_collections,
)
from documents.models import Collection
from documents.services import get_collection
from search.measuring import request_evaluation

#: Questions on one page.
SHOWN = 100
SHOWS = {"all": "All", "worse": "Worse", "better": "Better", "missed": "Not found", "new": "New"}


@require_safe
@page
def quality_page(request: HttpRequest) -> HttpResponse:
    """Every collection with judgements."""
    workspace = workspace_of(request)
    judged = judged_collections(workspace=workspace, user=request.user)
    collections = Collection.objects.visible_to(request.user).filter(workspace=workspace)
    context: dict[str, Any] = {
        "cards": [_card(each, compare(each)) for each in judged],
        "is_open": any(each.is_open for each in judged),
        "has_collections": collections.exists(),
    }
    return render(request, "dashboard/quality.html", context)


@require_safe
@page
def quality_of(request: HttpRequest, slug: str) -> HttpResponse:
    """One collection, question by question."""
    collection = _collection(request, slug)
    judged = judged_collection(collection)
    against = _number(request.GET.get("against", ""))
    comparison = compare(judged, against=against)
    show = request.GET.get("show", "")
    show = show if show in SHOWS else "all"
    questions = _questions(comparison, show) if comparison else []
    context: dict[str, Any] = {
        **_card(judged, comparison),
        "is_open": judged.is_open,
        "shown": questions[:SHOWN],
        "more": max(0, len(questions) - SHOWN),
        "shows": _shows(comparison, show, against=against) if comparison else [],
        "show": show,
        "earlier": [row for row in judged.history[::-1] if judged.last and row.pk < judged.last.pk],
    }
    return render(request, "dashboard/quality_of.html", context)


@require_POST
@page
def measure(request: HttpRequest, slug: str) -> HttpResponse:
    """Have the collection measured, and come back to where one was."""
    collection = _collection(request, slug)
    require_editor(user=request.user, workspace=collection.workspace)
    request_evaluation(collection=collection, user=request.user)
    messages.success(request, f"“{collection}” is being measured. The page shows it when done.")
    return redirect("dashboard_quality_of", slug=slug)


def _collection(request: HttpRequest, slug: str) -> Collection:
    return get_collection(workspace=workspace_of(request), slug=slug)


def _card(judged: Judged, comparison: Comparison | None) -> dict[str, Any]:
    return {"judged": judged, "comparison": comparison, "curves": curves(judged.history)}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _questions(comparison: Comparison, show: str) -> list[Compared]:
    """What got worse first, then what is worst."""
    fits = [each for each in comparison.questions if _fits(each, show)]
    return sorted(fits, key=lambda each: (each.gain, each.now.ndcg, each.question))


def _fits(each: Compared, show: str) -> bool:
    if show == "missed":
        return each.now.first_rank is None
    return show in {"all", each.change}


def _shows(comparison: Comparison, show: str, *, against: int | None) -> list[dict[str, Any]]:
    """The choices above the questions, with how many each would show."""
    kept: dict[str, int] = {} if against is None else {"against": against}
    return [
        {
            "label": label,
            "count": len(_questions(comparison, name)),
            "selected": name == show,
            "url": f"?{urlencode([('show', name), *kept.items()])}",
        }
        for name, label in SHOWS.items()
    ]
