"""Vectors of questions and titles in the cache."""

import numpy as np
import pytest
from django.core.cache import caches
from django.test.utils import override_settings

from inference.backends.hashing import HashingEmbedder
from inference.interfaces import EmptyText
from inference.query_cache import embed_documents_cached, embed_query_cached

BACKEND = "inference.tests.test_query_cache.Listening"
IN_MEMORY = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Nothing listens on port 1, so this is a real Redis client without its server.
DOWN = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": "redis://127.0.0.1:1/0",
    }
}


class Listening(HashingEmbedder):
    """Remembers what it was asked for; an instruction changes the vector."""

    asked: list[tuple[str, str | None]] = []

    def embed_query(self, text, instruction=None):
        self.asked.append((text, instruction))
        return super().embed_query(f"{instruction or ''} {text}")


@pytest.fixture(autouse=True)
def asked():
    Listening.asked.clear()
    aliases = {
        "default": {"BACKEND": BACKEND},
        "small": {"BACKEND": BACKEND, "OPTIONS": {"dimensions": 8}},
    }
    with override_settings(INFERENCE={"embedder": aliases}, CACHES=IN_MEMORY):
        caches["default"].clear()
        yield Listening.asked


def test_the_same_query_is_embedded_once(asked):
    first, second = (embed_query_cached("default", "side effects") for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert second.dtype == np.float32
    assert second.flags.writeable
    assert len(asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        ("default", "side effect", None),
        ("default", "side effects", "find"),
        ("small", "side effects", None),
    ],
)
def test_another_text_instruction_or_space_is_another_entry(asked, other):
    embed_query_cached("default", "side effects")
    alias, text, instruction = other
    again = embed_query_cached(alias, text, instruction)
    assert len(asked) == 2
    np.testing.assert_array_equal(again, embed_query_cached(alias, text, instruction))
    assert len(asked) == 2


def test_no_instruction_and_an_empty_one_are_the_same(asked):
    embed_query_cached("default", "side effects", "")
    embed_query_cached("default", "side effects", None)
    assert len(asked) == 1


def test_titles_are_embedded_once_in_any_company(asked, monkeypatch):
    made = []
    embed = HashingEmbedder.embed_documents

    def embed_documents(self, texts):
        made.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(Listening, "embed_documents", embed_documents)
    embed_documents_cached("default", ["Handbook", "Travel"])
    again = embed_documents_cached("default", ["Prices", "Travel", "Prices", "Handbook"])
    assert made == ["Handbook", "Travel", "Prices"]
    expected = embed(HashingEmbedder(), ["Prices", "Travel", "Prices", "Handbook"])
    np.testing.assert_array_equal(again, expected)
    # what a text is as a question is another vector
    embed_query_cached("default", "Travel")
    assert asked == [("Travel", None)]


def test_a_cache_that_is_down_fails_no_query(asked, caplog):
    with override_settings(CACHES=DOWN):
        vector = embed_query_cached("default", "side effects")
    np.testing.assert_array_equal(vector, HashingEmbedder().embed_query("side effects"))
    assert "vectors cannot be read from the cache" in caplog.text
    assert "vectors cannot be written to the cache" in caplog.text


@pytest.mark.parametrize("rubbish", [b"", b"abc", bytes(384 * 4), bytes(8 * 4), "text", [1, 2]])
def test_a_spoiled_entry_is_embedded_again_and_mended(asked, rubbish):
    embed_query_cached("default", "side effects")
    [key] = [key.split(":", 2)[2] for key in caches["default"]._cache]
    caches["default"].set(key, rubbish)
    vector = embed_query_cached("default", "side effects")
    assert len(asked) == 2
    np.testing.assert_array_equal(vector, embed_query_cached("default", "side effects"))
    assert len(asked) == 2


def test_an_error_of_the_embedder_is_not_hidden_or_cached(asked):
    for _ in range(2):
        with pytest.raises(EmptyText):
            embed_query_cached("default", " ")
    assert len(asked) == 2
