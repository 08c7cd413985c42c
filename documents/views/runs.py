"""Ingestion runs: all of them, and one as it goes."""

from django.contrib import messages
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.choosing import workspace_of
from accounts.services import require_editor
from common.errors import NotFound
from common.events import TooManyStreams, stream
from common.web import page
from common.wording import counted
from documents import services
from documents.models import IngestionItem, IngestionRun
from documents.pace import pace_of, stage_times
from documents.views.paging import page_by_id
from documents.watching import follow, open_states

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
    """One run; the part `progress` of the page is fetched again as it goes, until it ends."""
    run = _run(request, pk)
    items = run.items.visible_to(request.user)
    first = _offset(request)
    rows = list(items.select_related("document").order_by(ORDER, "id")[first : first + SHOWN + 1])
    context = {
        "run": run,
        "pace": pace_of(run, open_states(run)),
        "stages": stage_times(run),
        "retryable": services.retryable(run).count() if run.failed else 0,
        "retries": run.retries.order_by("id"),
        "items": rows[:SHOWN],
        "first": first,
        "previous": max(first - SHOWN, 0) if first else None,
        "following": first + SHOWN if len(rows) > SHOWN else None,
    }
    return _page_or_part(request, "documents/run.html", "progress", context)


@require_safe
@page
def events(request: HttpRequest, pk: int) -> HttpResponse | StreamingHttpResponse:
    """The run's progress as server-sent events; 503 where too many follow theirs."""
    run = _run(request, pk)
    try:
        return stream(follow(run.pk, last_id=request.headers.get("Last-Event-ID", "")))
    except TooManyStreams as error:
        headers = {"Retry-After": str(error.retry_after)}
        return HttpResponse(str(error), status=error.status, headers=headers)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what is left out; cancel on POST."""
    run = _run(request, pk)
    require_editor(user=request.user, workspace=run.workspace)
    if request.method == "POST":
        ended = services.cancel_run(run=run, user=request.user)
        told = f"The run is cancelled: {ended.ready:,} of {counted(ended.total, 'file')} are ready."
        messages.success(request, told)
    elif not run.is_finished:
        context = {"run": run, "left": max(run.total - run.settled, 0)}
        return render(request, "documents/run_cancel.html", context)
    return redirect("run", pk=run.pk)


@require_POST
@page
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue the failed files again, and go to their run."""
    retried = services.retry_failed(run=_run(request, pk), user=request.user)
    if retried.left_out:
        named = services.in_words(retried.left_out)
        messages.warning(
            request, f"Not stored here, to be uploaded again: {named}.", extra_tags="warn"
        )
    return redirect("run", pk=retried.run.pk)


def _run(request: HttpRequest, pk: int) -> IngestionRun:
    run = _runs(request).filter(pk=pk).first()
    if run is None:
        raise NotFound("There is no such run. It may have gone with its collection.")
    return run


def _runs(request: HttpRequest) -> QuerySet[IngestionRun]:
    workspace = workspace_of(request)
    runs = IngestionRun.objects.visible_to(request.user).filter(workspace=workspace)
    return runs.select_related("collection", "user", "workspace")


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
