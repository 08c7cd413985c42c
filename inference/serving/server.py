"""The worker's side: threads that take questions from the broker and answer them."""

import logging
import socket
import threading
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from inference.base import InferenceError
from inference.serving import keys, questions
from inference.serving.offers import Lane, Offer

logger = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
# How long a thread waits for a question before it looks whether it is to end.
_POLL_SECONDS = 5.0
_SOCKET_SECONDS = 5.0
_KEEP_REPLY_MILLISECONDS = 60_000
_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0


class Server:
    """Answers for several models at once, until it is stopped.

    Each model is made ready, then announced and kept alive, by a thread of its own; each kind of
    question it answers has another, so that a query waits for no documents.
    """

    def __init__(self, url: str, offers: Sequence[Callable[[], Offer]]) -> None:
        """Each of `offers` is called in a thread until it raises no InferenceError any more."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=_POLL_SECONDS + _SOCKET_SECONDS,
            socket_connect_timeout=_SOCKET_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._offers = offers
        self._outage = _Outage()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._member = f"{socket.gethostname()}:{uuid.uuid4().hex}"

    def start(self) -> None:
        """Returns at once; models are loaded meanwhile."""
        for offer in self._offers:
            self._run(partial(self._serve, offer))

    def stop(self, *, timeout: float = 5.0) -> None:
        """Take no more questions and say so; wait up to `timeout` seconds for those under way."""
        self._stopping.set()
        deadline = monotonic() + timeout
        wake_up = keys.wake_up(self._member)
        with suppress(RedisError):  # then they see by themselves that they are to end
            self._redis.rpush(wake_up, b"", *([b""] * len(self._threads)))
            self._redis.expire(wake_up, keys.ALIVE_SECONDS)
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - monotonic()))
        self._redis.close()

    def _run(self, work: Callable[[], None]) -> None:
        # Daemons: a forward pass that hangs must not keep the process from ending.
        thread = threading.Thread(target=work, name="inference-server", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, make: Callable[[], Offer]) -> None:
        offer = self._ready(make)
        if offer is None:
            return
        for kind, lane in offer.lanes.items():
            self._run(partial(self._answer, offer.service.queue(kind), lane))
        logger.info("serving %s", offer.service.name)
        self._keep_alive(offer)

    def _ready(self, make: Callable[[], Offer]) -> Offer | None:
        """The offer as soon as its model works; None where the server is stopped before."""
        delay, said = _RETRY_SECONDS, ""
        while not self._stopping.is_set():
            try:
                return make()
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    unforeseen = None if isinstance(error, InferenceError) else error
                    logger.error("a model cannot be served: %s", error, exc_info=unforeseen)
            self._stopping.wait(delay)
            delay = min(delay * 2, _LONGEST_RETRY_SECONDS)
        return None

    def _keep_alive(self, offer: Offer) -> None:
        anew = True
        while not self._stopping.is_set():
            try:
                self._announce(offer, anew=anew)
            except RedisError as error:
                self._outage.begin(error)
                self._stopping.wait(_RETRY_SECONDS)
            else:
                anew = False
                self._outage.end()
                self._stopping.wait(BEAT_SECONDS)
        with suppress(RedisError):  # then it runs out by itself
            self._redis.srem(offer.service.alive, self._member)

    def _announce(self, offer: Offer, *, anew: bool) -> None:
        missing = [key for key in offer.left if anew or not self._redis.exists(key)]
        with self._redis.pipeline() as pipe:
            for key in missing:
                pipe.set(key, offer.left[key])
            pipe.sadd(offer.service.alive, self._member)
            pipe.expire(offer.service.alive, keys.ALIVE_SECONDS)
            pipe.execute()

    def _answer(self, queue: str, lane: Lane) -> None:
        while not self._stopping.is_set():
            try:
                ids = self._take(queue, lane.at_once)
                if ids:
                    self._reply(*self._questions(ids), lane)
            except RedisError as error:
                self._outage.begin(error)
                self._stopping.wait(_RETRY_SECONDS)
            else:
                self._outage.end()

    def _take(self, queue: str, at_once: int) -> list[bytes]:
        """Ids of questions that wait, after a while of none an empty list."""
        popped = self._redis.blpop([queue, keys.wake_up(self._member)], timeout=_POLL_SECONDS)
        if not popped or popped[0] != queue.encode():
            return []
        more = self._redis.lpop(queue, at_once - 1) if at_once > 1 else None
        return [popped[1], *(more or [])]

    def _questions(self, ids: Sequence[bytes]) -> tuple[list[str], list[bytes]]:
        """Those that somebody still waits for, at most as long as may be sent."""
        names = [request_id.decode(errors="replace") for request_id in ids]
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.getrange(keys.request(name), 0, questions.MAX_BYTES)
            pipe.unlink(*map(keys.request, names))
            asked = list(zip(names, pipe.execute()[:-1], strict=True))
        waiting = [(name, question) for name, question in asked if question]
        return [name for name, _ in waiting], [question for _, question in waiting]

    def _reply(self, names: Sequence[str], questions: Sequence[bytes], lane: Lane) -> None:
        if not questions:
            return
        replies = lane.answer(questions)
        with self._redis.pipeline(transaction=False) as pipe:
            for name, reply in zip(names, replies, strict=True):
                pipe.rpush(keys.reply(name), reply)
                pipe.pexpire(keys.reply(name), _KEEP_REPLY_MILLISECONDS)
            pipe.execute()


class _Outage:
    """Says once that the broker is gone, and once that it is back, whichever thread sees it."""

    def __init__(self) -> None:
        self._lasting = False

    def begin(self, error: RedisError) -> None:
        if not self._lasting:
            logger.warning("the broker does not answer, no text is embedded: %s", error)
        self._lasting = True

    def end(self) -> None:
        if self._lasting:
            logger.warning("the broker answers again")
        self._lasting = False
