"""Asking the workers: puts a question on their queue and waits for its answer."""

import uuid
from time import monotonic
from typing import cast

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from inference.base import BackendUnavailable
from inference.serving import keys
from inference.serving.keys import Service
from inference.serving.questions import Question, encode

#: How to get a worker, for whoever has none.
START = (
    "start `celery -A ragsite worker --queues=embed --pool=solo` on the host that has the model,"
    " with the same REDIS_URL"
)

# Waiting is done in pieces, between which the worker may turn out to have died.
_PIECE_SECONDS = 5.0
_SOCKET_SECONDS = 5.0  # more than the broker itself waits for
_LONGEST_QUEUE = 1000


class NoWorker(BackendUnavailable):
    """Nobody serves the model, or the broker cannot be asked who does."""


class Client:
    """May be shared by threads and survives a fork: connections belong to a process and a turn."""

    def __init__(self, url: str) -> None:
        """`url` as redis-py reads it. Connects at the first question. Raises BackendUnavailable."""
        try:
            self._redis = Redis.from_url(
                url,
                socket_timeout=_PIECE_SECONDS + _SOCKET_SECONDS,
                socket_connect_timeout=_SOCKET_SECONDS,
                # A question that was lost with its connection is not waited for once more.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise BackendUnavailable(
                f"the URL of the broker cannot be read ({error}): correct REDIS_URL, or `url` in"
                " OPTIONS."
            ) from error

    def ask(self, service: Service, question: Question, *, timeout: float) -> bytes:
        """The reply as it came, for `replies` to decode.

        Without a worker it fails at once, not after `timeout` seconds: NoWorker. Raises
        BackendUnavailable for one that does not answer in time.
        """
        request_id = uuid.uuid4().hex
        deadline = monotonic() + timeout
        try:
            if not self._send(request_id, service, question, timeout=timeout):
                raise nobody(service)
            reply = self._wait(request_id, service, deadline)
            if reply is None:
                self._redis.unlink(keys.request(request_id))
        except RedisError as error:
            raise _broker_down(error) from error
        if reply is None:
            raise BackendUnavailable(
                f"the worker did not answer for {service.name} within {timeout:g} s: see its log,"
                " start one more, or raise the timeout in OPTIONS."
            )
        return reply

    def is_served(self, service: Service) -> bool:
        """Whether a worker is there that has the model in memory."""
        try:
            return bool(self._redis.exists(service.alive))
        except RedisError:
            return False

    def read(self, key: str) -> bytes | None:
        """What workers left there for everybody. Raises BackendUnavailable."""
        try:
            return cast("bytes | None", self._redis.get(key))
        except RedisError as error:
            raise _broker_down(error) from error

    def _send(
        self, request_id: str, service: Service, question: Question, *, timeout: float
    ) -> bool:
        """Whether anybody is there to read it."""
        milliseconds = max(1, int(timeout * 1000))
        queue = service.queue(question.KIND)
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.exists(service.alive)
            # Both end by themselves where nobody reads them.
            pipe.set(keys.request(request_id), encode(question), px=milliseconds)
            pipe.rpush(queue, request_id)
            pipe.ltrim(queue, -_LONGEST_QUEUE, -1)
            pipe.pexpire(queue, milliseconds)
            served = bool(pipe.execute()[0])
        if not served:
            self._redis.unlink(keys.request(request_id))
        return served

    def _wait(self, request_id: str, service: Service, deadline: float) -> bytes | None:
        while (left := deadline - monotonic()) > 0:
            popped = self._redis.blpop(
                [keys.reply(request_id)], timeout=max(0.01, min(left, _PIECE_SECONDS))
            )
            if popped:
                return cast("bytes", popped[1])
            if not self._redis.exists(service.alive):
                raise nobody(service)
        return None


def nobody(service: Service) -> NoWorker:
    return NoWorker(f"no worker serves {service.name}: {START}.")


def _broker_down(error: RedisError) -> NoWorker:
    return NoWorker(
        f"the broker that carries texts to the model does not answer ({error}): start it, or"
        " correct REDIS_URL."
    )
