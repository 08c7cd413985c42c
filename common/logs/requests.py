"""The middleware behind static files: gives each request an id, and notes how it was answered."""

import logging
from collections.abc import Callable
from time import perf_counter

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from common.logs.context import NOTHING, Work, begin, current_work, request_id_of, route
from common.metrics import REQUEST_SECONDS

logger = logging.getLogger("ragsite.access")

HEADER = "X-Request-ID"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Programs ask these every few seconds: they are lines for who debugs.
_QUIET = frozenset({"static", "health_live", "health_ready", "metrics"})


def observed(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """One line and one observation a request. An answer that streams is told of at its end, with
    all the time that it took."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        before, began = current_work(), perf_counter()
        work = Work(request_id=request_id_of(request.headers.get(HEADER, "")), request=request)
        begin(work)
        answer = get_response(request)
        answer.headers[HEADER] = work.request_id
        _count(request, answer.status_code, perf_counter() - began)

        def end() -> None:
            begin(work)
            _tell(request, answer.status_code, perf_counter() - began)
            begin(before if not answer.streaming else NOTHING)

        if answer.streaming:
            # Run by `close()`, which a server calls however the stream ends.
            answer._resource_closers.append(end)  # type: ignore[attr-defined]  # not in the stubs
        else:
            end()
        return answer

    return middleware


def _count(request: HttpRequest, status: int, seconds: float) -> None:
    method = request.method if request.method in _METHODS else "other"
    REQUEST_SECONDS.labels(method, _named(request), str(status)).observe(seconds)


def _tell(request: HttpRequest, status: int, seconds: float) -> None:
    named = _named(request)
    level = logging.DEBUG if named in _QUIET else logging.INFO
    method = request.method if request.method in _METHODS else "other"
    milliseconds = round(seconds * 1000, 1)
    fields = {"method": method, "path": _path(request), "status": status}
    logger.log(
        level,
        "%s %s %d %.1f ms",
        *fields.values(),
        milliseconds,
        extra={"fields": {**fields, "milliseconds": milliseconds}},
    )


def _named(request: HttpRequest) -> str:
    """The route; one name for all files and one for all that is nowhere."""
    if found := route(request):
        return found
    return "static" if request.path.startswith(settings.STATIC_URL) else "unknown"


def _path(request: HttpRequest) -> str:
    """The address as the site knows it, with numbers filled in: what else stands in an address,
    as names of users and of the graph do, may be a word of a document."""
    match = request.resolver_match
    if match is None:
        return "-"
    path = f"/{match.route}".replace("^", "").replace("$", "")
    for name, value in match.kwargs.items():
        if isinstance(value, int):
            path = path.replace(f"<int:{name}>", str(value))
    return path
