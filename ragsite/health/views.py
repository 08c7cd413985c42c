"""Health endpoints for load balancers, containers and operators."""

from secrets import compare_digest

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.authentication import bearer
from ragsite.health.monitor import HealthMonitor
from ragsite.health.probes import registered_probes


def is_operator(request: HttpRequest, *, by_session: bool = True) -> bool:
    """Whether staff or a program with RAGSITE_METRICS_TOKEN asks. `by_session=False` where the
    database cannot be asked.
    """
    token, shown = settings.METRICS_TOKEN, bearer(request)
    if token and shown is not None:
        return compare_digest(shown.encode(), token.encode())
    if not by_session or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    user = request.user
    return bool(user.is_authenticated and user.is_active and user.is_staff)


monitor = HealthMonitor(registered_probes)


@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The process answers. No probe is run: a process must not be killed because of its
    database.
    """
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """200 where requests can be sent here, 503 where not; details for operators."""
    report = monitor.report()
    # Sessions are in the database: without it no user can be identified.
    may_ask = report.outcomes["database"].ok if "database" in report.outcomes else True
    shows = is_operator(request, by_session=may_ask)
    data = {
        "status": report.state,
        "probes": {
            name: {"ok": each.ok, **({"detail": each.detail} if shows else {})}
            for name, each in report.outcomes.items()
        },
    }
    answer = JsonResponse(data, status=200 if report.is_ready else 503)
    # Django would log an error for each 503; the monitor logs changes once.
    answer._has_been_logged = True  # type: ignore[attr-defined]
    return answer
