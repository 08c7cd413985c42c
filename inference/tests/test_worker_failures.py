"""The worker backend when a text, the model, the worker or the broker is not as it should be."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic

import numpy as np
import pytest
from redis import Redis

from inference.backends.hashing import HashingEmbedder
from inference.backends.rerank_basic import ScoreReranker
from inference.backends.worker import BATCH_TEXTS, WorkerEmbedder, WorkerReranker
from inference.interfaces import (
    BackendUnavailable,
    DimensionMismatch,
    EmptyText,
    InferenceError,
    InvalidScore,
    InvalidVector,
    MalformedAnswer,
)
from inference.serving import client, protocol, server
from inference.serving.server import offer_embedder, offer_reranker
from inference.tests.serving import Failing, Fastidious, Watched, WordShare, serving
from tests.plugin import wait_until

HASHING = protocol.embedder_service("hashing-384", 384)
#: Seconds that nothing here takes, on however busy a machine.
TIMEOUT = 300.0
START = "celery -A ragsite worker --queues=embed --pool=solo"


@pytest.fixture
def url(settings):
    return settings.REDIS_URL


@pytest.fixture
def broker(url):
    with Redis.from_url(url) as broker:
        yield broker


@pytest.fixture
def served(url):
    with serving(url, partial(offer_embedder, "default", HashingEmbedder())):
        yield


def pretend_to_be_alive(broker, service=HASHING):
    """As a worker looks that hangs: it has announced itself and answers nothing."""
    broker.sadd(protocol.alive_key(service), "somebody")


# --- what is wrong with a text, or the model -----------------------------------------------------


def test_an_unusable_text_fails_itself_and_not_those_embedded_with_it(url):
    gate, entered = threading.Event(), threading.Event()

    class Gated(Fastidious):
        def embed_queries(self, texts, instruction=None):
            entered.set()
            assert texts[0] != "first" or gate.wait(30)
            return super().embed_queries(texts, instruction)

    there = WorkerEmbedder(url, timeout=30)
    texts = ["one", "poison", "two", "three"]
    with (
        serving(url, partial(offer_embedder, "default", Gated())),
        ThreadPoolExecutor(5) as threads,
        Redis.from_url(url) as broker,
    ):
        entered.clear()
        first = threads.submit(there.embed_query, "first")
        assert entered.wait(30)
        asked = {text: threads.submit(there.embed_query, text) for text in texts}
        queue = protocol.queue_key(HASHING, "query")
        wait_until(lambda: broker.llen(queue) == len(texts), what="all are in the queue")
        gate.set()
        with pytest.raises(InvalidVector, match="all zeros"):
            asked.pop("poison").result()
        for text, vector in asked.items():
            np.testing.assert_array_equal(vector.result(), HashingEmbedder().embed_query(text))
        assert first.result().shape == (384,)


@pytest.mark.parametrize(
    "error",
    [
        EmptyText(0),
        DimensionMismatch(384, 1024),
        InvalidVector("vector 0 is all zeros"),
        BackendUnavailable("torch is missing: install it"),
        MalformedAnswer("the server sent no list"),
    ],
)
def test_what_the_model_raises_there_is_raised_here(url, error):
    there = WorkerEmbedder(url)
    with serving(url, partial(offer_embedder, "default", Failing(error))):
        for ask in (partial(there.embed_query, "x"), partial(there.embed_documents, ["x"])):
            with pytest.raises(type(error)) as raised:
                ask()
            assert str(raised.value) == str(error)


def test_what_no_model_should_raise_is_unavailability_here_and_in_the_log_there(url, caplog):
    there = WorkerEmbedder(url)
    failing = Failing(RuntimeError("tensors of unlike size"))
    with serving(url, partial(offer_embedder, "default", failing)):
        with pytest.raises(BackendUnavailable, match="RuntimeError: tensors of unlike size"):
            there.embed_query("x")
        assert "Traceback" in caplog.text
        failing.error = InferenceError("it goes on")
        with pytest.raises(InferenceError, match="it goes on"):
            there.embed_documents(["x"])


def test_an_empty_text_is_told_by_its_number_among_all(url):
    class Strict(HashingEmbedder):
        def embed_documents(self, texts):
            if "?" in texts:
                raise EmptyText(texts.index("?"))
            return super().embed_documents(texts)

    texts = ["x"] * (BATCH_TEXTS + 20)
    texts[BATCH_TEXTS + 3] = "?"
    with serving(url, partial(offer_embedder, "default", Strict())):
        with pytest.raises(EmptyText) as raised:
            WorkerEmbedder(url).embed_documents(texts)
        assert raised.value.index == BATCH_TEXTS + 3


@pytest.mark.usefixtures("served")
def test_white_space_and_half_characters_are_refused(url):
    there = WorkerEmbedder(url)
    with pytest.raises(EmptyText):
        there.embed_query(" ")
    with pytest.raises(InferenceError, match="an unpaired surrogate"):
        there.embed_documents(["good", "\ud800"])


def test_a_reranker_that_refuses_is_heard(url):
    with (
        serving(url, partial(offer_reranker, "default", ScoreReranker())),
        pytest.raises(InferenceError, match="2 texts came with 1 stored scores"),
    ):
        WorkerReranker(url).score("q", ["a", "b"], stored=[1.0])


def test_a_score_that_is_no_number_is_refused(url):
    class Wild(WordShare):
        def score(self, query, texts, *, stored=(), instruction=None):
            return [float("nan")] * len(texts)

    with (
        serving(url, partial(offer_reranker, "default", Wild())),
        pytest.raises(InvalidScore, match="NaN"),
    ):
        WorkerReranker(url).score("q", ["a"])


# --- nobody there, or somebody else --------------------------------------------------------------


def test_without_any_announcement_it_says_which_worker_to_start(url):
    for ask in (
        lambda there: there.embed_query("x"),
        lambda there: there.dimensions,
        lambda there: there.token_counter(),
    ):
        with pytest.raises(BackendUnavailable) as raised:
            ask(WorkerEmbedder(url))
        assert "'default'" in str(raised.value)
        assert START in str(raised.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda url: WorkerEmbedder(url, timeout=TIMEOUT).embed_query("x"),
        lambda url: WorkerEmbedder(url, documents_timeout=TIMEOUT).embed_documents(["x"]),
        lambda url: WorkerReranker(url, timeout=TIMEOUT).score("q", ["x"]),
    ],
)
def test_when_the_worker_has_gone_a_question_fails_at_once(url, broker, ask):
    with serving(
        url,
        partial(offer_embedder, "default", HashingEmbedder()),
        partial(offer_reranker, "default", WordShare()),
    ):
        ask(url)
    started = monotonic()
    with pytest.raises(BackendUnavailable) as raised:
        ask(url)
    assert monotonic() - started < TIMEOUT / 2
    assert START in str(raised.value)
    assert not list(broker.scan_iter("*:request:*"))
    assert WorkerEmbedder(url).dimensions == 384, "what it was is still known"


def test_what_nobody_reads_runs_out_and_stays_bounded(url, broker, monkeypatch):
    monkeypatch.setattr(client, "_MAX_QUEUE", 3)
    there = WorkerEmbedder(url, model_name="hashing-384", dimensions=384)
    for _ in range(5):
        with pytest.raises(BackendUnavailable):
            there.embed_query("x")
    queue = protocol.queue_key(HASHING, "query")
    assert broker.llen(queue) == 3
    assert 0 < broker.pttl(queue) <= 5000


def test_a_worker_that_hangs_is_waited_for_no_longer_than_the_timeout(url, broker):
    pretend_to_be_alive(broker)
    there = WorkerEmbedder(url, timeout=0.1, model_name="hashing-384", dimensions=384)
    with pytest.raises(BackendUnavailable, match=r"did not answer .* within 0.1 s"):
        there.embed_query("x")
    assert not list(broker.scan_iter("*:request:*"))


def test_a_worker_that_dies_under_way_is_missed_before_the_timeout(url, broker, monkeypatch):
    monkeypatch.setattr(client, "_POLL_SECONDS", 0.05)
    pretend_to_be_alive(broker)
    broker.pexpire(protocol.alive_key(HASHING), 80)
    there = WorkerEmbedder(url, model_name="hashing-384", dimensions=384)
    with pytest.raises(BackendUnavailable, match="no worker serves"):
        there.embed_documents(["x"])


def test_what_nobody_waits_for_any_more_is_not_embedded(url, broker):
    pretend_to_be_alive(broker)
    options = {"model_name": "hashing-384", "dimensions": 384}
    with pytest.raises(BackendUnavailable):
        WorkerEmbedder(url, timeout=0.05, **options).embed_query("long forgotten")
    embedder = Watched()
    broker.rpush(protocol.queue_key(HASHING, "query"), "id of a question that ran out")
    with serving(url, partial(offer_embedder, "default", embedder)):
        WorkerEmbedder(url, **options).embed_query("fresh")
    assert [texts for texts, _ in embedder.asked] == [["warm up"], ["fresh"]]


def test_a_worker_with_another_model_never_answers(url):
    with serving(url, partial(offer_embedder, "default", HashingEmbedder(dimensions=8))):
        pinned = WorkerEmbedder(url, model_name="hashing-384", dimensions=384)
        with pytest.raises(BackendUnavailable, match="no worker serves embedder:hashing-384:384"):
            pinned.embed_query("x")
        half = WorkerEmbedder(url, model_name="hashing-384")
        with pytest.raises(BackendUnavailable, match=r"is hashing-8 with 8 dimensions, OPTIONS"):
            half.embed_query("x")


def test_one_of_two_workers_may_go(url):
    offer = partial(offer_embedder, "default", HashingEmbedder())
    there = WorkerEmbedder(url)
    with serving(url, offer):
        with serving(url, offer):
            there.embed_query("x")
        assert there.embed_query("x").shape == (384,)


def test_a_model_that_does_not_work_yet_is_tried_again(url, monkeypatch, caplog):
    monkeypatch.setattr(server, "_RETRY_SECONDS", 0.01)
    failures = iter([BackendUnavailable("no weights")] * 3 + [RuntimeError("no memory")])

    def offer():
        for failure in failures:
            raise failure
        return offer_embedder("default", HashingEmbedder())

    with serving(url, offer):
        assert WorkerEmbedder(url).embed_query("x").shape == (384,)
    assert caplog.text.count("a model cannot be served: no weights") == 1
    assert caplog.text.count("a model cannot be served: no memory") == 1


# --- junk in the broker --------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [b"", b"\x80\x04.", b"{}", b'{"text": 1}', b"[1]", bytes(1000)])
def test_junk_is_answered_as_junk_and_does_not_end_the_worker(url, broker, served, junk):
    for kind in ("query", "documents"):
        broker.set(protocol.request_key("abc"), junk)
        broker.rpush(protocol.queue_key(HASHING, kind), "abc", b"\xff\xfe", b"")
    assert WorkerEmbedder(url).embed_query("x").shape == (384,)
    if junk:
        _, reply = broker.blpop([protocol.reply_key("abc")], timeout=10)
        assert b"MalformedAnswer" in reply


@pytest.mark.parametrize("junk", [b"", b"{}", b"\x80\x04.", b'{"model_name": 1}'])
def test_a_junk_announcement_is_malformed(url, broker, junk):
    broker.set(protocol.description_key("default"), junk)
    with pytest.raises(MalformedAnswer):
        WorkerEmbedder(url).embed_query("x")


def test_a_url_that_cannot_be_is_refused_when_configured():
    with pytest.raises(BackendUnavailable, match="correct REDIS_URL"):
        WorkerEmbedder("http://nowhere")


def test_a_broker_that_is_down_says_so():
    for ask in (
        lambda: WorkerEmbedder("redis://127.0.0.1:1/0").dimensions,
        lambda: WorkerReranker("redis://127.0.0.1:1/0").score("q", ["x"]),
    ):
        with pytest.raises(BackendUnavailable, match=r"broker .* does not answer .* REDIS_URL"):
            ask()
