"""JSON from clients: parsed with bounds, and rejected where PostgreSQL could not store it."""

import json
import re
import sys
from typing import Any

from common.errors import InvalidInput
from common.translation import format_number, gettext

MAX_DEPTH = 32
MAX_VALUES = 50_000
MAX_PATH_CHARACTERS = 200
_SURROGATE = re.compile("[\ud800-\udfff]")

#: Where a value lies: the place of the list or mapping that holds it (None at the root), its key.
_Place = tuple["_Place | None", Any]


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
        raise InvalidInput(gettext("This is not JSON: {error}.").format(error=error)) from error


def check(value: Any, *, max_values: int = MAX_VALUES) -> None:
    """Raise InvalidInput unless `value` is bounded and every part of it can be stored.

    Bounded means nested at most 32 deep with at most `max_values` values. A `jsonb` column takes no
    NUL character, no half of a surrogate pair and no infinite number.
    """
    count = 0
    waiting: list[tuple[_Place | None, Any, int]] = [(None, value, 0)]
    while waiting:
        place, part, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise _too_deep(_path(place))
        for each in (part, *part) if isinstance(part, dict) else (part,):
            count += 1
            if count > max_values:
                raise InvalidInput(
                    gettext("The JSON has more than {values} values. Send less at once.").format(
                        values=format_number(max_values)
                    )
                )
            if problem := _problem(each):
                raise InvalidInput(problem, field=_path(place))
        if isinstance(part, dict):
            waiting += [((place, key), below, depth + 1) for key, below in part.items()]
        elif isinstance(part, list):
            waiting += [((place, at), below, depth + 1) for at, below in enumerate(part)]


def _problem(part: Any) -> str:
    """Why a single value or key cannot be stored; empty where it can."""
    if isinstance(part, str):
        if "\x00" in part:
            return "A string holds a NUL character (U+0000), which cannot be stored. Remove it."
        if not part.isascii() and _SURROGATE.search(part):
            return "A string holds half of a surrogate pair. Send whole Unicode characters."
    # a whole number as long as that is none to whatever counts in floats, and neither is 1e400
    elif isinstance(part, float | int) and not abs(part) <= sys.float_info.max:
        return "The number is too large to be stored."
    return ""


def _path(place: "_Place | None") -> str:
    """Names from the root to the place, joined by points: made for errors only."""
    names: list[str] = []
    while place is not None:
        place, name = place
        names.append(str(name))
    path = ""
    for name in reversed(names):
        path = f"{path}.{name}" if path else name
    return path


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _too_deep(path: str = "") -> InvalidInput:
    place = f"{path[:MAX_PATH_CHARACTERS]}: " if path else ""
    return InvalidInput(
        gettext("{place}The JSON is nested more than {depth} levels deep. Flatten it.").format(
            place=place, depth=MAX_DEPTH
        )
    )
