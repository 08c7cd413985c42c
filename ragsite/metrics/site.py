"""What no process counts, because all of them share it: read when Prometheus asks.

Workers on other hosts and in other containers need so no address of their own to be asked at.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from psycopg import Error as DatabaseError
from redis.exceptions import RedisError

from common import durations
from common.broker import impatient_client
from dashboard.sampling import counted
from documents.models import Document
from ragsite import presence
from ragsite.health.database import asked
from ragsite.health.views import watch

#: As for the probes of health: counting is not repeated for each who asks.
FRESH_SECONDS = 5.0


class SiteCollector(Collector):
    """Health, queues, documents and ingestion. What cannot be asked just now is left out: its
    probe says so."""

    def __init__(self) -> None:
        self._kept = [_Kept(read) for read in (_health, _queues, _documents, _stages)]

    def describe(self) -> list[Metric]:
        """Nothing is read for being registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        for each in self._kept:
            yield from each.fresh()


@dataclass(slots=True)
class _Kept:
    """What `read` gave a moment ago."""

    read: Callable[[], list[Metric]]
    lock: Lock = field(default_factory=Lock)
    at: float = float("-inf")
    metrics: list[Metric] = field(default_factory=list)

    def fresh(self) -> list[Metric]:
        with self.lock:
            if monotonic() - self.at > FRESH_SECONDS:
                try:
                    self.metrics = self.read()
                except (DatabaseError, RedisError):
                    self.metrics = []
                self.at = monotonic()
            return self.metrics


def _health() -> list[Metric]:
    metric = GaugeMetricFamily("ragsite_healthy", "Probes of /health/ready.", labels=["probe"])
    for name, outcome in watch.report().outcomes.items():
        metric.add_metric([name], float(outcome.ok))
    return [metric]


def _queues() -> list[Metric]:
    waiting = GaugeMetricFamily("ragsite_queue_length", "Messages that wait.", labels=["queue"])
    workers = GaugeMetricFamily("ragsite_workers", "Workers of a queue.", labels=["queue"])
    with impatient_client() as client:
        for queue in presence.QUEUES:
            waiting.add_metric([queue], float(client.llen(queue)))
            workers.add_metric([queue], float(len(presence.workers(client, queue))))
    return [waiting, workers]


def _documents() -> list[Metric]:
    if not _database_is_there():
        return []
    totals = counted(Document.objects.all()).values("documents", "chunks", "waiting", "failed")
    statement, parameters = totals.query.sql_with_params()
    with asked() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def total(name: str) -> float:
        return float(sum(row[name] or 0 for row in rows))

    documents = GaugeMetricFamily("ragsite_documents", "Current documents.", labels=["state"])
    for label, name in (("ready", "documents"), ("waiting", "waiting"), ("failed", "failed")):
        documents.add_metric([label], total(name))
    return [documents, GaugeMetricFamily("ragsite_chunks", "Passages.", value=total("chunks"))]


def _stages() -> list[Metric]:
    metric = HistogramMetricFamily(
        "ragsite_ingest_stage_seconds",
        "Pieces of work of workers, by stage of ingestion.",
        labels=["stage"],
    )
    with impatient_client() as client:
        for stage, took in durations.counted(client).items():
            metric.add_metric([stage], buckets=took.buckets, sum_value=took.seconds)
    return [metric]


def _database_is_there() -> bool:
    """So that nobody waits for one that is known to be away."""
    found = watch.report().outcomes.get("database")
    return found is None or found.ok
