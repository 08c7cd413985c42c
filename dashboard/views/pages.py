"""The dashboard: charts of a range, and the questions that nothing was found for."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.choosing import workspace_of
from accounts.services import can_edit
from common.web import page
from dashboard.charts.board import charts
from dashboard.ranges import KINDS
from dashboard.reading import read_board, unanswered


@require_safe
@page
def dashboard_page(request: HttpRequest) -> HttpResponse:
    """Figures of the workspace; what changes alone where a script asks for the part."""
    workspace = workspace_of(request)
    may_edit = can_edit(user=request.user, workspace=workspace)
    board = read_board(workspace=workspace, range_name=request.GET.get("range", ""))
    questions, different = unanswered(workspace=workspace, user=request.user, range=board.range)
    context: dict[str, Any] = {
        "board": board,
        "charts": charts(board, may_edit=may_edit),
        "ranges": [
            {
                "label": kind.label,
                "url": f"{reverse('dashboard')}?{urlencode({'range': name})}",
                "selected": name == board.range.kind.name,
            }
            for name, kind in KINDS.items()
        ],
        "questions": questions,
        "different": different,
        "nothing": sum(board.searched.nothing),
    }
    is_part = request.headers.get("X-Part") == "figures"
    template = "dashboard/figures.html" if is_part else "dashboard/dashboard.html"
    return render(request, template, context)
