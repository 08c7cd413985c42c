"""The worker's side: threads that take requests from the broker and answer them with local
models.
"""

import json
import logging
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import monotonic
from typing import Any

import numpy as np
from django.conf import settings
from numpy.typing import ArrayLike, NDArray
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from inference.interfaces import (
    BackendUnavailable,
    Embedder,
    InferenceError,
    MalformedAnswer,
    Reranker,
    TokenEncoder,
)
from inference.model_registry import ModelRegistry, embedders, rerankers, token_encoders
from inference.serving import protocol

logger = logging.getLogger(__name__)


Fields = Mapping[str, Any]
#: Answers requests of one kind with one reply each.
Answer = Callable[[Sequence[Fields]], list[bytes]]


def answer_queries(embedder: Embedder, questions: Sequence[Fields]) -> list[bytes]:
    """Queries with the same instruction are embedded together; one that fails does so alone."""
    answers: dict[int, bytes] = {}

    def instruction(at: int) -> str:
        return questions[at]["instruction"] or ""

    for _, group in groupby(sorted(range(len(questions)), key=instruction), key=instruction):
        together = list(group)
        vectors = _embed_together(embedder, [questions[at] for at in together])
        answers.update(zip(together, vectors, strict=True))
    return [answers[at] for at in range(len(questions))]


def _embed_together(embedder: Embedder, queries: Sequence[Fields]) -> list[bytes]:
    texts, instruction = [query["text"] for query in queries], queries[0]["instruction"]
    try:
        together = getattr(embedder, "embed_queries", None)
        if together is None:
            vectors = [embedder.embed_query(text, instruction) for text in texts]
        else:
            vectors = together(texts, instruction)
        return [protocol.encode_array(vector, protocol.VECTOR_DTYPE) for vector in vectors]
    except BackendUnavailable as error:
        return [protocol.encode_failure(error)] * len(queries)
    except Exception as error:
        if len(queries) == 1:
            return [_error_reply(error)]
        return [answer for query in queries for answer in _embed_together(embedder, [query])]


def _answer_each(work: Callable[..., ArrayLike], dtype: np.dtype[Any]) -> Answer:
    """Answers one request after the other with the numbers of `work`."""

    def answer(question: Fields) -> bytes:
        try:
            return protocol.encode_array(work(**question), dtype)
        except Exception as error:
            return _error_reply(error)

    return lambda questions: [answer(question) for question in questions]


def _compare(
    embedder: Embedder, query: str, texts: Sequence[str], instruction: str | None
) -> ArrayLike:
    if not getattr(embedder, "compares_tokens", False):
        raise InferenceError(f"{embedder.model_name} does not compare texts token by token.")
    compared: ArrayLike = embedder.compare(query, texts, instruction)  # type: ignore[attr-defined]
    return compared


def _error_reply(error: Exception) -> bytes:
    """The error as a reply; unexpected ones are logged too."""
    if isinstance(error, InferenceError):
        return protocol.encode_failure(error)
    logger.error("a model failed", exc_info=error)
    return protocol.encode_failure(
        BackendUnavailable(
            f"the worker's model failed with {type(error).__name__}: {error}. Its log says more."
        )
    )


#: Number of waiting queries that are embedded together.
QUERY_BATCH_SIZE = 32


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """A model that a worker serves. `lanes` answer requests by kind, so many at a time, and wait
    for no other kind; `stored_values` stay in the broker even while no worker runs.
    """

    service: str
    lanes: Mapping[str, tuple[Answer, int]]
    stored_values: Mapping[str, bytes]


def offer_embedder(
    alias: str,
    embedder: Embedder,
    *,
    query_batch_size: int = QUERY_BATCH_SIZE,
    warm_up: bool = True,
) -> ModelOffer:
    """`warm_up`: try it before it is offered, else its first request loads it. Raises
    InferenceError for an embedder that does not work."""
    if warm_up:
        embedder.embed_query("warm up")
    service = protocol.embedder_service(embedder.model_name, embedder.dimensions)
    description = {name: getattr(embedder, name) for name in protocol.DESCRIPTION}
    return ModelOffer(
        service,
        lanes={
            "query": (partial(answer_queries, embedder), query_batch_size),
            "documents": (_answer_each(embedder.embed_documents, protocol.VECTOR_DTYPE), 1),
            "comparison": (_answer_each(partial(_compare, embedder), protocol.VECTOR_DTYPE), 1),
        },
        stored_values={
            protocol.description_key(alias): json.dumps(description).encode(),
            protocol.tokenizer_key(service): protocol.encode_tokenizer(
                embedder.token_counter().tokenizer
            ),
        },
    )


def offer_reranker(alias: str, reranker: Reranker, *, warm_up: bool = True) -> ModelOffer:
    """`warm_up` as of `offer_embedder`. Raises InferenceError for a reranker that does not work."""
    if warm_up:
        reranker.score("warm up", ["warm up"], stored=[1.0])
    return ModelOffer(
        protocol.reranker_service(alias),
        lanes={"judgement": (_answer_each(reranker.score, protocol.SCORE_DTYPE), 1)},
        stored_values={},
    )


def offer_token_encoder(encoder: TokenEncoder, *, warm_up: bool = True) -> ModelOffer:
    """`warm_up` as of `offer_embedder`. Raises InferenceError for one that does not work."""
    if warm_up:
        encoder.encode_query("warm up")

    def encode_documents(texts: Sequence[str]) -> NDArray[Any]:
        encoded = encoder.encode_documents(texts)
        ends = np.cumsum([len(each.bits) for each in encoded])
        tokens = np.empty(ends[-1] if len(ends) else 0, protocol.token_dtype(encoder.dimensions))
        for place, (each, end) in enumerate(zip(encoded, ends, strict=True)):
            rows = tokens[end - len(each.bits) : end]
            rows["text"], rows["bits"] = place, each.bits
            rows["start"], rows["end"] = each.starts, each.ends
        return tokens

    row = protocol.token_dtype(encoder.dimensions)
    return ModelOffer(
        protocol.token_encoder_service(encoder.model_name, encoder.dimensions),
        lanes={
            "token-query": (_answer_each(encoder.encode_query, protocol.VECTOR_DTYPE), 1),
            "token-documents": (_answer_each(encode_documents, row), 1),
        },
        stored_values={},
    )


HEARTBEAT_SECONDS = 5.0
# Longest wait of a thread for a request before it checks whether it is to stop.
_POLL_SECONDS = 5.0
_SOCKET_SECONDS = 5.0
_KEEP_REPLY_MILLISECONDS = 60_000
_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0


class WorkerServer:
    """Serves several models until it is stopped.

    A thread for each model loads, announces and keeps it alive; each kind of request has another
    thread, so that a query waits for no documents.
    """

    def __init__(self, url: str, offers: Sequence[Callable[[], ModelOffer]]) -> None:
        """Each of `offers` is called in a thread until it raises no InferenceError."""
        self._redis = Redis.from_url(
            url,
            socket_timeout=_POLL_SECONDS + _SOCKET_SECONDS,
            socket_connect_timeout=_SOCKET_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._offers = offers
        self._outage = _BrokerOutage()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._member = f"{socket.gethostname()}:{uuid.uuid4().hex}"

    def start(self) -> None:
        """Returns at once; models are loaded in the background."""
        for offer in self._offers:
            self._run(partial(self._serve, offer))

    def stop(self, *, timeout: float = 5.0) -> None:
        """Stop taking requests and announce it; wait up to `timeout` seconds for those in
        progress.
        """
        self._stopping.set()
        deadline = monotonic() + timeout
        wake_up = protocol.wake_up_key(self._member)
        with suppress(RedisError):  # then they see by themselves that they are to end
            self._redis.rpush(wake_up, b"", *([b""] * len(self._threads)))
            self._redis.expire(wake_up, protocol.ALIVE_SECONDS)
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - monotonic()))
        self._redis.close()

    def _run(self, work: Callable[[], None]) -> None:
        # Daemons: a forward pass that hangs must not keep the process from ending.
        thread = threading.Thread(target=work, name="inference-server", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, make: Callable[[], ModelOffer]) -> None:
        offer: ModelOffer | None = None
        delay, said = _RETRY_SECONDS, ""
        while offer is None:
            if self._stopping.is_set():
                return
            try:
                offer = make()
            except Exception as error:
                if str(error) != said:
                    said = str(error)
                    unforeseen = None if isinstance(error, InferenceError) else error
                    logger.error("a model cannot be served: %s", error, exc_info=unforeseen)
                self._stopping.wait(delay)
                delay = min(delay * 2, _LONGEST_RETRY_SECONDS)
        for kind in offer.lanes:
            self._run(partial(self._repeat, partial(self._answer, offer, kind), pause=0))
        logger.info("serving %s", offer.service)
        alive = protocol.alive_key(offer.service)
        missing = set(offer.stored_values)

        def announce() -> None:
            gone = {key for key in offer.stored_values if not self._redis.exists(key)}
            with self._redis.pipeline() as pipe:
                for key in missing | gone:
                    pipe.set(key, offer.stored_values[key])
                pipe.sadd(alive, self._member)
                pipe.expire(alive, protocol.ALIVE_SECONDS)
                pipe.execute()
            missing.clear()

        self._repeat(announce, pause=HEARTBEAT_SECONDS)
        with suppress(RedisError):  # then it runs out by itself
            self._redis.srem(alive, self._member)

    def _repeat(self, work: Callable[[], None], *, pause: float) -> None:
        """Do `work` until the server is stopped, also after outages of the broker."""
        while not self._stopping.is_set():
            began = monotonic()
            try:
                work()
            except RedisError as error:
                self._outage.begin(error, began)
                self._stopping.wait(_RETRY_SECONDS)
            else:
                self._outage.end(began)
                self._stopping.wait(pause)

    def _answer(self, offer: ModelOffer, kind: str) -> None:
        answer, batch_size = offer.lanes[kind]
        queue = protocol.queue_key(offer.service, kind)
        replies, questions = {}, {}
        for name, data in self._take(queue, batch_size):
            try:
                questions[name] = protocol.decode_fields(data, protocol.REQUESTS[kind])
            except MalformedAnswer as error:
                replies[name] = protocol.encode_failure(error)
        if questions:
            replies |= zip(questions, answer([*questions.values()]), strict=True)
        with self._redis.pipeline(transaction=False) as pipe:
            for name, reply in replies.items():
                pipe.rpush(protocol.reply_key(name), reply)
                pipe.pexpire(protocol.reply_key(name), _KEEP_REPLY_MILLISECONDS)
            pipe.execute()

    def _take(self, queue: str, most: int) -> list[tuple[str, bytes]]:
        """Ids and texts of waiting requests; after a timeout an empty list."""
        wake_up = protocol.wake_up_key(self._member)
        popped = self._redis.blpop([queue, wake_up], timeout=_POLL_SECONDS)
        if not popped or popped[0] != queue.encode():
            return []
        more = self._redis.lpop(queue, most - 1) if most > 1 else None
        names = [each.decode(errors="replace") for each in (popped[1], *(more or []))]
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:  # limited to the largest size
                pipe.getrange(protocol.request_key(name), 0, protocol.MAX_REQUEST_BYTES)
            pipe.unlink(*map(protocol.request_key, names))
            found = zip(names, pipe.execute()[:-1], strict=True)
        return [(name, data) for name, data in found if data]  # else its client has gone


class _BrokerOutage:
    """Logs once that the broker is down and once that it is back, for all threads.

    Threads report what became of their work, and when it `began` (`monotonic()`). Work that began
    before the last change says nothing about the time since.
    """

    def __init__(self) -> None:
        self._lasting = False
        self._changed_at = 0.0
        self._lock = threading.Lock()

    def begin(self, error: RedisError, began: float) -> None:
        if self._change(lasting=True, began=began):
            logger.warning("the broker does not answer, no text is embedded: %s", error)

    def end(self, began: float) -> None:
        if self._change(lasting=False, began=began):
            logger.warning("the broker answers again")

    def _change(self, *, lasting: bool, began: float) -> bool:
        with self._lock:
            if self._lasting == lasting or began < self._changed_at:
                return False
            self._lasting, self._changed_at = lasting, monotonic()
            return True


#: Backends that ask a worker, or do nothing.
_NOT_OFFERED = ("inference.backends.worker.", "inference.backends.rerank_basic.NoReranker")


def site_server() -> WorkerServer:
    """An unstarted server of every configured model that does not itself ask a worker.

    The default ones are loaded at start, and those that take longer to load than a question waits;
    others when they are first asked for, since most sites need none of them.
    """

    def embedder(alias: str) -> ModelOffer:
        own = embedders.own(alias)
        return offer_embedder(alias, own, warm_up=_is_loaded_at_start(alias, own))

    def reranker(alias: str) -> ModelOffer:
        own = rerankers.own(alias)
        return offer_reranker(alias, own, warm_up=_is_loaded_at_start(alias, own))

    def token_encoder(alias: str) -> ModelOffer:
        own = token_encoders.own(alias)
        return offer_token_encoder(own, warm_up=_is_loaded_at_start(alias, own))

    offers = [partial(embedder, alias) for alias in _served_aliases(embedders)]
    offers += [partial(reranker, alias) for alias in _served_aliases(rerankers)]
    offers += [partial(token_encoder, alias) for alias in _served_aliases(token_encoders)]
    return WorkerServer(settings.REDIS_URL, offers)


def _is_loaded_at_start(alias: str, model: object) -> bool:
    return alias == "default" or not getattr(model, "loads_quickly", False)


def _served_aliases(models: ModelRegistry[Any]) -> list[str]:
    return [
        alias
        for alias, entry in models.configured().items()
        if not entry["BACKEND"].startswith(_NOT_OFFERED)
    ]
