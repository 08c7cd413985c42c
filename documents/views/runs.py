"""Ingestion runs: all of them, and one as it goes."""

from django.contrib import messages
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.formats import number_format
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import NotFound
from common.pagination import newest_first
from common.sse import TooManyStreams, stream_response
from common.text import parse_integer
from common.web import login_required_page
from documents import services
from documents.models import IngestionItem, IngestionRun
from documents.run_progress import run_progress, stage_times, stream_progress

ITEMS_PER_PAGE = 100
State = IngestionItem.State
#: Failures first, then what is under way, then the rest.
ITEM_ORDER = Case(
    When(state=State.FAILED, then=Value(0)),
    When(state__in=[State.EMBEDDING, State.PARSING], then=Value(1)),
    When(state=State.WAITING, then=Value(2)),
    default=Value(3),
)


@require_safe
@login_required_page
def index(request: HttpRequest) -> HttpResponse:
    """Newest first; polled while one of them is running."""
    runs = newest_first(_visible_runs(request), request.GET)
    context = {
        "page": runs,
        "any_active": any(not run.is_finished for run in runs.rows),
    }
    return _render_page_or_partial(request, "documents/runs.html", "list", context)


@require_safe
@login_required_page
def detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One run; the partial `progress` is reloaded until it ends."""
    run = _get_run(request, pk)
    items = run.items.visible_to(request.user)
    first = parse_integer(request.GET.get("from", "")) or 0
    rows = list(
        items.select_related("document").order_by(ITEM_ORDER, "id")[
            first : first + ITEMS_PER_PAGE + 1
        ]
    )
    context = {
        "run": run,
        "pace": run_progress(run),
        "stages": stage_times(run),
        "retryable": services.retryable(run).count() if run.failed else 0,
        "notes": services.run_notes(run, request.user),
        "retries": run.retries.order_by("id"),
        "items": rows[:ITEMS_PER_PAGE],
        "first": first,
        "previous": max(first - ITEMS_PER_PAGE, 0) if first else None,
        "following": first + ITEMS_PER_PAGE if len(rows) > ITEMS_PER_PAGE else None,
    }
    return _render_page_or_partial(request, "documents/run.html", "progress", context)


@require_safe
@login_required_page
def events(request: HttpRequest, pk: int) -> HttpResponse | StreamingHttpResponse:
    """The run's progress as server-sent events; 503 if too many streams are open."""
    run = _get_run(request, pk)
    try:
        return stream_response(
            stream_progress(
                run.pk, last_id=request.headers.get("Last-Event-ID", ""), user=request.user
            )
        )
    except TooManyStreams as error:
        headers = {"Retry-After": str(error.retry_after)}
        return HttpResponse(str(error), status=error.status, headers=headers)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what will be left out; cancel on POST."""
    run = _get_run(request, pk)
    require_editor(user=request.user, workspace=run.workspace)
    if request.method == "POST":
        ended = services.cancel_run(run=run, user=request.user)
        told = ngettext(
            "The run is cancelled: {ready} of {total} file are ready.",
            "The run is cancelled: {ready} of {total} files are ready.",
            ended.total,
        ).format(
            ready=number_format(ended.ready, force_grouping=True),
            total=number_format(ended.total, force_grouping=True),
        )
        messages.success(request, told)
    elif not run.is_finished:
        context = {"run": run, "left": max(run.total - run.settled, 0)}
        return render(request, "documents/run_cancel.html", context)
    return redirect("run", pk=run.pk)


@require_POST
@login_required_page
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue the failed files again, and go to their run."""
    retried = services.retry_failed(run=_get_run(request, pk), user=request.user)
    if retried.left_out:
        named = services.summarize_names(retried.left_out)
        messages.warning(
            request,
            gettext("Not stored here, to be uploaded again: {named}.").format(named=named),
            extra_tags="warn",
        )
    return redirect("run", pk=retried.run.pk)


def _get_run(request: HttpRequest, pk: int) -> IngestionRun:
    run = _visible_runs(request).filter(pk=pk).first()
    if run is None:
        raise NotFound(gettext("There is no such run. It may have gone with its collection."))
    return run


def _visible_runs(request: HttpRequest) -> QuerySet[IngestionRun]:
    workspace = request_workspace(request)
    runs = IngestionRun.objects.visible_to(request.user).filter(workspace=workspace)
    return runs.select_related("collection", "user", "workspace")


def _render_page_or_partial(
    request: HttpRequest, template: str, part: str, context: dict[str, object]
) -> HttpResponse:
    """The whole page, or for htmx the partial. Caches must not mix them up."""
    is_part = request.headers.get("HX-Request") == "true"
    name = f"{template}#{part}" if is_part else template
    response = render(request, name, context | {"is_part": is_part})
    patch_vary_headers(response, ["HX-Request"])
    response["Cache-Control"] = "no-store"
    return response
