"""JSON in the replies of chat models: tolerant of form, strict about content. Without Django."""

import json
import re
from collections.abc import Mapping
from typing import Any

#: Braces and brackets that are tried as the beginning of a value.
MAX_JSON_STARTS = 200

# One of 5,000 digits would raise.
_decoder = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < 20 else None)


class UnreadableReply(Exception):
    """A reply without the expected JSON: asking again may help. `problem` says what it lacks."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The model's answer {problem}. It will be asked again; if this goes on, take a model"
            " that follows instructions better."
        )
        self.problem = problem


def json_values(text: str, *, starts: str = "{[") -> list[Any]:
    """The outermost JSON values in `text` that begin with one of `starts`, in order."""
    found: list[Any] = []
    beginning = re.compile(f"[{re.escape(starts)}]")
    match = beginning.search(text)
    for _ in range(MAX_JSON_STARTS):
        if match is None:
            break
        try:
            value, end = _decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            end = match.end()
        else:
            found.append(value)
        match = beginning.search(text, end)
    return found


def last_object(text: str, parts: Mapping[str, type]) -> dict[str, Any] | None:
    """The last JSON object with one of `parts`, each of its type or null: earlier ones may be
    drafts.
    """
    value: dict[str, Any]
    for value in reversed(json_values(text, starts="{")):
        if value.keys() & parts.keys() and all(
            isinstance(value.get(name), kind | None) for name, kind in parts.items()
        ):
            return value
    return None
