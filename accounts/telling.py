"""Changes in words."""

from collections.abc import Sequence
from typing import Any

from accounts.models import Change

VERBS = {"taken_back": "took back", "reembedded": "re-embedded", "reingested": "re-ingested"}
#: Kinds that the pages call otherwise than the code.
NAMES = {"key": "API key", "chunk": "passage"}
PLURALS = {"memory": "memories", "alias": "aliases"}


#: Who did what nobody did who is known.
DOORS = {"": "The site", "command": "A command"}


def actor_in_words(change: Change) -> str:
    """Who did it: a user's name, or “a command”."""
    if change.user is not None:
        return str(change.user)
    return DOORS.get(change.door, "Somebody")


def in_words(change: Change) -> str:
    """What was done to what: “changed document 12”, “deleted 14 documents”."""
    return f"{VERBS.get(change.action, change.action)} {thing_in_words(change)}"


def thing_in_words(change: Change) -> str:
    """“document 12”, “14 documents”, “a document”."""
    kind = NAMES.get(change.kind, change.kind)
    if change.thing is not None:
        return f"{kind} {change.thing}"
    if change.count == 1:
        return f"{'an' if kind[:1] in 'aeAE' else 'a'} {kind}"
    return f"{change.count:,} {PLURALS.get(kind, kind + 's')}"


def more_in_words(change: Change) -> str:
    """Fields and values of it: “name, graph: rules → llm”."""
    values: dict[str, Any] = change.details.get("values", {})
    bare = [name for name in change.details.get("fields", []) if name not in values]
    told = [f"{_named(name)}: {_value(value)}" for name, value in values.items()]
    return ", ".join([*map(_named, bare), *told])


def _named(field: str) -> str:
    return field.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        is_pair = len(value) == 2
        return (" → " if is_pair else ", ").join(map(_value, value)) or "none"
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
