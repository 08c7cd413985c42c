"""The sentence that a hit of meaning alone shows is the one nearest to the question."""

import threading
from typing import Any

import pytest
from django.core.cache import caches

from documents.models import EmbeddingSpace
from documents.tests.factories import ChunkFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable
from inference.model_registry import embedders
from search.snippets import MAX_CHARACTERS, MAX_PAGE_SENTENCES, nearest_sentences, snippet_focuses
from tests.kit import use_models

pytestmark = pytest.mark.django_db

DULL = "Nothing at all is to be seen in this long sentence. "
TEXT = DULL * 9 + "The red fox sleeps under the old oak tree. " + DULL * 9


@pytest.fixture
def space() -> EmbeddingSpace:
    return EmbeddingSpace.objects.get(is_default=True)


def shown(text: str, span: tuple[int, int] | None) -> str | None:
    return text[slice(*span)] if span else None


def test_each_text_has_its_nearest_sentence(space: EmbeddingSpace) -> None:
    other = DULL * 5 + "An oak tree is felled. " + DULL * 5
    spans = nearest_sentences("a fox under an oak tree", space, [TEXT, other, "", "  \n"])
    assert shown(TEXT, spans[0]) == "The red fox sleeps under the old oak tree."
    assert "oak tree" in (shown(other, spans[1]) or "")
    assert spans[2:] == [None, None]


def test_only_passages_without_a_marked_word_are_looked_at(space: EmbeddingSpace) -> None:
    unmarked, marked, short = (ChunkFactory(text=text) for text in (TEXT, TEXT, "A short text."))
    found = snippet_focuses(
        "a fox under an oak tree",
        [unmarked, marked, short],
        {marked.pk: [(0, 7)], unmarked.pk: []},
        spaces=[space],
    )
    assert {pk: shown(TEXT, span) for pk, span in found.items()} == {
        unmarked.pk: "The red fox sleeps under the old oak tree."
    }


def test_no_text_needs_no_model(space: EmbeddingSpace) -> None:
    assert nearest_sentences("fox", space, []) == []


def test_only_so_much_of_a_text_is_looked_at(space: EmbeddingSpace) -> None:
    long = DULL * (MAX_CHARACTERS // len(DULL) + 1) + "The red fox sleeps."
    (span,) = nearest_sentences("red fox", space, [long])
    assert span
    assert span[1] <= MAX_CHARACTERS


class _Slow(HashingEmbedder):
    """Takes longer for each text than any earlier bound on time allowed."""

    def embed_documents(self, texts: Any) -> Any:
        self.event.wait(0.04)
        return super().embed_documents(texts)

    event = threading.Event()


class _Counting(HashingEmbedder):
    """Counts how often documents are embedded."""

    calls = 0

    def embed_documents(self, texts: Any) -> Any:
        type(self).calls += 1
        return super().embed_documents(texts)


class _Broken(HashingEmbedder):
    """A model that is out of order."""

    def embed_documents(self, texts: Any) -> Any:
        raise BackendUnavailable("the model host does not answer; start it.")


class _Hanging(HashingEmbedder):
    """A model that answers when it is let."""

    let = threading.Event()

    def embed_documents(self, texts: Any) -> Any:
        self.let.wait(30)
        return super().embed_documents(texts)


def use(settings: Any, backend: type[HashingEmbedder]) -> None:
    path = f"{__name__}.{backend.__name__}"
    use_models(settings, embedder={"BACKEND": path}, reranker={})


def test_a_slow_model_chooses_the_same_sentences(space: EmbeddingSpace, settings: Any) -> None:
    texts = [f"{TEXT}{number}" for number in range(5)]
    fast = nearest_sentences("red fox", space, texts)
    caches["default"].clear()
    use(settings, _Slow)
    assert nearest_sentences("red fox", space, texts) == fast


def test_a_page_embeds_a_bounded_number_of_sentences_of_its_first_texts(
    space: EmbeddingSpace,
) -> None:
    texts = [f"{TEXT}{number}" for number in range(MAX_PAGE_SENTENCES)]
    spans = nearest_sentences("red fox", space, texts)
    chosen = [span is not None for span in spans]
    assert any(chosen)
    assert not all(chosen)
    assert chosen == sorted(chosen, reverse=True)
    # What is cached from the first time counts, too: the page stays the same.
    assert nearest_sentences("red fox", space, texts) == spans


def test_the_same_question_of_the_same_text_asks_the_model_once(
    space: EmbeddingSpace, settings: Any
) -> None:
    use(settings, _Counting)
    first = nearest_sentences("red fox", space, [TEXT])
    calls = _Counting.calls
    assert calls
    assert nearest_sentences("red fox", space, [TEXT]) == first
    assert _Counting.calls == calls


def test_a_model_that_is_down_costs_the_sentence_and_not_the_page(
    space: EmbeddingSpace, settings: Any
) -> None:
    use(settings, _Broken)
    assert nearest_sentences("red fox", space, [TEXT]) == [None]
    use_models(settings, embedder={}, reranker={})
    assert nearest_sentences("red fox", space, [TEXT]) == [None]


def test_a_model_that_hangs_is_not_waited_for(
    space: EmbeddingSpace, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("search.snippets.MODEL_TIMEOUT", 0.01)
    use(settings, _Hanging)
    try:
        pages = [nearest_sentences(f"red fox {page}", space, [TEXT]) for page in range(4)]
    finally:
        _Hanging.let.set()
    assert pages == [[None]] * 4


def test_a_cache_that_is_down_costs_time_only(space: EmbeddingSpace, settings: Any) -> None:
    settings.CACHES = {
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "unix:///nowhere/valkey.sock?db=0",
        }
    }
    (span,) = nearest_sentences("red fox", space, [TEXT])
    assert shown(TEXT, span) == "The red fox sleeps under the old oak tree."


@pytest.mark.model
def test_a_real_model_finds_what_shares_no_word(space: EmbeddingSpace, settings: Any) -> None:
    use_models(
        settings,
        embedder={"BACKEND": "inference.backends.transformers_local.TransformersEmbedder"},
        reranker={},
    )
    space.model_name = embedders["default"].model_name
    embedders["default"].embed_query("loaded, as it is when a search comes to its snippets")
    text = (
        "The committee met on Tuesday to discuss the budget of the coming year. "
        "Its members could not agree on the cost of the new roof. "
        "Physicians advise against giving this medicine to infants. "
        "The minutes were sent to all who had taken part."
    )
    (span,) = nearest_sentences("Is the drug safe for babies?", space, [text])
    assert shown(text, span) == "Physicians advise against giving this medicine to infants."
