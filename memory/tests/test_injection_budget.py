"""As much of memory as the budget holds, the most relevant first, and never more."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.injection import (
    ELLIPSIS,
    FACTS_BUDGET_SHARE,
    FactEntry,
    Injected,
    TurnEntry,
    estimated_tokens,
    fit_to_budget,
    render_block,
    shorten_text,
)
from memory.tests.blocks import parse_block
from memory.tests.hostile import PAIRS, TEXTS, TURNS

COUNTERS: dict[str, Callable[[str], int]] = {
    "characters": len,
    "bytes": lambda text: len(text.encode()),
    "words": lambda text: len(text.split()),
    "quarters": lambda text: -(-len(text) // 4),
    # as a tokenizer that merges: more text is not always more tokens
    "merging": lambda text: len(text.replace("in ", "").replace("\\", "")) // 3 + text.count("]"),
}
COUNTER = pytest.mark.parametrize("count", COUNTERS.values(), ids=COUNTERS)
LONG = TEXTS.map(lambda text: text * 30)
FACTS_RANKED = st.lists(PAIRS | st.tuples(TEXTS, LONG), max_size=6)
RANKED = st.lists(TURNS | st.builds(TurnEntry, st.dates(), TEXTS, LONG), max_size=6)
DAY = date(2023, 5, 8)


def fitted(
    facts: Sequence[FactEntry] = (),
    context: Sequence[TurnEntry] = (),
    *,
    max_tokens: int,
    count: Callable[[str], int] = len,
) -> Injected:
    return fit_to_budget(
        facts=facts,
        context=context,
        max_tokens=max_tokens,
        count=count,
        max_facts=20,
        max_context=3,
    )


def cost(*, facts: Sequence[FactEntry] = (), context: Sequence[TurnEntry] = ()) -> int:
    return len(render_block(Injected(tuple(facts), tuple(context))))


@COUNTER
@given(FACTS_RANKED, RANKED, st.integers(-1, 500), st.integers(-1, 4), st.integers(-1, 4))
def test_the_budget_is_never_exceeded(
    count: Callable[[str], int],
    facts: list[FactEntry],
    context: list[TurnEntry],
    max_tokens: int,
    max_facts: int,
    max_context: int,
) -> None:
    injected = fit_to_budget(
        facts=facts,
        context=context,
        max_tokens=max_tokens,
        count=count,
        max_facts=max_facts,
        max_context=max_context,
    )
    assert not injected or count(render_block(injected)) <= max_tokens
    assert len(injected.facts) <= max(max_facts, 0)
    assert len(injected.context) <= max(max_context, 0)
    assert parse_block(render_block(injected)) == (injected if injected else None)


@given(FACTS_RANKED, RANKED)
def test_with_room_for_all_everything_comes_in_its_order(
    facts: list[FactEntry], context: list[TurnEntry]
) -> None:
    injected = fitted(facts, context, max_tokens=100_000)
    assert injected == Injected(tuple(facts), tuple(context[:3]))


@given(FACTS_RANKED, RANKED, st.integers(0, 400))
def test_entries_keep_their_order_and_only_the_first_is_shortened(
    facts: list[FactEntry], context: list[TurnEntry], max_tokens: int
) -> None:
    injected = fitted(facts, context, max_tokens=max_tokens)
    for ranked, chosen in (
        (facts, injected.facts),
        ([sides(turn) for turn in context[:3]], [sides(turn) for turn in injected.context]),
    ):
        rest = iter(ranked)
        whole = chosen[1:] if chosen and chosen[0] not in ranked else chosen
        assert all(entry in rest for entry in whole)
        if len(whole) < len(chosen):
            (name, *cut), (first, *whole_sides) = chosen[0], ranked[0]
            assert name == first, "a key and a day are never shortened"
            pairs = zip(cut, whole_sides, strict=True)
            assert all(side in ("", own) or side.endswith(ELLIPSIS) for side, own in pairs)


def sides(turn: TurnEntry) -> tuple[str, str, str]:
    return turn.said_on.isoformat(), turn.question, turn.answer


FACTS = [(f"key_{n}", "a value of some length") for n in range(10)]
CONTEXT = [TurnEntry(DAY, f"Question {n}?", "An answer of some length.") for n in range(3)]


def test_context_keeps_its_half_beside_many_facts() -> None:
    injected = fitted(FACTS, CONTEXT, max_tokens=450)
    assert cost(facts=FACTS) > 450 * FACTS_BUDGET_SHARE
    assert injected.context == tuple(CONTEXT)
    assert 0 < len(injected.facts) < len(FACTS)


def test_facts_take_what_the_context_leaves() -> None:
    budget = cost(facts=FACTS, context=CONTEXT[:1])
    assert fitted(FACTS, CONTEXT[:1], max_tokens=budget).facts == tuple(FACTS)
    assert fitted(FACTS, max_tokens=cost(facts=FACTS)).facts == tuple(FACTS)


def test_context_takes_what_the_facts_leave() -> None:
    budget = cost(facts=FACTS[:1], context=CONTEXT)
    assert fitted(FACTS[:1], CONTEXT, max_tokens=budget).context == tuple(CONTEXT)


def test_the_best_turn_is_shortened_at_the_end_of_a_word() -> None:
    turn = TurnEntry(DAY, "Where was I?", "You were in Lisbon " + "and then in Porto " * 100)
    injected = fitted(context=[turn, *CONTEXT], max_tokens=400)
    answer = injected.context[0].answer
    assert injected.context[0] == replace(turn, answer=answer)
    assert answer.endswith(ELLIPSIS)
    assert turn.answer.startswith(answer.removesuffix(ELLIPSIS))
    assert turn.answer[len(answer) - 1].isspace()
    assert cost(context=injected.context[:1]) > 400 * 0.85


def test_another_turn_that_is_too_long_is_passed_over() -> None:
    long = TurnEntry(DAY, "Tell me all", "word " * 1000)
    assert fitted(context=[CONTEXT[0], long, CONTEXT[1]], max_tokens=400).context == (
        CONTEXT[0],
        CONTEXT[1],
    )


def test_a_long_question_leaves_room_for_its_answer() -> None:
    (turn,) = fitted(
        context=[TurnEntry(DAY, "pasted text " * 200, "short answer " * 200)], max_tokens=600
    ).context
    assert len(turn.question) > 200
    assert len(turn.answer) > 200


def test_a_day_without_a_word_is_not_worth_its_tokens() -> None:
    turn = TurnEntry(DAY, "word", "")
    least = cost(context=[turn])
    assert fitted(context=[turn], max_tokens=least).context == (turn,)
    assert fitted(context=[turn], max_tokens=least - 3).context == ()


def test_a_fact_is_shortened_in_its_value_alone() -> None:
    ((key, value),) = fitted([("biography", "born in Lisbon " * 50)], max_tokens=300).facts
    assert key == "biography"
    assert value.endswith("…")
    assert value.startswith("born in Lisbon")
    assert fitted([("long_key" * 60, "value")], max_tokens=300) == Injected()


def test_a_shortened_fact_is_whole_again_where_the_context_leaves_room() -> None:
    fact = ("biography", "born in Lisbon " * 20)
    budget = cost(facts=[fact], context=CONTEXT[:1])
    assert fitted([fact], CONTEXT[:1], max_tokens=budget).facts == (fact,)


def test_what_the_caller_writes_is_what_is_counted() -> None:
    budget = cost(facts=FACTS[:2])
    injected = fit_to_budget(
        facts=FACTS,
        context=(),
        max_tokens=budget,
        count=len,
        max_facts=20,
        max_context=3,
        written=lambda trial: render_block(trial) + "more",
    )
    assert injected.facts == tuple(FACTS[:1])


def test_a_huge_entry_is_measured_in_parts() -> None:
    """Counting tokens of what can never fit would cost more than the search."""
    measured: list[int] = []

    def count(text: str) -> int:
        measured.append(len(text))
        return len(text) // 4

    injected = fitted(context=[TurnEntry(DAY, "q", "word " * 20_000)], max_tokens=100, count=count)
    assert injected.context[0].answer.endswith(ELLIPSIS)
    assert max(measured) < 100 * 16 + 200


@given(TEXTS, st.integers(-2, 60))
def test_a_shortened_text_is_a_beginning_in_its_room(text: str, room: int) -> None:
    short = shorten_text(text, room)
    assert len(short) <= max(room, 0)
    assert short in (text, "") or text.startswith(short.removesuffix(ELLIPSIS))


def test_no_character_is_torn() -> None:
    family = "👨‍👩‍👧"
    assert shorten_text(family * 3, 12) == family * 2 + ELLIPSIS
    assert shorten_text("हिन्दी" * 10, 12) == "हिन्दीहि" + ELLIPSIS


@given(TEXTS, st.integers(0, 10**12))
def test_the_estimate_takes_every_digit_for_a_token(text: str, number: int) -> None:
    """Many chat models do, and every turn has a day: a third of the bytes would be too few."""
    plain, with_number = estimated_tokens(text), estimated_tokens(f"{text}{number}")
    assert with_number == plain + len(str(number))
    assert 3 * plain >= len(text.encode(errors="replace"))
    assert estimated_tokens("2023-05-08: ") >= 9
