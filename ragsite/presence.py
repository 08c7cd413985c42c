"""Heartbeats of the workers: each reports its queues every few seconds.

Celery's `inspect` does not work: a single-threaded worker does not answer while it embeds.
"""

import logging
from collections.abc import Iterable
from threading import Event, Thread
from typing import Any, cast

from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

logger = logging.getLogger("ragsite.presence")

QUEUES = ("ingest", "embed", "default")
BEAT_SECONDS = 5.0
#: A worker without a heartbeat for this long counts as dead.
ALIVE_SECONDS = 20.0
#: Release of each worker that ran lately, by its name.
_VERSIONS_KEY = "ragsite:presence:1:versions"


def live_workers(client: "Redis", queue: str) -> list[str]:
    """Names of the live workers that consume `queue`."""
    since = _now(client) - ALIVE_SECONDS
    found = cast("list[bytes]", client.zrangebyscore(_key(queue), since, "+inf"))
    return [name.decode() for name in found]


class WorkerHeartbeat:
    """The heartbeat of one worker, from a thread of its own."""

    def __init__(self, client: "Redis", *, name: str, queues: Iterable[str]) -> None:
        self._client = client
        self._name = name
        self._queues = tuple(queues)
        self._ended = Event()
        self._thread = Thread(target=self._keep, name="presence", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Remove the worker at once, where the broker answers."""
        self._ended.set()
        self._thread.join(BEAT_SECONDS)

    def _keep(self) -> None:
        is_away = False
        while not self._ended.is_set():
            try:
                now = _now(self._client)  # by the broker's clock, which all hosts share
                with self._client.pipeline() as pipe:
                    pipe.hset(_VERSIONS_KEY, self._name, settings.RAGSITE_VERSION)
                    for queue in self._queues:
                        pipe.zadd(_key(queue), {self._name: now})
                        pipe.zremrangebyscore(_key(queue), "-inf", now - ALIVE_SECONDS)
                    pipe.execute()
                is_away = False
            except RedisError as error:
                if not is_away:
                    logger.warning("the broker could not be told of this worker: %s", error)
                is_away = True
            self._ended.wait(BEAT_SECONDS)
        try:
            self._client.hdel(_VERSIONS_KEY, self._name)
            for queue in self._queues:
                self._client.zrem(_key(queue), self._name)
        except RedisError:
            pass  # then it runs out by itself


def describe_workers(client: "Redis") -> list[str]:
    """Each live worker with the release it is of, such as `worker embed@host of ragsite 1.0.0`.
    Workers of 0.1 do not say."""
    names = sorted({name for queue in QUEUES for name in live_workers(client, queue)})
    versions = cast("dict[bytes, bytes]", client.hgetall(_VERSIONS_KEY))
    return [
        f"worker {name} of ragsite {versions.get(name.encode(), b'0.1').decode()}" for name in names
    ]


def _now(client: "Redis") -> float:
    seconds, microseconds = cast("Any", client.time())
    return float(seconds) + float(microseconds) / 1e6


def _key(queue: str) -> str:
    return f"ragsite:presence:1:{queue}"
