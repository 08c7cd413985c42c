"""JSON from clients: parsed with bounds, and rejected where PostgreSQL could not store it."""

import json
import sys
from collections.abc import Iterator
from typing import Any

from common.errors import InvalidInput

MAX_DEPTH = 32
MAX_VALUES = 50_000
MAX_PATH_CHARACTERS = 200


def parse(text: str) -> Any:
    """The parsed value; raises InvalidInput that names the path of the error."""
    value = load(text)
    check(value)
    return value


def load(text: str) -> Any:
    """Parse without `check`, for callers that check parts themselves."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise InvalidInput(f"This is not JSON: {error}.") from error


def check(value: Any, *, max_values: int = MAX_VALUES) -> None:
    """Raise InvalidInput unless `value` is bounded and every part of it can be stored.

    Bounded means nested at most 32 deep with at most `max_values` values. A `jsonb` column takes no
    NUL character, no half of a surrogate pair and no infinite number.
    """
    for count, (path, part) in enumerate(_walk(value)):
        if count >= max_values:
            raise InvalidInput(f"The JSON has more than {max_values:,} values. Send less at once.")
        problem = ""
        # a whole number as long as that is none to whatever counts in floats, and neither is 1e400
        if isinstance(part, float | int) and not abs(part) <= sys.float_info.max:
            problem = "The number is too large to be stored."
        elif isinstance(part, str) and "\x00" in part:
            problem = "A string holds a NUL character (U+0000), which cannot be stored. Remove it."
        elif (
            isinstance(part, str)
            and not part.isascii()
            and any("\ud800" <= letter <= "\udfff" for letter in part)
        ):
            problem = "A string holds half of a surrogate pair. Send whole Unicode characters."
        if problem:
            raise InvalidInput(problem, field=path)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _too_deep(path: str = "") -> InvalidInput:
    place = f"{path[:MAX_PATH_CHARACTERS]}: " if path else ""
    return InvalidInput(f"{place}The JSON is nested more than {MAX_DEPTH} deep. Flatten it.")


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Every key and value with its path, without recursion."""
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(path)
        yield path, value
        below: Iterator[tuple[Any, Any]] = iter(())
        if isinstance(value, dict):
            yield from ((path, key) for key in value)
            below = iter(value.items())
        elif isinstance(value, list):
            below = iter(enumerate(value))
        waiting += [(f"{path}.{key}" if path else str(key), part, depth + 1) for key, part in below]
