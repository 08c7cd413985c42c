"""Whoever types a title, a heading or a file name gets what is called so."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.trigrams import name_similarity
from search.ranking import (
    EXACT_NAME_BONUS,
    NAME_KIND_WEIGHTS,
    PARTIAL_NAME_BONUS,
    TITLE,
    Names,
    title_match,
)

MOST_ADDED = EXACT_NAME_BONUS + PARTIAL_NAME_BONUS[TITLE]

WORDS = st.lists(st.text("abcdefghij", min_size=3, max_size=8), min_size=1, max_size=6)
TEXTS = st.text(max_size=60)
CANDIDATES = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6)


def titled(title: str) -> Names:
    return title, "7", title


def one(question: str, candidate: Names) -> float:
    return float(title_match(question, [candidate])[0])


@given(TEXTS, CANDIDATES)
def test_anything_adds_between_nothing_and_the_most(question: str, named: list[Names]) -> None:
    scores = title_match(question, named)
    assert scores.shape == (len(named),)
    assert all(0 <= score <= MOST_ADDED + 1e-9 for score in scores)


@given(TEXTS, CANDIDATES)
def test_each_candidate_is_scored_by_itself(question: str, named: list[Names]) -> None:
    together = title_match(question, named)
    assert all(
        isclose(score, one(question, each), abs_tol=1e-9)
        for score, each in zip(together, named, strict=True)
    )


@given(WORDS)
def test_the_title_itself_adds_the_most_in_whatever_case(words: list[str]) -> None:
    title = " ".join(words)
    assert isclose(one(title, titled(title)), MOST_ADDED)
    assert isclose(one(f"“{title.upper()}”?", titled(title)), MOST_ADDED)
    assert isclose(one("-".join(words), titled(title)), MOST_ADDED)


@given(WORDS, WORDS)
def test_no_longer_and_no_shorter_title_adds_as_much(words: list[str], more: list[str]) -> None:
    title, longer = " ".join(words), " ".join([*words, *more])
    assert one(title, titled(longer)) < one(title, titled(title))
    assert one(longer, titled(title)) < one(longer, titled(longer))


@given(WORDS, WORDS)
def test_who_shares_no_letter_gets_nothing(question: list[str], title: list[str]) -> None:
    others = " ".join(title).translate(str.maketrans("abcdefghij", "klmnopqrst"))
    assert one(" ".join(question), titled(others)) == 0


@pytest.mark.parametrize(
    ("asked", "better", "worse"),
    [
        ("changing embedding models", "Change the embedding model", "Commands for the models"),
        ("school bus", "School bus", "School bus: school"),
        ("aircraft.airport", "aircraft.airport", "aircraft.airport_aircraft"),
        ("大阪城の歴史", "大阪城の歴史", "大阪の歴史"),
        ("Lesch-Nyhan syndrome treatment", "Lesch-Nyhan syndrome", "Down syndrome"),
    ],
)
def test_the_nearer_title_adds_more(asked: str, better: str, worse: str) -> None:
    assert one(asked, titled(better)) > one(asked, titled(worse))


def test_a_document_goes_before_a_part_of_another_one() -> None:
    of_title = titled("Pipelines")
    of_heading = ("Commands", "8", "Commands > Pipelines")
    scores = title_match("pipelines", [of_heading, of_title])
    assert scores[1] > scores[0] > EXACT_NAME_BONUS * NAME_KIND_WEIGHTS[TITLE] / 2


def test_title_and_heading_together_are_a_name() -> None:
    named = ("Commands", "8", "Commands > Pipelines")
    other = ("Commands", "8", "Commands > Runs")
    scores = title_match("commands pipelines", [named, other])
    assert scores[0] > 2 * scores[1]


@pytest.mark.parametrize(
    "asked",
    [
        "change-the-model",
        "change the model",
        "change-the-model.md",
        "how-to/change-the-model.md",
        "how-to/change-the-model",
        "/srv/docs/how-to/change-the-model.md",
    ],
)
def test_a_file_is_known_by_any_end_of_its_path(asked: str) -> None:
    named = ("", "/srv/docs/how-to/change-the-model.md", "")
    assert one(asked, named) > 0.7 * EXACT_NAME_BONUS


def test_passages_of_a_document_gain_the_same_by_its_title() -> None:
    contexts = ["Pipelines", "Pipelines > How a run goes", "Pipelines > Steps"]
    scores = title_match("pipelines", [("Pipelines", "7", each) for each in contexts])
    assert scores[0] == scores[1] == scores[2]


def test_nothing_is_asked_of_nothing() -> None:
    assert title_match("pipelines", []).tolist() == []
    assert title_match("?!", [titled("Pipelines")]).tolist() == [0.0]
    assert title_match("pipelines", [("", "", "")]).tolist() == [0.0]


def test_shares_agree_with_counting_by_hand() -> None:
    # " ab", "ab ", "b a", " ac", "ac " of the question; " ab", "ab " and " ab", "ab ", "b a", ...
    of_question, of_name, length = name_similarity("ab ac", ["ab", "AB  ab", "ac ab"])
    assert of_question.tolist() == [0.4, 0.4, 0.8]
    assert of_name.tolist() == [1.0, 1.0, 0.8]
    assert length.tolist() == [0.4, 0.8, 1.0]
