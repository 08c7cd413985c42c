"""What was found is judged by meaning and words, and by words alone where no model works."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.embedders import SimilarityScale, scale_of, similarity_scale
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from inference.model_registry import embedders
from rag.answering.answerability import (
    Evidence,
    QuestionTerm,
    answer_confidence,
    judge_confidence,
    missing_names,
    question_coverage,
    with_quotation,
    without_question_words,
)
from rag.answering.evidence import find_passages
from rag.answering.extractive import ExtractiveAnswer, Quote
from rag.answering.phrases import (
    LANGUAGES,
    is_refusal,
    not_found_text,
    refusal_help,
    say,
    stated_confidence,
)
from rag.events import SearchedScope
from rag.tests.answering import passage
from reading.segments import Segment
from search.query_options import site_scope
from search.results import Mode

TEXTS = {
    "tower": "The Eiffel Tower in Paris was built by the company of Gustave Eiffel in 1889.",
    "bread": "Bread is baked from flour, water and salt; sourdough takes a day to rise.",
    "heart": "The heart pumps blood through the arteries into all organs of the body.",
}
SHARES = st.floats(0, 1)


def test_nothing_found_is_no_answer() -> None:
    assert answer_confidence(Evidence(passages=0)) == 0.0


def test_a_near_passage_with_the_words_of_the_question_answers() -> None:
    assert (
        judge_confidence(Evidence(passages=8, nearness=1.1, background=0.05, coverage=0.8))
        == "high"
    )
    assert (
        judge_confidence(Evidence(passages=8, nearness=0.5, background=0.0, coverage=0.15))
        != "high"
    )


def test_by_words_alone_most_of_them_must_be_there() -> None:
    assert judge_confidence(Evidence(passages=8, coverage=0.8, terms=5)) == "high"
    assert judge_confidence(Evidence(passages=8, coverage=0.2, terms=5)) != "high"


@given(near=st.floats(-1, 2), background=st.floats(-0.5, 0.5), more=SHARES, less=SHARES)
def test_more_words_never_speak_against_an_answer(
    near: float, background: float, more: float, less: float
) -> None:
    low, high = sorted((more, less))
    for nearness, beside in ((near, background), (None, None)):
        few, many = (
            answer_confidence(Evidence(3, share, 4, nearness, beside)) for share in (low, high)
        )
        assert few <= many


def test_rare_words_weigh_most_and_words_that_stand_nowhere_weigh_more() -> None:
    common = QuestionTerm("english", 1000, 500, frozenset({1, 2}))
    rare = QuestionTerm("english", 1000, 2, frozenset({2}))
    nowhere = QuestionTerm("english", 1000, 0, frozenset())
    assert common.weight < rare.weight < nowhere.weight
    assert question_coverage([common, rare], [1])[0] < 0.2
    assert question_coverage([common, rare], [2]) == (1.0, 2)
    assert question_coverage([common, rare, nowhere], [1, 2])[0] < 0.6
    assert question_coverage([], [1]) == (0.0, 0)


def test_words_are_counted_in_the_language_of_the_passage() -> None:
    german = QuestionTerm("german", 1000, 5, frozenset({1}))
    english = QuestionTerm("english", 1000, 0, frozenset())
    assert question_coverage([german, english], [1])[0] == 1.0


def test_names_and_numbers_that_the_passage_lacks_speak_against_an_answer() -> None:
    tower = passage("Visitors come to the tower in summer, 300 a day.", title="Eiffel Tower")
    assert missing_names("How many visit the Eiffel tower, 300?", tower) == 0.0
    assert missing_names("Did Eiffel work with Salesforce in 1999?", tower) == pytest.approx(2 / 3)
    assert missing_names("Wie viele Besucher hat der Turm?", replace(tower, language="de")) == 0.0
    named = Evidence(passages=8, nearness=1.1, background=0.05, coverage=0.3)
    assert judge_confidence(named) == "high"
    assert judge_confidence(replace(named, missing_names=1.0)) != "high"


def test_a_question_in_another_language_is_judged_by_meaning() -> None:
    near = Evidence(passages=8, nearness=1.1, background=0.05, is_foreign=True)
    assert judge_confidence(near) == "high"
    assert judge_confidence(replace(near, is_foreign=False)) != "high"
    assert judge_confidence(replace(near, nearness=0.6)) != "high"


def test_how_near_all_texts_are_says_nothing_of_a_model_for_many_languages() -> None:
    near = Evidence(passages=8, nearness=1.1, background=0.5, coverage=0.2, is_multilingual=True)
    assert judge_confidence(near) != "high"
    assert judge_confidence(replace(near, is_multilingual=False)) == "high"
    assert judge_confidence(replace(near, nearness=1.3, background=0.0, coverage=0.4)) == "high"


@pytest.mark.parametrize(
    ("question", "left"),
    [("Wann wird die Kette geölt?", "wird die Kette geölt?"), ("Wie viel?", "Wie viel?")],
)
def test_words_that_ask_are_no_words_of_an_answer(question: str, left: str) -> None:
    assert without_question_words(question) == left


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_is_known_again(language: str) -> None:
    assert is_refusal(not_found_text(language))
    assert is_refusal(f"  {not_found_text(language)}\n")
    assert not is_refusal("The tower is made of iron [1].")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refusal_names_what_was_searched_in_every_language(language: str) -> None:
    many = SearchedScope({str(n): f"Shelf {n}" for n in range(9)}, 1234, is_filtered=True)
    text = refusal_help(many, language)
    assert re.search(r"\b9 \w+ \w+ 1[,.\u202f]234 \w+\.", text), text
    assert "Shelf" not in text, "only a few are named"
    assert say("try_without_filter", language) in text
    one = refusal_help(SearchedScope({"a": "Shelf A"}, 1), language)
    assert re.search(r"\b1 \w+ \w+ 1 \w+ \(Shelf A\)\.", one), one
    assert is_refusal(f"{not_found_text(language)}\n\n{text}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_states_its_confidence(language: str) -> None:
    assert stated_confidence(not_found_text(language)) == "none"
    assert stated_confidence(f"{say('unsure', language)}\n\n“Iron.” [1]") == "low"
    assert stated_confidence(f"{say('quotes', language)}\n\n“Iron.” [1]") == "high"


def test_between_sure_and_refused_there_is_perhaps() -> None:
    found = [Evidence(passages=8, coverage=share / 100, terms=3) for share in range(101)]
    degrees = [judge_confidence(each) for each in found]
    assert degrees == sorted(degrees, key=["none", "low", "high"].index)
    assert set(degrees) == {"none", "low", "high"}


def test_an_unknown_language_is_refused_in_english() -> None:
    assert not_found_text("xx") == not_found_text("") == not_found_text("en-GB")


# --- a model's scale ---------------------------------------------------------------------------


def test_a_scale_runs_from_strangers_to_answers() -> None:
    found = similarity_scale(0.6 * np.eye(4, dtype=np.float32))
    assert found == SimilarityScale(unrelated=0.0, related=0.6)
    assert found.nearness(0.0) == 0.0
    assert found.nearness(0.6) == 1.0


def test_models_of_other_scales_give_the_same_nearness() -> None:
    wide, narrow = SimilarityScale(0.0, 0.5), SimilarityScale(0.75, 0.85)
    assert wide.nearness(0.25) == pytest.approx(narrow.nearness(0.80))
    assert narrow.knows_meaning


def test_a_model_that_finds_everything_alike_knows_no_meaning() -> None:
    assert not SimilarityScale(0.80, 0.81).knows_meaning
    assert not SimilarityScale(0.04, 0.02).knows_meaning


@pytest.mark.django_db
def test_an_embedder_without_meaning_has_no_scale() -> None:
    assert scale_of(CollectionFactory().space) is None


# --- evidence from the database ----------------------------------------------------------------


@pytest.fixture
def shelf(media_root: Any) -> Collection:
    collection: Collection = CollectionFactory(slug="shelf")
    sources = [text_source(key, text) for key, text in TEXTS.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


def evidence_for(question: str, collection: Collection, *, mode: Mode = "hybrid") -> Evidence:
    scope = site_scope(workspace=collection.workspace, collections=[collection.slug])
    return find_passages(question, scope=scope, k=8, mode=mode).evidence


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Who built the Eiffel Tower in Paris?", True),
        ("What is bread baked from?", True),
        ("What does the heart pump through the arteries?", True),
        ("Which medieval kings ruled Portugal?", False),
        ("How do quantum computers factor large integers?", False),
        ("Was ist die Hauptstadt von Norwegen?", False),
    ],
)
def test_three_documents_are_enough_to_tell(
    shelf: Collection, question: str, answers: bool, mode: Mode
) -> None:
    found = evidence_for(question, shelf, mode=mode)
    assert found.nearness is None, "the embedder of the tests knows no meaning"
    assert (judge_confidence(found) == "high") is answers


@pytest.mark.django_db
def test_words_that_stand_nowhere_count_against_it(shelf: Collection) -> None:
    known = evidence_for("tower Paris", shelf).coverage
    assert known == 1.0
    assert evidence_for("tower Paris zanzibarite quixotry", shelf).coverage < 0.6


@pytest.mark.django_db
def test_an_embedder_that_is_down_leaves_it_to_the_words(shelf: Collection, settings: Any) -> None:
    path = "inference.backends.openai_compatible.OpenAICompatibleEmbedder"
    options = {"base_url": "http://127.0.0.1:9/v1", "model": "x", "dimensions": 384}
    backend = {"BACKEND": path, "OPTIONS": options}
    settings.INFERENCE = {"embedder": {"default": backend}, "reranker": {}}
    found = evidence_for("Who built the Eiffel Tower in Paris?", shelf)
    assert found.nearness is None
    assert judge_confidence(found) == "high"


@pytest.mark.django_db
def test_vectors_without_a_text_answer_nothing(shelf: Collection) -> None:
    Chunk.objects.update(text="")
    scope = site_scope(workspace=shelf.workspace, collections=[shelf.slug])
    found = find_passages("Eiffel Tower in Paris", scope=scope, k=8)
    assert found.passages
    assert judge_confidence(found.evidence) != "high"


@pytest.mark.django_db
def test_operators_are_no_words_of_the_question(shelf: Collection) -> None:
    assert evidence_for("tower Paris -zanzibarite", shelf).coverage == 1.0


@pytest.mark.model
@pytest.mark.django_db
def test_the_default_model_is_put_on_its_scale(media_root: Any, settings: Any) -> None:
    path = "inference.backends.transformers_local.TransformersEmbedder"
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": path}}, "reranker": {}}
    collection = CollectionFactory(slug="shelf")
    space = collection.space
    space.model_name = embedders["default"].model_name
    space.save()
    ingest_inline(
        collection=collection, sources=[text_source(key, text) for key, text in TEXTS.items()]
    )
    measured = scale_of(space)
    assert measured is not None
    assert measured.unrelated < 0.1
    assert measured.related > 0.4
    near = evidence_for("Whose firm erected the landmark of Paris?", collection)
    assert near.nearness is not None
    assert near.nearness > 0.7
    assert judge_confidence(near) == "high"
    assert (
        judge_confidence(evidence_for("Which kings ruled medieval Portugal?", collection)) != "high"
    )


def test_the_best_sentence_decides_where_sentences_were_compared() -> None:
    found = Evidence(passages=8, nearness=1.2, coverage=0.9, is_multilingual=True)
    there = replace(passage("It opens at nine.", language="en"), coverage=0.3)

    def judged(nearness: float | None, query_language: str = "en") -> bool:
        best = Quote(there, Segment("sentence", 0, len(there.text)), nearness=nearness)
        evidence = with_quotation(found, ExtractiveAnswer(best=best), query_language=query_language)
        return judge_confidence(evidence) == "high"

    assert judged(None), "a passage that is near enough"
    assert not judged(0.6), "none of its sentences is"
    assert judged(1.8)
    assert not judged(1.5), "the same nearness is less in one's own language"
    assert judged(1.5, query_language="de")


def compared(**values: Any) -> Evidence:
    return Evidence(passages=8, **values)


def test_a_section_that_stands_out_is_sure_to_answer() -> None:
    outstanding = compared(section_score=8.0, section_lead=3.0, nearness=1.4)
    assert judge_confidence(outstanding) == "high"
    assert judge_confidence(replace(outstanding, section_lead=0.2, section_score=5.0)) == "low"
    unrelated = compared(section_score=2.5, section_lead=0.3, nearness=0.9)
    assert judge_confidence(unrelated) == "none"


def test_what_models_did_not_tell_is_taken_for_usual() -> None:
    told = compared(section_score=8.0, section_lead=3.0)
    assert judge_confidence(told) == "high"


def test_what_is_not_of_the_kind_that_is_asked_for_is_no_answer() -> None:
    near = compared(section_score=8.0, section_lead=3.0, nearness=1.4)
    assert judge_confidence(replace(near, lacks_kind=True)) != "high"


def test_another_language_must_answer_more_surely_after_the_own_does_not() -> None:
    near = Evidence(passages=8, nearness=1.0, sentence_nearness=1.5, coverage=0.3)
    assert judge_confidence(near) == "high"
    assert judge_confidence(replace(near, is_second=True)) != "high"


def test_the_row_of_a_table_that_was_asked_for_is_an_answer() -> None:
    assert judge_confidence(Evidence(passages=8, coverage=0.1, terms=4, is_extreme=True)) == "high"
