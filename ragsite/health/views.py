"""What load balancers, containers and those who run the site ask."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ragsite.health.look import Report, Watch
from ragsite.health.registry import probes
from ragsite.operators import is_operator

watch = Watch(probes)


@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The process answers. It asks nothing: a process is not to be killed for its database."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """200 where requests can be sent here, 503 where not; details for those who run the site."""
    report = watch.report()
    # Who has a session is in the database: without one nobody is known.
    may_ask = report.outcomes["database"].ok if "database" in report.outcomes else True
    shows = is_operator(request, by_session=may_ask)
    answer = JsonResponse(_told(report, shows=shows), status=200 if report.is_ready else 503)
    # Django would log an error for each; the watch says once what changed.
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer


def _told(report: Report, *, shows: bool) -> dict[str, Any]:
    return {
        "status": report.state,
        "probes": {
            name: {"ok": each.ok, **({"detail": each.detail} if shows else {})}
            for name, each in report.outcomes.items()
        },
    }
