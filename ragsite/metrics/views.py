"""/metrics"""

import os

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from ragsite.metrics.files import VARIABLE
from ragsite.metrics.site import SiteCollector
from ragsite.operators import is_operator

_site = SiteCollector()


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures, for those who run the site: they tell how much it is used, and with what."""
    if not is_operator(request):
        answer = HttpResponse("Show RAGSITE_METRICS_TOKEN, or log in as staff.\n", status=401)
        answer.headers["WWW-Authenticate"] = 'Bearer realm="ragsite"'
        answer.headers["Content-Type"] = "text/plain; charset=utf-8"
        return answer
    text = generate_latest(_processes()) + generate_latest(_of_site())
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def _processes() -> Collector:
    """Those of all processes of this web server; without it, as in tests, of this one."""
    if VARIABLE not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _of_site() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_site)
    return registry
