"""Middleware that gives each request an id, logs one line for it and measures its duration."""

import logging
from collections.abc import Callable
from time import perf_counter

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from common.logs import (
    NO_CONTEXT,
    LogContext,
    accepted_request_id,
    current_log_context,
    route_name,
    set_log_context,
)
from common.metrics import REQUEST_SECONDS

logger = logging.getLogger("ragsite.access")

REQUEST_ID_HEADER = "X-Request-ID"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Programs ask these every few seconds: they are lines for who debugs.
_DEBUG_ROUTES = frozenset({"static", "health_live", "health_ready", "metrics"})


def access_log(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Log and measure each request. A streamed answer is logged at its end with its whole
    duration.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        before, began = current_log_context(), perf_counter()
        work = LogContext(
            request_id=accepted_request_id(request.headers.get(REQUEST_ID_HEADER, "")),
            request=request,
        )
        set_log_context(work)
        answer = get_response(request)
        answer.headers[REQUEST_ID_HEADER] = work.request_id
        method = request.method if request.method in _METHODS else "other"
        labels = (method, _route_label(request), str(answer.status_code))
        REQUEST_SECONDS.labels(*labels).observe(perf_counter() - began)

        def end() -> None:
            set_log_context(work)
            _log_request(request, answer.status_code, perf_counter() - began)
            set_log_context(before if not answer.streaming else NO_CONTEXT)

        if answer.streaming:
            # Run by `close()`, which a server calls however the stream ends.
            answer._resource_closers.append(end)  # type: ignore[attr-defined]  # not in the stubs
        else:
            end()
        return answer

    return middleware


def _log_request(request: HttpRequest, status: int, seconds: float) -> None:
    named = _route_label(request)
    level = logging.DEBUG if named in _DEBUG_ROUTES else logging.INFO
    method = request.method if request.method in _METHODS else "other"
    milliseconds = round(seconds * 1000, 1)
    path = "-"
    if match := request.resolver_match:
        # The URL pattern with numbers filled in: other parts, such as names of users or nodes, may
        # be text of a document.
        path = f"/{match.route}".replace("^", "").replace("$", "")
        for name, value in match.kwargs.items():
            if isinstance(value, int):
                path = path.replace(f"<int:{name}>", str(value))
    fields = {"method": method, "path": path, "status": status}
    logger.log(
        level,
        "%s %s %d %.1f ms",
        *fields.values(),
        milliseconds,
        extra={"fields": {**fields, "milliseconds": milliseconds}},
    )


def _route_label(request: HttpRequest) -> str:
    """The URL name, one name for all static files, and one for all unknown URLs."""
    if found := route_name(request):
        return found
    return "static" if request.path.startswith(settings.STATIC_URL) else "unknown"
