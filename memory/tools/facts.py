"""Tools over facts: answers in text."""

from collections.abc import Iterable
from itertools import islice

from common.wording import found, quoted, shortened
from memory import services
from memory.keys import fact_key
from memory.models import Fact
from memory.scopes import UserScope
from memory.tools.wording import NOTHING_KEPT, given_moment, told

#: Among others a fact is told in short, and of so many; one that is asked for is told whole.
SHOWN_CHARACTERS = 200
SHOWN_FACTS = 200


def set_fact(*, scope: UserScope | None, key: str, value: str) -> str:
    """Note what is true from now on."""
    change = services.set_fact(scope=scope, key=key, value=value)
    if change is None:
        return NOTHING_KEPT
    if not change.changed:
        return f"Fact known already: {_fact(change.fact)}"
    before = f" (before: {_value(change.superseded)})" if change.superseded else ""
    return f"Fact set: {_fact(change.fact)}{before}"


def get_fact(*, scope: UserScope | None, key: str, as_of: str | None = None) -> str:
    """What is true, or was then."""
    fact = services.get_fact(scope=scope, key=key, as_of=given_moment(as_of))
    return _not_found(key) if fact is None else f"{fact.key} = {quoted(fact.value)}"


def has_fact(*, scope: UserScope | None, key: str) -> str:
    """Whether anything is true."""
    known = services.has_fact(scope=scope, key=key)
    return f"Fact found: {fact_key(key)}" if known else _not_found(key)


def get_all_facts(*, scope: UserScope | None, as_of: str | None = None) -> str:
    """Everything that is true, or was then, by key."""
    facts = services.get_all_facts(scope=scope, as_of=given_moment(as_of))
    return "\n".join([found(len(facts), "fact(s)"), *_first(map(_fact, facts))])


def clear_fact(*, scope: UserScope | None, key: str) -> str:
    """Note that something is true no longer."""
    cleared = services.clear_fact(scope=scope, key=key)
    return f"Fact cleared: {fact_key(key)}" if cleared else _not_found(key)


def history(*, scope: UserScope | None, key: str) -> str:
    """All that was true, the latest first."""
    facts = services.history(scope=scope, key=key)
    if not facts:
        return _not_found(key)
    lines = (
        f"{told(fact.valid_from)} to {told(fact.valid_to) if fact.valid_to else 'now'}:"
        f" {_value(fact)}"
        for fact in facts
    )
    return "\n".join([found(len(facts), f"value(s) of {fact_key(key)}"), *_first(lines)])


def _fact(fact: Fact) -> str:
    return f"{fact.key} = {_value(fact)}"


def _value(fact: Fact) -> str:
    return quoted(shortened(fact.value, SHOWN_CHARACTERS))


def _first(lines: Iterable[str]) -> list[str]:
    shown = list(islice(lines, SHOWN_FACTS + 1))
    return shown if len(shown) <= SHOWN_FACTS else [*shown[:SHOWN_FACTS], "… and more."]


def _not_found(key: str) -> str:
    """Not an error: that is an answer as well."""
    return f"Fact not found: {fact_key(key)}"
