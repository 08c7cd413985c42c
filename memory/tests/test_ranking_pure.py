"""The order of what a user is remembered by, and the relevance beside it, are laws of numbers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.ranking import (
    EPOCH,
    MICROSECOND,
    Candidates,
    Ranked,
    rank,
    recency_factor,
    relevance,
    shrunk_baseline,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHARES = st.floats(0, 1)
COSINES = st.floats(-1, 1)
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@dataclass(frozen=True)
class Candidate:
    """A row of `Candidates`, None where nothing is known."""

    id: int
    text: str = ""
    _: KW_ONLY
    lexical: float = 0.0
    coverage: float = 0.0
    similarity: float | None = None
    likeness: float | None = None
    days_ago: float = 0
    previous: int | None = None
    following: int | None = None


def columns(rows: Sequence[Candidate]) -> Candidates:
    moments = [(NOW - timedelta(days=row.days_ago) - EPOCH) // MICROSECOND for row in rows]
    links = [[row.previous, row.following] for row in rows]
    previous, following = (
        np.array([[-1 if link is None else link for link in pair] for pair in links], np.int64)
        .reshape(-1, 2)
        .T
    )
    return Candidates(
        ids=np.array([row.id for row in rows], np.int64),
        moments=np.array(moments, np.int64),
        texts=[row.text for row in rows],
        lexical=np.array([row.lexical for row in rows], np.float64),
        coverage=np.array([row.coverage for row in rows], np.float64),
        similarities=np.array([row.similarity for row in rows], np.float64),
        feedback_similarities=np.array([row.likeness for row in rows], np.float64),
        previous=previous,
        following=following,
    )


def ranked(
    candidates: Sequence[Candidate],
    question: str = "Where is the harbour?",
    *,
    background: float | None = 0.1,
    weight: float = 0.0,
    evidence: bool = True,
) -> list[Ranked]:
    return rank(
        question,
        columns(candidates),
        baseline_similarity=background,
        now=NOW,
        recency_weight=weight,
        half_life_days=30,
        evidence=evidence,
    ).best(len(candidates))


def order(entries: Sequence[Ranked]) -> list[int]:
    return [entry.id for entry in entries]


def memories() -> st.SearchStrategy[list[Candidate]]:
    links = st.none() | st.integers(0, 5)
    row = st.builds(
        Candidate,
        st.integers(0, 4),
        st.sampled_from(["", "Anna: the harbour", "Ben: by the sea"]),
        lexical=st.floats(0, 50),
        coverage=SHARES,
        similarity=st.none() | COSINES,
        likeness=st.none() | COSINES,
        days_ago=st.integers(-100, 4000),
        previous=links,
        following=links,
    )
    return st.lists(row, max_size=5, unique_by=lambda each: each.id)


@given(memories(), st.text(max_size=40), st.none() | COSINES, SHARES, st.booleans())
def test_every_number_is_a_share_and_nothing_is_lost(
    candidates: list[Candidate],
    question: str,
    background: float | None,
    weight: float,
    evidence: bool,
) -> None:
    entries = ranked(candidates, question, background=background, weight=weight, evidence=evidence)
    assert sorted(order(entries)) == sorted(each.id for each in candidates)
    for entry in entries:
        for number in (entry.score, entry.relevance, entry.recency, *entry.parts.values()):
            assert 0 <= number <= 1 + 1e-9
        assert entry.score <= entry.recency + 1e-9
        assert math.isclose(entry.score, sum(entry.parts.values()) * entry.recency, abs_tol=1e-9)
    assert [entry.score for entry in entries] == sorted(
        (entry.score for entry in entries), reverse=True
    )


@given(memories(), st.randoms(use_true_random=False), SHARES)
def test_the_order_in_which_rows_come_does_not_matter(
    candidates: list[Candidate], random: Random, weight: float
) -> None:
    mixed = list(candidates)
    random.shuffle(mixed)
    before, after = ranked(candidates, weight=weight), ranked(mixed, weight=weight)
    for one, other in zip(before, after, strict=True):
        assert math.isclose(one.score, other.score, abs_tol=1e-9)


def test_of_equals_the_newest_comes_first_and_then_the_lower_id() -> None:
    rows = [
        Candidate(1, lexical=1.0, days_ago=3),
        Candidate(2, lexical=1.0, days_ago=1),
        Candidate(3, lexical=1.0, days_ago=1),
    ]
    for given_order in (rows, rows[::-1]):
        assert order(ranked(given_order)) == [2, 3, 1]


def relevance_of(
    close: float | None, coverage: float, *, speaker: int = 0, date: float = 0.0
) -> float:
    (share,) = relevance(
        np.array([close], np.float64), np.array([coverage]), speaker=speaker, date=date
    ).tolist()
    return float(share)


@given(close=COSINES, more=SHARES, coverage=SHARES, speaker=st.sampled_from([-1, 0, 1]))
def test_more_of_anything_never_makes_a_row_less_relevant(
    close: float, more: float, coverage: float, speaker: int
) -> None:
    before = relevance_of(close, coverage, speaker=speaker)
    assert relevance_of(close + more, coverage, speaker=speaker) >= before
    assert relevance_of(close, min(coverage + more, 1), speaker=speaker) >= before
    assert relevance_of(close, coverage, speaker=speaker, date=more) >= before
    assert relevance_of(close, coverage, speaker=min(speaker + 1, 1)) >= before
    assert relevance_of(None, min(coverage + more, 1)) >= relevance_of(None, coverage)


@pytest.mark.parametrize(
    ("close", "coverage", "passes"),
    [
        (0.0, 0.0, False),
        (0.1, 0.2, False),
        (0.35, 0.0, True),
        (0.2, 0.5, True),
        (None, 0.1, False),
        (None, 0.5, True),
    ],
)
def test_words_or_meaning_suffice_and_traces_of_both_do_not(
    close: float | None, coverage: float, passes: bool
) -> None:
    assert (relevance_of(close, coverage) >= 0.3) is passes


def test_relevance_means_the_same_whatever_else_was_found() -> None:
    row = Candidate(1, coverage=0.4, lexical=3.0, similarity=0.3)
    others = [Candidate(n, coverage=0.9, lexical=9.0, similarity=0.3) for n in range(2, 40)]
    with_others = {entry.id: entry for entry in ranked([row, *others], background=None)}
    assert with_others[1].relevance == ranked([row], background=None)[0].relevance
    assert with_others[1].score < 1


def test_two_models_that_call_other_things_near_agree_on_relevance() -> None:
    cosines = [0.62, 0.3, *[0.1] * 200]
    plain = [Candidate(n, similarity=cosine) for n, cosine in enumerate(cosines)]
    flat = [replace(each, similarity=0.7 + 0.3 * (each.similarity or 0)) for each in plain]
    by_plain = ranked(plain, background=0.1)
    by_flat = ranked(flat, background=0.73)
    assert order(by_plain) == order(by_flat)
    for one, other in zip(by_plain, by_flat, strict=True):
        assert one.relevance == pytest.approx(other.relevance, abs=0.06)


def test_a_memory_of_one_row_knows_whether_it_answers() -> None:
    assert ranked([Candidate(1, similarity=0.6)], background=0.6)[0].relevance > 0.3
    assert ranked([Candidate(1, similarity=0.1)], background=0.1)[0].relevance < 0.3


def test_many_rows_know_their_background_themselves() -> None:
    assert shrunk_baseline(0.5, rows=200) == pytest.approx(0.5, abs=0.005)
    assert shrunk_baseline(0.5, rows=1) < 0.2
    assert shrunk_baseline(0.5, rows=1, unrelated=0.4) == pytest.approx(0.49, abs=0.005)
    assert shrunk_baseline(None, rows=1) == 0


@given(moment=MOMENTS, weight=SHARES, half_life=st.floats(0.1, 1000))
def test_recency_is_a_share_and_the_future_counts_as_now(
    moment: datetime, weight: float, half_life: float
) -> None:
    days = (NOW - moment) / timedelta(days=1)
    fresh, older = recency_factor(np.array([days, days + 1]), weight=weight, half_life=half_life)
    assert 0 <= older <= fresh <= 1
    if moment >= NOW:
        assert fresh == 1


@pytest.mark.parametrize(("days", "share"), [(0, 1), (30, 1 / 2), (60, 1 / 3), (-400, 1)])
def test_full_recency_halves_at_the_half_life_and_is_a_third_at_twice_of_it(
    days: int, share: float
) -> None:
    age = np.array([float(days)])
    assert recency_factor(age, weight=1, half_life=30) == pytest.approx(share)
    assert recency_factor(age, weight=0, half_life=30) == 1


def test_recency_reorders_and_leaves_relevance_alone() -> None:
    rows = [
        Candidate(1, lexical=5.0, coverage=0.6, days_ago=300),
        Candidate(2, lexical=4.9, coverage=0.6),
    ]
    ageless, aged = ranked(rows), ranked(rows, weight=0.2)
    assert (order(ageless), order(aged)) == ([1, 2], [2, 1])
    assert {entry.id: entry.relevance for entry in ageless} == {
        entry.id: entry.relevance for entry in aged
    }


def test_an_answer_rises_with_the_question_before_it() -> None:
    asked = Candidate(1, lexical=8.0, coverage=0.9, following=2)
    answer = Candidate(2, coverage=0.0, previous=1, following=3)
    after = Candidate(3, previous=2)
    stranger = Candidate(4, lexical=0.5, coverage=0.1)
    assert order(ranked([asked, answer, after, stranger])) == [1, 2, 3, 4]


def test_a_neighbour_that_is_no_candidate_adds_nothing() -> None:
    entry = ranked([Candidate(1, lexical=1.0, previous=77, following=78)])[0]
    assert "neighbours" not in entry.parts


def chat() -> list[Candidate]:
    said = [
        "Anna: I sold the boat",
        "Ben: I sold the boat",
        "Anna: oh",
        "Ben: oh",
        "Anna: a",
        "Ben: b",
    ]
    return [
        Candidate(row, text, lexical=2.0 if row < 2 else 0.0, coverage=0.5 if row < 2 else 0.0)
        for row, text in enumerate(said)
    ]


@pytest.mark.parametrize(("name", "first"), [("Anna", 0), ("Ben", 1)])
def test_what_somebody_says_whom_the_question_names_comes_first(name: str, first: int) -> None:
    entries = ranked(chat(), f"What did {name} sell?")
    assert entries[0].id == first
    by_row = {entry.id: entry for entry in entries}
    assert by_row[first].relevance > 0.3 > by_row[1 - first].relevance


def test_nobody_is_favoured_where_nobody_is_named() -> None:
    entries = {entry.id: entry for entry in ranked(chat(), "What was sold?")}
    assert entries[0].relevance == entries[1].relevance


def test_a_key_before_a_colon_is_no_speaker() -> None:
    facts = [Candidate(1, "name: Anna", coverage=0.5), Candidate(2, "city: Bergen", coverage=0.5)]
    found = {entry.id: entry.relevance for entry in ranked(facts, "What is my name?")}
    assert found[1] == found[2]


def test_a_date_in_the_question_finds_what_was_said_then() -> None:
    rows = [Candidate(n, lexical=1.0, coverage=0.3, days_ago=n) for n in range(60)]
    day = NOW - timedelta(days=41)
    assert ranked(rows, f"What did I say on {day:%d %B}?")[0].id == 41


def test_what_is_not_embedded_yet_holds_its_place_by_its_words() -> None:
    embedded = [
        Candidate(n, lexical=0.2, similarity=0.1 + n / 100, likeness=0.3) for n in range(1, 20)
    ]
    fresh = Candidate(99, lexical=9.0, coverage=1.0)
    assert order(ranked([*embedded, fresh]))[0] == 99


@pytest.mark.parametrize(
    "evidence",
    [
        lambda n: {"lexical": float(n), "coverage": n / 10},
        lambda n: {"similarity": n / 10, "likeness": n / 10},
    ],
    ids=["words", "meaning"],
)
def test_words_or_meaning_alone_decide(evidence: Callable[[int], dict[str, float]]) -> None:
    entries = ranked([Candidate(n, **evidence(n)) for n in range(1, 8)])
    assert order(entries) == [7, 6, 5, 4, 3, 2, 1]
    assert entries[0].relevance > 0.3 > entries[-1].relevance


def test_what_nothing_speaks_for_is_last_and_irrelevant() -> None:
    entries = ranked([Candidate(1), Candidate(2)], background=None)
    assert all(entry.score == 0 and entry.relevance < 0.3 for entry in entries)
    assert ranked([]) == []


def test_without_evidence_only_words_and_meaning_count() -> None:
    rows = [
        Candidate(1, "harbour", lexical=1.0, likeness=0.2, similarity=0.2, following=2),
        Candidate(2, "harbour", lexical=2.0, likeness=0.9, similarity=0.4, previous=1),
        Candidate(3, "harbour", lexical=0.0),
    ]
    entries = ranked(rows, evidence=False)
    assert order(entries) == [2, 1, 3]
    assert {name for entry in entries for name in entry.parts} == {"lexical", "vector"}
