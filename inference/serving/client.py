"""The client's side: puts a request on a worker's queue and waits for the reply."""

import uuid
from time import monotonic
from typing import cast

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

    def ask(
        self, service: protocol.ServedModel, question: protocol.WorkerRequest, *, timeout: float
    ) -> bytes:
        """The raw reply, to be decoded by `decode_array`.

        Without a worker it raises NoWorker at once, not after `timeout` seconds. Raises
        BackendUnavailable for a worker that does not answer in time.
        """
        request_id = uuid.uuid4().hex
        deadline = monotonic() + timeout
        try:
            if not self._send(request_id, service, question, timeout=timeout):
                raise no_worker_error(service)
            reply = self._wait(request_id, service, deadline)
            if reply is None:
                self._redis.unlink(protocol.request_key(request_id))
        except RedisError as error:
            raise _broker_error(error) from error
        if reply is None:
            raise BackendUnavailable(
                f"the worker did not answer for {service.name} within {timeout:g} s: see its log,"
                " start one more, or raise the timeout in OPTIONS."
            )
        return reply

    def is_served(self, service: protocol.ServedModel) -> bool:
        """Whether a worker has the model in memory."""
        try:
            return bool(self._redis.exists(service.alive))
        except RedisError:
            return False

    def read(self, key: str) -> bytes | None:
        """A value that workers have published. Raises BackendUnavailable."""
        try:
            return cast("bytes | None", self._redis.get(key))
        except RedisError as error:
            raise _broker_error(error) from error

    def _send(
        self,
        request_id: str,
        service: protocol.ServedModel,
        question: protocol.WorkerRequest,
        *,
        timeout: float,
    ) -> bool:
        """Returns whether a worker is there to read it."""
        milliseconds = max(1, int(timeout * 1000))
        queue = service.queue(question.KIND)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.exists(service.alive)
            # Both keys expire if nobody reads them.
            pipe.set(
                protocol.request_key(request_id), protocol.encode_request(question), px=milliseconds
            )
            pipe.rpush(queue, request_id)
            pipe.ltrim(queue, -_MAX_QUEUE, -1)
            pipe.pexpire(queue, milliseconds)
            served = bool(pipe.execute()[0])
        if not served:
            self._redis.unlink(protocol.request_key(request_id))
        return served

    def _wait(
        self, request_id: str, service: protocol.ServedModel, deadline: float
    ) -> bytes | None:
        while (left := deadline - monotonic()) > 0:
            popped = self._redis.blpop(
                [protocol.reply_key(request_id)], timeout=max(0.01, min(left, _POLL_SECONDS))
            )
            if popped:
                return cast("bytes", popped[1])
            if not self._redis.exists(service.alive):
                raise no_worker_error(service)
        return None


def no_worker_error(service: protocol.ServedModel) -> NoWorker:
    return NoWorker(f"no worker serves {service.name}: {START_WORKER}.")


def _broker_error(error: RedisError) -> NoWorker:
    return NoWorker(
        f"the broker that carries texts to the model does not answer ({error}): start it, or"
        " correct REDIS_URL."
    )
