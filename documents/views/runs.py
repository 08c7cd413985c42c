"""Ingestion runs: all of them, and one as it goes."""

from django.db.models import Case, Count, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from accounts.services import current_workspace
from common.errors import NotFound
from common.web import page
from documents.models import IngestionItem, IngestionRun
from documents.pace import pace_of
from documents.views.paging import page_by_id

SHOWN = 100
State = IngestionItem.State
#: Failures first, then what is under way, then the rest.
ORDER = Case(
    When(state=State.FAILED, then=Value(0)),
    When(state__in=[State.EMBEDDING, State.PARSING], then=Value(1)),
    When(state=State.WAITING, then=Value(2)),
    default=Value(3),
)


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """Newest first; polled while one of them works."""
    runs = page_by_id(_runs(request), request.GET)
    context = {
        "page": runs,
        "any_active": any(not run.is_finished for run in runs.rows),
    }
    return _page_or_part(request, "documents/runs.html", "list", context)


@require_safe
@page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One run; the part `progress` of the page is fetched again every second until it ends."""
    run = _runs(request).filter(pk=pk).first()
    if run is None:
        raise NotFound("There is no such run. It may have gone with its collection.")
    items = run.items.visible_to(request.user)
    states = dict(items.order_by().values_list("state").annotate(count=Count("pk")))
    first = _offset(request)
    rows = list(items.select_related("document").order_by(ORDER, "id")[first : first + SHOWN + 1])
    context = {
        "run": run,
        "pace": pace_of(run, states),
        "cancelled": states.get(State.CANCELLED, 0),
        "items": rows[:SHOWN],
        "first": first,
        "previous": max(first - SHOWN, 0) if first else None,
        "following": first + SHOWN if len(rows) > SHOWN else None,
    }
    return _page_or_part(request, "documents/run.html", "progress", context)


def _runs(request: HttpRequest) -> QuerySet[IngestionRun]:
    workspace = current_workspace(user=request.user)
    runs = IngestionRun.objects.visible_to(request.user).filter(workspace=workspace)
    return runs.select_related("collection", "user")


def _offset(request: HttpRequest) -> int:
    asked = request.GET.get("from", "")
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0


def _page_or_part(
    request: HttpRequest, template: str, part: str, context: dict[str, object]
) -> HttpResponse:
    """The whole page, or for htmx the part that changes. Neither may be shown for the other."""
    is_part = request.headers.get("HX-Request") == "true"
    name = f"{template}#{part}" if is_part else template
    response = render(request, name, context | {"is_part": is_part})
    patch_vary_headers(response, ["HX-Request"])
    response["Cache-Control"] = "no-store"
    return response
