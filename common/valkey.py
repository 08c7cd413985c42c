"""The broker (Valkey or Redis): a client with a short timeout, and histograms of workers' durations
that the web server reports to Prometheus.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

_TIMEOUT_SECONDS = 1.5


def broker_client() -> Redis:
    """A client with a timeout of 1.5 s and no retries."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT_SECONDS,
        socket_connect_timeout=_TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )


DURATIONS_KEY = "ragsite:durations"
#: Seconds; what takes longer than the last is in `+Inf`.
BUCKET_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_BUCKET_NAMES = (*map(str, BUCKET_BOUNDS), "+Inf")


@dataclass(slots=True)
class DurationHistogram:
    """Histogram of one kind of work."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_BUCKET_NAMES, 0))
    seconds: float = 0.0

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds with cumulative counts."""
        total, found = 0, []
        for name in _BUCKET_NAMES:
            total += self.counts[name]
            found.append((name, float(total)))
        return found


def observe_durations(seconds: Mapping[str, float]) -> None:
    """Count one piece of work of each kind, in seconds. Errors of the broker are ignored, so that
    the work itself does not fail.
    """
    with suppress(RedisError), broker_client() as client:
        pipe = client.pipeline(transaction=False)
        for kind, took in seconds.items():
            pipe.hincrby(
                DURATIONS_KEY, f"{kind} {_BUCKET_NAMES[bisect_left(BUCKET_BOUNDS, took)]}", 1
            )
            pipe.hincrbyfloat(DURATIONS_KEY, f"{kind} sum", took)
        pipe.execute()


def read_durations(client: Redis) -> dict[str, DurationHistogram]:
    """Histograms by kind of work, in alphabetical order."""
    found: dict[str, DurationHistogram] = defaultdict(DurationHistogram)
    fields = cast("dict[bytes, bytes]", client.hgetall(DURATIONS_KEY))
    for name, value in fields.items():
        kind, _, what = name.decode().rpartition(" ")
        if what == "sum":
            found[kind].seconds = float(value)
        elif what in _BUCKET_NAMES:  # else of a version with other bounds
            found[kind].counts[what] = int(value)
    return dict(sorted(found.items()))
