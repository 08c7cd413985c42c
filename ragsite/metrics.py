"""/metrics: what the web processes count, and what the whole site shares, read on each request."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from time import monotonic
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from psycopg import Error as DatabaseError
from psycopg import OperationalError
from redis.exceptions import RedisError

from common.shards import all_shards
from common.valkey import BUCKET_NAMES, DURATIONS_KEY, broker_client
from dashboard.samples import count_documents
from documents.ingestion.jobs import LOWEST_PRIORITY
from documents.models import Document
from ragsite import presence
from ragsite.health import is_operator, monitor, probe_cursor
from ragsite.metrics_directory import VARIABLE

#: As for the probes of health: counts are not repeated for each request.
CACHE_SECONDS = 5.0


class SiteCollector(Collector):
    """Health, queues, documents and ingestion. What cannot be read just now is left out: its probe
    reports that.
    """

    def __init__(self) -> None:
        self._kept = [_Cached(read) for read in (_health, _queues, _documents, _stage_durations)]

    def describe(self) -> list[Metric]:
        """Empty, so that registering reads nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        for each in self._kept:
            yield from each.fresh()


@dataclass(slots=True)
class _Cached:
    """Caches the result of `read` for a few seconds."""

    read: Callable[[], list[Metric]]
    lock: Lock = field(default_factory=Lock)
    at: float = float("-inf")
    metrics: list[Metric] = field(default_factory=list)

    def fresh(self) -> list[Metric]:
        with self.lock:
            if monotonic() - self.at > CACHE_SECONDS:
                try:
                    self.metrics = self.read()
                except (DatabaseError, RedisError):
                    self.metrics = []
                self.at = monotonic()
            return self.metrics


def _health() -> list[Metric]:
    metric = GaugeMetricFamily("ragsite_healthy", "Probes of /health/ready.", labels=["probe"])
    for name, outcome in monitor.report().outcomes.items():
        metric.add_metric([name], float(outcome.ok))
    return [metric]


#: Between a queue and the priority of the messages in a list, as Celery's transport has it.
_PRIORITY_SEPARATOR = "\x06\x16"


def _queues() -> list[Metric]:
    waiting = GaugeMetricFamily("ragsite_queue_length", "Messages that wait.", labels=["queue"])
    workers = GaugeMetricFamily("ragsite_workers", "Workers of a queue.", labels=["queue"])
    with broker_client() as client:
        for queue in presence.QUEUES:
            lists = (queue, f"{queue}{_PRIORITY_SEPARATOR}{LOWEST_PRIORITY}")
            waiting.add_metric([queue], float(sum(map(client.llen, lists))))
            workers.add_metric([queue], float(len(presence.live_workers(client, queue))))
    return [waiting, workers]


def _documents() -> list[Metric]:
    database = monitor.report().outcomes.get("database")
    if database is not None and not database.ok:
        return []  # nobody waits for one known to be down
    totals = count_documents(Document.objects.all()).values(
        "documents", "chunks", "waiting", "failed"
    )
    statement, parameters = totals.query.sql_with_params()
    rows: list[dict[str, Any]] = []
    for shard in all_shards():
        # A shard that is down is told by the health of shards; its documents are missing here.
        with suppress(OperationalError), probe_cursor(shard or DEFAULT_DB_ALIAS) as cursor:
            cursor.execute(statement, parameters)
            names = [column.name for column in cursor.description or ()]
            rows += [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def total(name: str) -> float:
        return float(sum(row[name] or 0 for row in rows))

    documents = GaugeMetricFamily("ragsite_documents", "Current documents.", labels=["state"])
    for label, name in (("ready", "documents"), ("waiting", "waiting"), ("failed", "failed")):
        documents.add_metric([label], total(name))
    return [documents, GaugeMetricFamily("ragsite_chunks", "Passages.", value=total("chunks"))]


def _stage_durations() -> list[Metric]:
    metric = HistogramMetricFamily(
        "ragsite_ingest_stage_seconds",
        "Pieces of work of workers, by stage of ingestion.",
        labels=["stage"],
    )
    with broker_client() as client:
        fields = cast("dict[bytes, bytes]", client.hgetall(DURATIONS_KEY))
    stages: dict[str, dict[str, float]] = {}
    for name, value in fields.items():
        stage, _, bucket = name.decode().rpartition(" ")
        stages.setdefault(stage, {})[bucket] = float(value)
    for stage, counts in sorted(stages.items()):
        totals = accumulate(counts.get(bucket, 0.0) for bucket in BUCKET_NAMES)
        buckets = list(zip(BUCKET_NAMES, totals, strict=True))
        metric.add_metric([stage], buckets=buckets, sum_value=counts.get("sum", 0.0))
    return [metric]


_site_collector = SiteCollector()


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics, for operators only: they reveal how much the site is used."""
    if not is_operator(request):
        answer = HttpResponse("Show RAGSITE_METRICS_TOKEN, or log in as staff.\n", status=401)
        answer.headers["WWW-Authenticate"] = 'Bearer realm="ragsite"'
        answer.headers["Content-Type"] = "text/plain; charset=utf-8"
        return answer
    counts = process_registry()
    site = CollectorRegistry()
    site.register(_site_collector)
    text = generate_latest(counts) + generate_latest(site)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def process_registry() -> Collector:
    """Counts of all processes of this web server; of this one alone without the directory, as in
    tests.
    """
    if VARIABLE not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
