"""The client's side: puts a request on a worker's queue and waits for the reply."""

import uuid
from time import monotonic
from typing import Any, cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from inference.interfaces import BackendUnavailable
from inference.serving import protocol

#: How to start a worker, for error messages.
START_WORKER = (
    "start `celery -A ragsite worker --queues=embed --pool=solo` on the host that has the model,"
    " with the same REDIS_URL"
)

# Waiting is done in pieces, between which the worker may turn out to have died.
_POLL_SECONDS = 5.0
_SOCKET_SECONDS = 5.0  # more than the broker itself waits for
_MAX_QUEUE = 1000


class NoWorker(BackendUnavailable):
    """No worker serves the model, or the broker does not answer."""


class WorkerClient:
    """Thread-safe and fork-safe: connections belong to a process and a call."""

    def __init__(self, url: str) -> None:
        """`url` as redis-py reads it. Connects at the first question. Raises BackendUnavailable."""
        try:
            self._redis = Redis.from_url(
                url,
                socket_timeout=_POLL_SECONDS + _SOCKET_SECONDS,
                socket_connect_timeout=_SOCKET_SECONDS,
                # A request lost with its connection is not waited for again.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise BackendUnavailable(
                f"the URL of the broker cannot be read ({error}): correct REDIS_URL, or `url` in"
                " OPTIONS."
            ) from error

    def ask(self, service: str, kind: str, *, timeout: float, **fields: Any) -> bytes:
        """The raw reply to a request of this kind, to be decoded by `decode_array`.

        Without a worker it raises NoWorker at once, not after `timeout` seconds. Raises
        BackendUnavailable for a worker that does not answer in time.
        """
        request_id = uuid.uuid4().hex
        request, queue = protocol.request_key(request_id), protocol.queue_key(service, kind)
        alive = protocol.alive_key(service)
        deadline = monotonic() + timeout
        milliseconds = max(1, int(timeout * 1000))
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.exists(alive)
                # Both keys expire if nobody reads them.
                pipe.set(request, protocol.encode_request(fields), px=milliseconds)
                pipe.rpush(queue, request_id)
                pipe.ltrim(queue, -_MAX_QUEUE, -1)
                pipe.pexpire(queue, milliseconds)
                is_served = bool(pipe.execute()[0])
            while is_served and (left := deadline - monotonic()) > 0:
                seconds = max(0.01, min(left, _POLL_SECONDS))
                if popped := self._redis.blpop([protocol.reply_key(request_id)], timeout=seconds):
                    return cast("bytes", popped[1])
                is_served = bool(self._redis.exists(alive))
            self._redis.unlink(request)
        except RedisError as error:
            raise _broker_error(error) from error
        if not is_served:
            raise NoWorker(f"no worker serves {service}: {START_WORKER}.")
        raise BackendUnavailable(
            f"the worker did not answer for {service} within {timeout:g} s: see its log, start one"
            " more, or raise the timeout in OPTIONS."
        )

    def is_served(self, service: str) -> bool:
        """Whether a worker has the model in memory."""
        try:
            return bool(self._redis.exists(protocol.alive_key(service)))
        except RedisError:
            return False

    def read(self, key: str) -> bytes | None:
        """A value that workers have published. Raises BackendUnavailable."""
        try:
            return cast("bytes | None", self._redis.get(key))
        except RedisError as error:
            raise _broker_error(error) from error


def _broker_error(error: RedisError) -> NoWorker:
    return NoWorker(
        f"the broker that carries texts to the model does not answer ({error}): start it, or"
        " correct REDIS_URL."
    )
