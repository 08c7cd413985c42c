"""When a worker loads its models, and when it forgets them."""

from functools import partial

import pytest
from redis import Redis

from inference.backends.worker import WorkerEmbedder
from inference.interfaces import BackendUnavailable
from inference.local.model_folder import MINILM, MULTILINGUAL_E5
from inference.model_registry import embedders
from inference.serving import protocol
from inference.serving.server import offer_embedder, site_server
from inference.tests.serving import Failing, serving
from tests.plugin import wait_until

ONNX = "inference.backends.onnx_local.OnnxEmbedder"


@pytest.mark.model
def test_a_model_beside_the_default_is_loaded_when_it_is_asked_for(settings):
    settings.INFERENCE = {
        "embedder": {
            "default": {"BACKEND": ONNX, "OPTIONS": {"model": MINILM}},
            "multilingual": {"BACKEND": ONNX, "OPTIONS": {"model": MULTILINGUAL_E5}},
        },
        "reranker": {"default": {"BACKEND": "inference.backends.rerank_basic.NoReranker"}},
    }
    services = [protocol.embedder_service(name, 384) for name in (MINILM, MULTILINGUAL_E5)]
    broker = Redis.from_url(settings.REDIS_URL)
    running = site_server()
    running.start()
    try:
        # Both are found at once, so that no other process loads its own.
        wait_until(
            lambda: all(broker.exists(protocol.alive_key(each)) for each in services),
            what="both models are served",
        )
        loaded = {alias: embedders.own(alias).is_loaded for alias in ("default", "multilingual")}
        assert loaded == {"default": True, "multilingual": False}
        there = WorkerEmbedder(settings.REDIS_URL, alias="multilingual", timeout=60)
        assert there.max_tokens == 510
        assert there.embed_query("wie viel").shape == (384,)
        assert embedders.own("multilingual").is_loaded
        assert embedders.release_idle(3600.0) is False
        assert embedders.release_idle(0.0) is True
        loaded = {alias: embedders.own(alias).is_loaded for alias in ("default", "multilingual")}
        assert loaded == {"default": True, "multilingual": False}
        assert embedders.release_idle(0.0) is False
        assert there.embed_query("how much").shape == (384,)
    finally:
        running.stop()
        broker.close()


def test_a_model_that_cannot_be_loaded_says_so_to_who_asks(settings):
    failing = Failing(BackendUnavailable("no weights are there"))
    with serving(settings.REDIS_URL, partial(offer_embedder, "other", failing, warm_up=False)):
        there = WorkerEmbedder(settings.REDIS_URL, alias="other")
        with pytest.raises(BackendUnavailable, match="no weights are there"):
            there.embed_query("a question")
