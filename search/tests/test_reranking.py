"""Fusion of a reranker's scores, what it reads of a passage, and which languages it is asked in."""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from search.query_options import site_scope
from search.reranking import READ_CHARACTERS, rerank_factors, windows_to_read
from search.results import SearchResult
from search.services import search

scores = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(scores)
def test_a_greater_score_never_gives_a_smaller_factor(given: list[float]) -> None:
    factors = rerank_factors(given)
    assert len(factors) == len(given)
    order = np.argsort(given, kind="stable")
    assert (np.diff(np.array(factors)[order]) >= 0).all()
    assert all(factor > 0 for factor in factors)


@given(st.floats(0, 1), st.integers(1, 20))
def test_equal_scores_change_nothing(score: float, count: int) -> None:
    assert rerank_factors([score] * count) == pytest.approx([1.0] * count)


@given(scores)
def test_factors_do_not_depend_on_the_order_of_the_hits(given: list[float]) -> None:
    assert rerank_factors(given[::-1]) == pytest.approx(rerank_factors(given)[::-1])


def test_a_sure_reranker_counts_no_more_than_a_hesitant_one() -> None:
    sure, hesitant = (1 / (1 + np.exp(-np.array([6.0, 0.0, -6.0]) * by)) for by in (1.5, 0.5))
    assert rerank_factors(sure.tolist()) == pytest.approx(rerank_factors(hesitant.tolist()))


def test_nothing_to_rerank_has_no_factors() -> None:
    assert rerank_factors([]) == []


LONG = " ".join(f"Sentence {n} of this chapter tells of boats and of weather." for n in range(40))


def test_of_a_long_passage_the_sentences_with_the_words_of_the_question_are_read() -> None:
    text = LONG.replace("Sentence 31 of", "An otter sleeps afloat. Sentence 31 of")
    (window,) = windows_to_read("Where does the otter sleep?", [("Animals > Otters", text)])
    context, _, read = window.partition("\n")
    assert context == "Animals > Otters"
    assert "An otter sleeps afloat." in read
    assert read in text
    assert len(read) <= READ_CHARACTERS


def test_short_passages_are_read_whole_and_in_order() -> None:
    passages = [("", "An otter."), ("Birds", "A heron stands."), ("", "Otters swim.")]
    read = windows_to_read("otter", passages)
    assert read == ["An otter.", "Birds\nA heron stands.", "Otters swim."]


@given(st.lists(st.text(max_size=1500), max_size=4), st.text(max_size=40))
def test_a_window_is_a_part_of_its_passage(texts: list[str], question: str) -> None:
    read = windows_to_read(question, [("", text) for text in texts])
    assert len(read) == len(texts)
    for window, text in zip(read, texts, strict=True):
        assert window in text
        assert len(window) <= READ_CHARACTERS


# --- which passages are read ------------------------------------------------------------------


class EnglishReranker:
    """Likes short texts. `asked` are the texts that it was given."""

    model_name = "ms-marco-test"
    asked: list[str] = []
    may_answer = threading.Event()

    def score(self, query: str, texts: list[str], **options: Any) -> list[float]:
        assert self.may_answer.wait(60)
        EnglishReranker.asked += texts
        return [1 / (2 + len(text)) for text in texts]


@pytest.fixture
def reranker(settings: Any) -> Iterator[type[EnglishReranker]]:
    """A reranker for English alone, as its name says."""
    backend = {"BACKEND": f"{__name__}.EnglishReranker"}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": backend}}
    EnglishReranker.asked = []
    EnglishReranker.may_answer.set()
    yield EnglishReranker
    EnglishReranker.may_answer.set()


@pytest.fixture
def collection(media_root: Any) -> Collection:
    """Two documents in English and one in German."""
    collection = CollectionFactory()
    ingest_inline(
        collection=collection,
        sources=[
            text_source("a", "The otter sleeps in the river at night.", language="en"),
            text_source("b", "Otter and heron live by the same river.", language="en"),
            text_source("c", "Der Otter schläft nachts im Fluss.", language="de"),
        ],
    )
    return collection


def find(collection: Collection, query: str, **options: Any) -> SearchResult:
    return search(query, scope=site_scope(workspace=collection.workspace), **options)


@pytest.mark.django_db
def test_passages_in_other_languages_keep_their_fused_score(
    collection: Collection, reranker: type[EnglishReranker]
) -> None:
    result = find(collection, "Where does the otter sleep in the river?")
    assert result.reranked == 2
    assert not any("schläft" in text for text in reranker.asked)
    by_key = {hit.document_key: hit for hit in result.hits}
    assert len(by_key) == 3
    assert (by_key["c"].rerank, by_key["c"].rerank_factor) == (None, 1.0)
    assert all(by_key[key].rerank is not None for key in "ab")


@pytest.mark.django_db
def test_a_question_in_another_language_is_not_reranked(
    collection: Collection, reranker: type[EnglishReranker]
) -> None:
    result = find(collection, "Wo schläft der Otter in der Nacht und warum?")
    assert (result.reranked, result.reranker, result.degraded) == (0, "", ())
    assert reranker.asked == []


@pytest.mark.django_db
def test_languages_of_the_settings_go_before_those_of_the_name(
    collection: Collection, reranker: type[EnglishReranker], settings: Any
) -> None:
    entry = {**settings.INFERENCE["reranker"]["default"], "LANGUAGES": ["en", "de"]}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": entry}}
    assert find(collection, "Wo schläft der Otter in der Nacht und warum?").reranked == 3


# --- how long it may take -----------------------------------------------------------------------


@pytest.mark.django_db
def test_a_search_waits_so_long_for_a_reranker_that_it_did_not_demand(
    collection: Collection, reranker: type[EnglishReranker], settings: Any
) -> None:
    question = "Where does the otter sleep in the river?"
    plain = find(collection, question, rerank=False)
    settings.RERANK_SECONDS = 0.05
    reranker.may_answer.clear()
    late = find(collection, question)
    assert late.degraded == ("rerank",)
    assert [hit.pk for hit in late.hits] == [hit.pk for hit in plain.hits]
    threading.Timer(4 * settings.RERANK_SECONDS, reranker.may_answer.set).start()
    demanded = find(collection, question, rerank=True)
    assert (demanded.degraded, demanded.reranked) == ((), 2)
