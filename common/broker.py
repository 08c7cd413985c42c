"""The broker, for questions that are not worth waiting for."""

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_SECONDS = 1.5


def impatient_client() -> Redis:
    """A client that gives up after 1.5 s and tries nothing twice."""
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
