"""The address that others call when a source has changed: `POST /hooks/sources/7/`."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from accounts.rate_limits import Quota, TooManyRequests, client_address, consume, parse_rate
from common.errors import RagsiteError
from common.rls import bypass_rls
from common.shards import find_on_shards
from sources import credentials, services
from sources.models import DataSource, DataSourceRun
from sources.signatures import BadSignature, verify


@csrf_exempt
@require_POST
def source_hook(request: HttpRequest, pk: int) -> HttpResponse:
    """Start a run of the source, if the call is signed with its secret. The body is ignored. An
    unknown source gets the same answer as a wrong signature."""
    try:
        # Callers have no login: the signature says whose the source is.
        with bypass_rls():
            source = find_on_shards(DataSource.objects.filter(pk=pk))
            _check_signature(request, source)
            assert source is not None
            _require(consume(caller=str(pk), name="hook", rate=parse_rate(settings.HOOK_RATE)))
            if request.headers.get("X-GitHub-Event") == "ping":
                return JsonResponse({"run": None, "detail": "The webhook works."})
            run = services.request_run(source_id=pk, cause=DataSourceRun.Cause.WEBHOOK)
    except RagsiteError as error:
        answer = JsonResponse({"code": error.code, "detail": str(error)}, status=error.status)
        if error.retry_after is not None:
            answer.headers["Retry-After"] = str(error.retry_after)
        return answer
    detail = "A run starts now." if run else "A run is in progress; another follows."
    return JsonResponse({"run": run.pk if run else None, "detail": detail}, status=202)


def _check_signature(request: HttpRequest, source: DataSource | None) -> None:
    """Raises BadSignature, and TooManyRequests after too many of these from one address."""
    kept = credentials.decrypt(source.webhook_secret) if source else {}
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        verify(request.body, headers, secret=kept.get("secret", ""))
    except BadSignature:
        rate = parse_rate(settings.LOGIN_ADDRESS_RATE)
        _require(consume(caller=client_address(request), name="hook-address", rate=rate))
        raise


def _require(quota: Quota | None) -> None:
    if quota is not None and not quota.passes:
        wait = max(1, quota.wait)
        raise TooManyRequests(
            gettext("Too many calls. Try again in {wait} s.").format(wait=wait), retry_after=wait
        )
