"""The broker (Valkey or Redis): a client with a short timeout, and the durations of work that
workers count there, for the web server to report to Prometheus.
"""

from bisect import bisect_left
from collections.abc import Mapping
from contextlib import suppress

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


#: Counts by kind of work and bucket, and the sum of its seconds.
DURATIONS_KEY = "ragsite:durations"
#: Seconds; what takes longer than the last is in `+Inf`.
BUCKET_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
BUCKET_NAMES = (*map(str, BUCKET_BOUNDS), "+Inf")


def observe_durations(seconds: Mapping[str, float]) -> None:
    """Count one piece of work of each kind, in seconds. Errors of the broker are ignored, so that
    the work itself does not fail.
    """
    with suppress(RedisError), broker_client() as client:
        pipe = client.pipeline(transaction=False)
        for kind, took in seconds.items():
            pipe.hincrby(
                DURATIONS_KEY, f"{kind} {BUCKET_NAMES[bisect_left(BUCKET_BOUNDS, took)]}", 1
            )
            pipe.hincrbyfloat(DURATIONS_KEY, f"{kind} sum", took)
        pipe.execute()
