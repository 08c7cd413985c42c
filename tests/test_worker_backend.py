"""Web processes without a model: a real worker on the embed queue embeds their questions."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest
from redis import Redis

from common.errors import EmbedderUnavailable
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from inference.backends.hashing import HashingEmbedder
from inference.backends.worker import WorkerEmbedder, WorkerReranker
from inference.interfaces import BackendUnavailable
from search.query_options import site_scope
from search.results import SearchResult
from search.services import search
from tests.blocking_worker import BEGUN, ENOUGH, app
from tests.plugin import wait_until

ASKING = "inference.backends.worker.WorkerEmbedder"
TEXTS = {
    "aspirin": "Aspirin eases pain and thins the blood.",
    "ibuprofen": "Ibuprofen eases pain and fever.",
    "bread": "Bread is baked from flour, water, salt and yeast.",
}
#: Seconds that nothing here takes, on however busy a machine.
TIMEOUT = 300.0
QUESTION = "what eases a fever"


@pytest.fixture
def broker(settings: Any) -> Iterator[Redis]:
    with Redis.from_url(settings.REDIS_URL) as broker:
        yield broker


@pytest.fixture
def start_worker() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts `celery worker` on the embed queue, as the documentation says; it has the test's
    broker and model, and needs no database to answer."""
    started: list[subprocess.Popen[bytes]] = []

    def start(application: str = "ragsite", **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "celery", "-A", application, "worker"]
        command += ["--queues=embed", "--pool=solo", "--without-gossip", "--without-mingle"]
        worker = subprocess.Popen([*command, "-l", "WARNING"], env={**os.environ, **environment})
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.terminate()
    for worker in started:
        worker.wait(timeout=30)


@pytest.fixture
def collection(db: None, media_root: object) -> Collection:
    collection = CollectionFactory(default_language="en")
    ingest_inline(
        collection=collection, sources=[text_source(key, text) for key, text in TEXTS.items()]
    )
    return collection


def ask_a_worker(settings: Any, **options: Any) -> None:
    """What the variables EMBEDDER_BACKEND and EMBEDDER_OPTIONS make of INFERENCE."""
    entry = {"BACKEND": ASKING, "OPTIONS": {"url": settings.REDIS_URL, **options}}
    settings.INFERENCE = {**settings.INFERENCE, "embedder": {"default": entry}}


def find(collection: Collection, **options: Any) -> SearchResult:
    return search(QUESTION, scope=site_scope(workspace=collection.workspace), **options)


def is_served(broker: Redis, *services: str) -> bool:
    alive = [key.decode() for key in broker.scan_iter("ragsite:inference:*:alive:*")]
    return all(any(key.endswith(service) for key in alive) for service in services)


@pytest.mark.parametrize("options", [{}, {"model_name": "hashing-384", "dimensions": 384}])
def test_without_a_worker_words_still_find_and_the_answer_says_so_soon(
    settings: Any, collection: Collection, options: dict[str, Any]
) -> None:
    words_alone = find(collection, mode="lexical")
    ask_a_worker(settings, timeout=TIMEOUT, **options)
    started = monotonic()
    result = find(collection)
    assert monotonic() - started < TIMEOUT / 2
    assert result.degraded == ("vector",)
    assert [hit.chunk_id for hit in result.hits] == [hit.chunk_id for hit in words_alone.hits]
    with pytest.raises(EmbedderUnavailable, match="--queues=embed --pool=solo"):
        find(collection, mode="vector")


def test_with_a_worker_the_hits_are_those_of_a_model_at_home(
    settings: Any,
    collection: Collection,
    broker: Redis,
    start_worker: Callable[..., subprocess.Popen[bytes]],
) -> None:
    at_home = find(collection)
    assert not at_home.degraded
    broker.flushdb()  # the vector of the question was cached
    worker = start_worker(
        RERANKER_BACKEND="inference.backends.rerank_basic.ScoreReranker",
        EMBEDDERS='{"small": {"BACKEND": "inference.backends.hashing.HashingEmbedder",'
        ' "OPTIONS": {"dimensions": 8}}}',
    )
    services = ("embedder:hashing-384:384", "embedder:hashing-8:8", "reranker:default")
    wait_until(lambda: is_served(broker, *services), what="the worker answers")
    ask_a_worker(settings)
    result = find(collection)
    assert not result.degraded
    assert result.hits == at_home.hits
    small = WorkerEmbedder(settings.REDIS_URL, alias="small")
    assert small.embed_query("x").shape == (8,)
    reranker = WorkerReranker(settings.REDIS_URL)
    assert reranker.score("q", ["a", "b"], stored=[1.0, 3.0]) == [0.0, 1.0]

    worker.terminate()
    assert worker.wait(timeout=30) == 0
    started = monotonic()
    with pytest.raises(BackendUnavailable, match="no worker serves embedder:hashing-384:384"):
        WorkerEmbedder(settings.REDIS_URL, timeout=TIMEOUT).embed_query("not cached")
    assert monotonic() - started < TIMEOUT / 2


@pytest.mark.nightly
def test_a_question_is_answered_while_the_worker_is_in_the_middle_of_a_long_task(
    settings: Any, broker: Redis, start_worker: Callable[..., subprocess.Popen[bytes]]
) -> None:
    start_worker("tests.blocking_worker")
    wait_until(lambda: is_served(broker, "embedder:hashing-384:384"), what="the worker answers")
    app.send_task("tests.block", queue="embed")
    assert broker.blpop([BEGUN], timeout=4), "the task has begun"
    try:
        vector = WorkerEmbedder(settings.REDIS_URL).embed_query("a question")
        assert (vector == HashingEmbedder().embed_query("a question")).all()
        assert not broker.exists(ENOUGH)
    finally:
        broker.rpush(ENOUGH, "now")


@pytest.mark.nightly
def test_a_killed_worker_is_missed_when_it_has_been_silent_for_a_while(
    settings: Any, broker: Redis, start_worker: Callable[..., subprocess.Popen[bytes]]
) -> None:
    worker = start_worker()
    wait_until(lambda: is_served(broker, "embedder:hashing-384:384"), what="the worker answers")
    worker.kill()
    worker.wait()
    [alive] = broker.scan_iter("*:alive:embedder:*")
    assert 0 < broker.ttl(alive) <= 15
    with pytest.raises(BackendUnavailable, match=r"within 0.2 s"):
        WorkerEmbedder(settings.REDIS_URL, timeout=0.2).embed_query("not cached")
    broker.delete(alive)  # what time does
    with pytest.raises(BackendUnavailable, match="no worker serves"):
        WorkerEmbedder(settings.REDIS_URL).embed_query("not cached")
