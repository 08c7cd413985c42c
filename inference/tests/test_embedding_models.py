"""Which embedder a maker's name means."""

from collections.abc import Iterator

import pytest
from django.test import override_settings

from inference import embedding_models
from inference.backends.openai_compatible import OpenAIEmbedder
from inference.checks import check_chat_names
from inference.embedding_models import routed_embedder
from inference.interfaces import InferenceError
from inference.tests.stub_server import DIMENSIONS, StubServer, ollama_reply


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with override_settings(OPENAI_URL="", OLLAMA_URL="", CHAT_MODELS=[]):
        embedding_models._build_routed.cache_clear()
        yield
    embedding_models._build_routed.cache_clear()


def test_openai_is_asked_for_its_models() -> None:
    found = routed_embedder("text-embedding-3-large")
    assert isinstance(found, OpenAIEmbedder)
    assert (found.model_name, found.dimensions) == ("text-embedding-3-large", 3072)
    assert routed_embedder("text-embedding-3-large") is found


@pytest.mark.parametrize("name", ["gpt-5", "my-text-embedding-3", "ollama/bge-m3", "", "a" * 300])
def test_other_names_and_makers_without_an_address_are_none(name: str) -> None:
    assert routed_embedder(name) is None


def test_a_maker_without_a_key_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert routed_embedder("text-embedding-3-small") is None


def test_only_what_the_settings_allow_is_asked() -> None:
    with override_settings(CHAT_MODELS=["gpt-*", "text-embedding-3-s*"]):
        assert routed_embedder("text-embedding-3-small")
        assert routed_embedder("text-embedding-3-large") is None
        assert check_chat_names() == []
    with override_settings(CHAT_MODELS=["none"]):
        assert routed_embedder("text-embedding-3-small") is None


def test_a_model_that_is_not_known_is_asked_for_its_dimensions(stub: StubServer) -> None:
    stub.always(ollama_reply)
    with override_settings(OLLAMA_URL=stub.url):
        found = routed_embedder("ollama/house-model")
        assert found is not None
        assert (found.model_name, found.dimensions) == ("house-model", DIMENSIONS)
        assert found.embed_query("a").shape == (DIMENSIONS,)


def test_a_server_that_is_away_is_an_error() -> None:
    with override_settings(OLLAMA_URL="http://127.0.0.1:9"), pytest.raises(InferenceError):
        routed_embedder("ollama/house-model")
