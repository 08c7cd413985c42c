"""Which passages paths lead to, how strong the paths are, and what they are told as."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.ranking import (
    DAMPING,
    MAX_DOCUMENTS,
    MAX_SEEDS,
    OWN_NAME,
    REST_FACTOR,
    SEED_POWER,
    Neighbourhood,
    PathStop,
    graph_weight,
    rank,
    rest_similarity,
)

#: In collections of this size a thing that two documents mention is rare.
TOTAL = 10_000
Row = tuple[int, int, bool]


def around(
    *rows: Row, documents: dict[int, int] | None = None, often: dict[int, int] | None = None
) -> Neighbourhood:
    """Rows of (chunk, node, whether it is the name of the chunk's document); every chunk is a
    document of its own unless `documents` says otherwise, and every node is in as many documents as
    are here unless `often` does."""
    signed = [(chunk, node, OWN_NAME * own) for chunk, node, own in rows]
    of = {chunk: (documents or {}).get(chunk, chunk) for chunk, _, _ in rows}
    mentions = np.array(signed, dtype=np.int64).reshape(-1, 3).T
    readable = np.array([*of.items()], dtype=np.int64).reshape(-1, 2).T
    near = Neighbourhood.of(*mentions, *readable)
    for node, frequency in (often or {}).items():
        near.frequencies[near.node_ids == node] = frequency
    return near


def scores(
    neighbourhood: Neighbourhood, *, seeds: dict[int, float], question: Sequence[int] = ()
) -> dict[int, float]:
    asked = dict.fromkeys(question, 1.0)
    return dict(rank(neighbourhood, seeds=seeds, question=asked, total=TOTAL).scores)


A, B, C, D = 1, 2, 3, 4
X, Y, Z = 101, 102, 103


def test_a_hit_leads_to_the_document_whose_name_it_mentions() -> None:
    found = scores(around((A, X, False), (B, X, True)), seeds={A: 0.9})
    assert found == {A: 1.0, B: 1.0}


def test_what_is_mentioned_in_both_leads_from_one_to_the_other() -> None:
    found = scores(around((A, X, False), (B, X, False)), seeds={A: 0.9})
    assert 0.8 < found[B] < 1


def test_the_rarer_the_stronger() -> None:
    near = around((A, X, False), (B, X, False), (A, Y, False), (C, Y, False), often={X: 3, Y: 60})
    found = scores(near, seeds={A: 0.9})
    assert found[B] > found[C] > 0


def test_a_hub_leads_nowhere_but_to_its_own_document() -> None:
    often = {X: MAX_DOCUMENTS + 1}
    near = around((A, X, False), (B, X, False), (C, X, True), often=often)
    assert scores(near, seeds={A: 0.9}) == {A: 1.0, C: 1.0}


def test_namesakes_share() -> None:
    near = around((A, X, False), *((chunk, X, True) for chunk in range(10, 26)), often={X: 9000})
    assert scores(near, seeds={A: 0.9})[10] == pytest.approx(1 / 4)


def test_the_second_best_hit_leads_less_far() -> None:
    near = around((A, X, False), (B, X, True), (C, Y, False), (D, Y, True))
    found = scores(near, seeds={A: 0.9, C: 0.45})
    assert found[C] == found[D] == pytest.approx(0.5**SEED_POWER)
    assert found[B] == 1


def test_only_the_best_hits_start_paths() -> None:
    rows = [(chunk, 100 + chunk, False) for chunk in range(MAX_SEEDS + 1)]
    ends = [(50 + chunk, 100 + chunk, True) for chunk in range(MAX_SEEDS + 1)]
    found = scores(around(*rows, *ends), seeds={chunk: 1 - chunk / 100 for chunk, _, _ in rows})
    assert 50 + MAX_SEEDS - 1 in found
    assert 50 + MAX_SEEDS not in found


def test_chunks_of_one_document_do_not_lead_to_each_other() -> None:
    chunks = range(10, 310)
    rows = [(chunk, X, True) for chunk in chunks]
    found = scores(around(*rows, documents=dict.fromkeys(chunks, 7)), seeds={10: 0.9})
    assert found == {10: 1.0}


def test_a_long_document_is_reached_from_the_best_of_other_documents() -> None:
    near = around((A, X, False), (B, X, False), (C, X, True), documents={A: 1, B: 2, C: 2})
    found = scores(near, seeds={B: 1.0, A: 0.5})
    assert found[C] == pytest.approx(0.5**SEED_POWER)


def test_the_question_leads_to_what_it_names() -> None:
    near = around((A, X, True), (B, Y, True))
    found = scores(near, seeds={}, question=[X])
    assert found == {A: 1.0}


def test_hits_that_the_question_names_start_like_the_best() -> None:
    near = around((A, X, True), (A, Z, False), (B, Z, True), (C, Y, True))
    seeds = {C: 0.9, A: 0.45}
    assert scores(near, seeds=seeds)[B] == pytest.approx(0.5**SEED_POWER)
    assert scores(near, seeds=seeds, question=[X])[B] == 1


def test_what_the_question_names_already_does_not_connect() -> None:
    near = around((A, X, False), (B, X, False), (A, Y, False), (C, Y, False))
    ranked = rank(near, seeds={A: 0.9}, question={X: 0.5}, total=TOTAL)
    assert ranked.scores[B] < 0.5 < ranked.scores[C]
    assert ranked.path(B) == (PathStop("node", X), PathStop("chunk", B))


def test_paths_go_on_and_get_weaker() -> None:
    near = around((A, X, False), (B, X, True), (B, Y, False), (C, Y, True))
    ranked = rank(near, seeds={A: 0.9}, question={}, total=TOTAL)
    assert ranked.scores[C] == pytest.approx(DAMPING)
    assert ranked.path(C) == (
        PathStop("chunk", A),
        PathStop("node", X),
        PathStop("chunk", B),
        PathStop("node", Y),
        PathStop("chunk", C),
    )


def test_paths_do_not_turn_back() -> None:
    near = around((A, X, True), (B, X, True), (C, X, False), documents={A: 1, B: 1, C: 2})
    assert B not in scores(near, seeds={A: 0.9})


def test_a_path_begins_with_what_the_question_names_in_the_hit() -> None:
    near = around((A, X, True), (A, Y, False), (B, Y, True))
    ranked = rank(near, seeds={A: 0.9}, question={X: 1.0}, total=TOTAL)
    assert ranked.path(B) == (
        PathStop("node", X),
        PathStop("chunk", A),
        PathStop("node", Y),
        PathStop("chunk", B),
    )
    assert ranked.path(A) == (PathStop("node", X), PathStop("chunk", A))


def test_a_path_from_the_question_has_no_hit_in_it() -> None:
    near = around((A, X, False), (B, Y, True))
    ranked = rank(near, seeds={A: 0.9}, question={Y: 1.0}, total=TOTAL)
    assert ranked.path(B) == (PathStop("node", Y), PathStop("chunk", B))
    assert ranked.path(A) == (PathStop("chunk", A),)
    assert ranked.path(99) == ()


@pytest.mark.parametrize("seeds", [{}, {A: 0.0}, {A: -1.0}, {99: 0.5}])
def test_without_hits_around_here_nothing_is_reached(seeds: dict[int, float]) -> None:
    found = scores(around((A, X, False), (B, X, False)), seeds=seeds)
    assert found.keys() <= {99}


def test_without_mentions_only_the_hits_are_there() -> None:
    assert scores(around(), seeds={A: 0.9, B: 0.45}) == {A: 1.0, B: 0.5**SEED_POWER}


_rows = st.lists(
    st.tuples(st.integers(1, 8), st.integers(101, 106), st.booleans()),
    max_size=40,
    unique_by=lambda row: row[:2],
)


@given(
    _rows,
    st.dictionaries(st.integers(1, 9), st.floats(0, 1.5), max_size=5),
    st.sets(st.integers(101, 107), max_size=3),
    st.dictionaries(st.integers(1, 8), st.integers(1, 3)),
)
def test_scores_are_shares_and_paths_lead_along_mentions(
    rows: list[Row], seeds: dict[int, float], question: set[int], documents: dict[int, int]
) -> None:
    near = around(*rows, documents=documents)
    ranked = rank(near, seeds=seeds, question=dict.fromkeys(question, 1.0), total=TOTAL)
    mentioned = {(chunk, node) for chunk, node, _ in rows}
    assert all(0 < score <= 1 for score in ranked.scores.values())
    for chunk in ranked.scores:
        stops = ranked.path(chunk)
        assert stops[-1] == PathStop("chunk", chunk)
        first = stops[0]
        assert first.id in seeds if first.kind == "chunk" else first.id in question
        for one, other in pairwise(stops):
            pair = (one.id, other.id) if one.kind == "chunk" else (other.id, one.id)
            assert one.kind != other.kind
            assert pair in mentioned


@given(_rows, st.randoms(use_true_random=False))
def test_the_order_of_mentions_makes_no_difference(rows: list[Row], chance: Random) -> None:
    seeds = {1: 1.0, 2: 0.8, 3: 0.6}
    shuffled = list(rows)
    chance.shuffle(shuffled)
    assert scores(around(*rows), seeds=seeds) == scores(around(*shuffled), seeds=seeds)


def test_the_arm_counts_for_the_lead_of_the_best_hit() -> None:
    clear = [(1, 1.5), (2, 0.9), (3, 0.8), (4, 0.7), (5, 0.6), (6, 0.1)]
    unclear = [(1, 1.0), (2, 0.98), (3, 0.97), (4, 0.96), (5, 0.95), (6, 0.1)]
    assert graph_weight(clear) == pytest.approx(0.9)
    assert graph_weight(unclear) == pytest.approx(0.05)
    assert graph_weight([]) == graph_weight([(1, 0.7)]) == 0


def test_further_chunks_of_a_document_are_no_rivals_of_the_best() -> None:
    siblings = [(1, 1.5), (1, 1.49), (1, 1.48), (1, 1.47), (1, 1.46), (2, 0.5)]
    assert graph_weight(siblings) == pytest.approx(1.0)


def followed(
    near: Neighbourhood,
    vectors: dict[int, Sequence[float]],
    *,
    seeds: dict[int, float],
    question: Sequence[float] = (1.0, 1.0, 0.0),
) -> dict[int, float]:
    found = rank(near, seeds=seeds, question={}, total=TOTAL)
    passages = {chunk: np.array(vector, float) for chunk, vector in vectors.items()}
    return dict(found.follow_question(np.array(question, float), passages).scores)


TWO_WAYS = around((A, X, False), (B, X, True), (A, Y, False), (C, Y, True))


def test_of_two_paths_the_one_counts_more_that_answers_what_is_left_of_the_question() -> None:
    # A tells the first half of the question. B tells the other half, C the first one again.
    vectors = {A: (2, 0, 0), B: (0.1, 1, 0), C: (1, 0.1, 0)}
    found = followed(TWO_WAYS, vectors, seeds={A: 0.9})
    assert found[B] > 2 * found[C] > found[C] > 1


def test_no_passage_is_lifted_over_the_one_that_leads_to_it() -> None:
    vectors = {A: (1, 0, 0), B: (0, 1, 0), C: (0, 0, 1), D: (0, 1, 0)}
    near = around((A, X, False), (B, X, True), (B, Y, False), (D, Y, True), (C, Z, False))
    found = followed(near, vectors, seeds={A: 0.9, C: 0.89})
    assert found[A] == found[B] == 1 + REST_FACTOR
    assert found[A] > found[D]
    assert found[C] == pytest.approx((0.89 / 0.9) ** SEED_POWER), "leads nowhere"


def test_passages_without_vectors_keep_the_strength_of_their_path() -> None:
    without = {A: (1.0, 0, 0), C: (0, 1.0, 0)}
    assert followed(TWO_WAYS, without, seeds={A: 0.9})[B] == 1
    assert followed(TWO_WAYS, {}, seeds={A: 0.9}) == {A: 1, B: 1, C: 1}


def test_nothing_follows_a_question_that_was_told_in_full() -> None:
    vectors = {A: (3, 3, 0), B: (0, 1, 0), C: (1, 1, 1e-9)}
    assert followed(TWO_WAYS, vectors, seeds={A: 0.9}) == {A: 1, B: 1, C: 1}


WHOLE = st.lists(st.integers(-9, 9), min_size=3, max_size=3)


@given(WHOLE, WHOLE, WHOLE, WHOLE, st.floats(0.1, 10))
def test_closeness_to_the_rest_is_a_cosine_that_knows_no_lengths(
    asked: list[int], first: list[int], second: list[int], last: list[int], length: float
) -> None:
    question, *told, passage = (np.array(each, float) for each in (asked, first, second, last))
    found = rest_similarity(question, told, passage)
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    scaled = rest_similarity(length * question, [length * each for each in told], 2 * passage)
    assert scaled == pytest.approx(found, abs=1e-6)


def test_the_passages_before_are_those_of_the_path() -> None:
    near = around((A, X, False), (B, X, True), (B, Y, False), (D, Y, True))
    found = rank(near, seeds={A: 0.9}, question={}, total=TOTAL)
    for chunk in (A, B, D, 99):
        before = [stop.id for stop in found.path(chunk)[:-1] if stop.kind == "chunk"]
        assert found.passages_before(chunk) == tuple(before)
    assert found.passages_before(D) == (A, B)


def test_strengths_are_shown_from_0_to_1() -> None:
    found = rank(TWO_WAYS, seeds={A: 0.9}, question={}, total=TOTAL)
    passages = {A: np.array([1.0, 0]), B: np.array([0, 1.0]), C: np.array([1.0, 0])}
    shown = found.follow_question(np.array([1.0, 1.0]), passages).normalized(A)
    assert shown.scores == {A: 1, B: 1, C: pytest.approx(1 / (1 + REST_FACTOR))}
    assert shown.unit == 1 + REST_FACTOR
    assert shown.path(B) == found.path(B)
    assert found.normalized(A) == found


def test_paths_of_lesser_hits_are_not_lifted_over_the_best_one() -> None:
    near = around((A, X, False), (B, X, True), (C, Y, False))
    found = rank(near, seeds={A: 0.8, C: 0.9}, question={}, total=TOTAL)
    passages = {A: np.array([1.0, 0]), B: np.array([0, 1.0])}
    shown = found.follow_question(np.array([1.0, 1.0]), passages).normalized(C)
    assert shown.scores == {A: 1, B: 1, C: 1}
