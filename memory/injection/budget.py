"""Which of what is remembered fits into a budget of tokens. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence

from memory.injection.entries import Injected, Pair, Turn, characters
from memory.injection.rendering import render
from memory.injection.shortening import Cut, Entry, longest_that_fits, short_fact, short_turn

#: Of the budget, for facts: they are short and sure. What they leave goes to the context, and what
#: both leave to facts that had no place.
FACTS_SHARE = 0.5
#: Longer entries are not even measured: hardly a tokenizer makes so few tokens of a text.
MOST_CHARACTERS_A_TOKEN = 16

#: Of UTF-8, where there are no digits, which are tokens of their own to many models: a day is up to
#: 12. Measured in docs/decisions/0026.
BYTES_A_TOKEN = 3
_DIGIT = re.compile("[0-9]")

#: Entries by rank, the most relevant 0.
Chosen = Mapping[int, Entry]


def fit(
    *,
    facts: Sequence[Pair],
    context: Sequence[Turn],
    max_tokens: int,
    count: Callable[[str], int],
    max_facts: int,
    max_context: int,
    written: Callable[[Injected], str] = render,
) -> Injected:
    """As much as fits of `facts` and `context`, each most relevant first.

    The whole block counts, fence and blank line included: `count(written(result)) <= max_tokens`,
    however `count` counts. An entry that does not fit is passed over; the most relevant of its kind
    is shortened instead. What has more than 16 characters a token of the budget counts as too long.
    """
    facts, context = facts[: max(max_facts, 0)], context[: max(max_context, 0)]
    most = max(max_tokens, 0) * MOST_CHARACTERS_A_TOKEN

    def fits(told: Chosen[Pair], recalled: Chosen[Turn], *, share: float = 1.0) -> bool:
        return count(written(_injected(told, recalled))) <= max_tokens * share

    share = FACTS_SHARE if context else 1.0
    told = _fill({}, facts, lambda trial: fits(trial, {}, share=share), most, cut=short_fact)
    recalled = _fill({}, context, lambda trial: fits(told, trial), most, cut=short_turn)
    told = _fill(told, facts, lambda trial: fits(trial, recalled), most)
    return _injected(told, recalled)


def estimated_tokens(text: str) -> int:
    """About how many tokens `text` is to a chat model that cannot be asked; rather too many."""
    others, digits = _DIGIT.subn("", text)
    return digits - (-len(others.encode(errors="replace")) // BYTES_A_TOKEN)


def _fill(
    chosen: Chosen[Entry],
    ranked: Sequence[Entry],
    fits: Callable[[Chosen[Entry]], bool],
    most: int,
    *,
    cut: Cut[Entry] | None = None,
) -> Chosen[Entry]:
    """`chosen` with those of `ranked` that fit beside it, whole; with `cut` the first one shortened
    where it does not."""
    for rank, entry in enumerate(ranked):
        if characters(entry) <= most and fits({**chosen, rank: entry}):
            chosen = {**chosen, rank: entry}
        elif cut and rank == 0:
            short = longest_that_fits(entry, cut, lambda trial: fits({0: trial}), most=most)
            chosen = {0: short} if short else {}
    return chosen


def _injected(facts: Chosen[Pair], context: Chosen[Turn]) -> Injected:
    return Injected(
        tuple(facts[rank] for rank in sorted(facts)),
        tuple(context[rank] for rank in sorted(context)),
    )
