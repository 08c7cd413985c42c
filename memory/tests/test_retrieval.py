"""What is listed of a user's rows, and by which scores: against sums done by hand."""

from datetime import timedelta
from math import log

import numpy as np
import pytest

from common.bm25 import K1, B
from memory.models import Context
from memory.retrieval import CONTEXTS, MIN_STATISTICS_ROWS, ScoredRows, find
from memory.tests.factories import NOW, make_scope, remember

MINUTE = 60_000_000


def rows(
    moments: list[int], threads: list[int], lexical: list[float], similarities: list[float]
) -> ScoredRows:
    ids = np.arange(1, len(moments) + 1)
    return ScoredRows(
        ids=ids,
        moments=np.array(moments) * MINUTE,
        threads=np.array(threads),
        spaces=np.ones_like(ids),
        similarities=np.array(similarities),
        lexical=np.array(lexical),
        coverage=np.zeros(len(ids)),
    )


def test_neighbours_are_of_one_conversation_and_without_a_long_pause_between() -> None:
    mine = rows(
        moments=[0, 10, 71, 72, 5],
        threads=[1, 1, 1, 1, 2],
        lexical=[0] * 5,
        similarities=[np.nan] * 5,
    )
    listed = mine.listed(9)
    assert listed.previous.tolist() == [0, 1, 0, 3, 0]
    assert listed.following.tolist() == [2, 0, 4, 0, 0]
    assert (listed.ids, listed.best, listed.first) == ([], [], [])


def test_the_best_of_each_arm_are_listed_with_what_stands_around_them() -> None:
    mine = rows(
        moments=list(range(9)),
        threads=[1] * 9,
        lexical=[0, 0, 0, 0, 0, 0, 2, 2, 1],
        similarities=[0.1, np.nan, *([0.0] * 7)],
    )
    listed = mine.listed(1)
    assert listed.best == [1, 7]
    assert listed.first == [7, 1]
    assert listed.ids == [1, 2, 3, 5, 6, 7, 8, 9]
    assert mine.backgrounds() == {1: (pytest.approx(0.0125), 8)}


@pytest.mark.django_db
def test_words_are_scored_by_bm25_with_the_users_own_statistics() -> None:
    scope = make_scope()
    ids = [
        remember(scope, "ferry ferry Bergen", "the ferry", conversation="a"),
        remember(scope, "bakery corner", conversation="a", at=NOW - timedelta(days=3)),
        remember(scope, "Bergen", conversation="b"),
    ]
    remember(make_scope("bob"), "ferry ferry ferry")
    Context.objects.of(scope).update(language="simple")

    found = find(CONTEXTS, "ferry bergen", scope=scope, now=NOW, mode="lexical")

    rows = found.candidates
    lexical = dict(zip(rows.ids.tolist(), rows.lexical.tolist(), strict=True))
    coverage = dict(zip(rows.ids.tolist(), rows.coverage.tolist(), strict=True))
    weights = {held: log(1 + (MIN_STATISTICS_ROWS - held + 0.5) / (held + 0.5)) for held in (1, 2)}
    # By lexemes each row has 3 (the, ferry, bergen), 2 and 1; what the user said counts twice.
    norms = {length: K1 * (1 - B + B * length / 2) for length in (3, 1)}
    first = weights[1] * 5 * (K1 + 1) / (5 + norms[3]) + weights[2] * 2 * (K1 + 1) / (2 + norms[3])
    assert found.rows == 3
    assert lexical.keys() == {ids[0], ids[2]}
    assert lexical[ids[0]] == pytest.approx(first)
    assert coverage[ids[0]] == pytest.approx(1)
    assert lexical[ids[2]] == pytest.approx(weights[2] * 2 * (K1 + 1) / (2 + norms[1]))
    assert coverage[ids[2]] == pytest.approx(weights[2] / sum(weights.values()))


@pytest.mark.django_db
def test_a_letter_that_stands_alone_begins_words() -> None:
    scope = make_scope()
    both = remember(scope, "水道と水質について水曜日に話しました")
    one = remember(scope, "水道について話しました")
    remember(scope, "昨日は東京で友達に会いました")

    found = find(CONTEXTS, "水", scope=scope, now=NOW, mode="lexical")

    rows = found.candidates
    scores = dict(zip(rows.ids.tolist(), rows.lexical.tolist(), strict=True))
    assert {pk for pk, score in scores.items() if score} == {both, one}
    assert scores[both] > scores[one]
