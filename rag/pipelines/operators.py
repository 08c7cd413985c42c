"""How values of a condition are read and compared. What cannot be compared does not hold. Pure."""

import json
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

#: Characters of an output that are looked at as JSON.
_MAX_JSON = 400_000


def plain(value: Any) -> Any:
    """Text without the white space around it, which models add as they like."""
    return value.strip() if isinstance(value, str) else value


def field(text: Any, path: list[str | int]) -> Any:
    """What stands at a path in an output that is JSON; None where nothing does."""
    value = _read(text)
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _read(text: Any) -> Any:
    """The output as JSON, which may stand in a fence of Markdown; None where it is none."""
    if not isinstance(text, str) or len(text) > _MAX_JSON:
        return None
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].removeprefix("json").strip()
    try:
        return json.loads(bare)
    except (ValueError, RecursionError):
        return None


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        left, right = _number(left), _number(right)
        return left is not None and right is not None and compare(left, right)

    return holds


def _number(value: Any) -> float | None:
    """A number, also one that stands as text, as in a model's reply."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _textual(compare: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    """Without regard to case; of a list, whether any of its texts is meant."""

    def holds(left: Any, right: Any) -> bool:
        if isinstance(left, list):
            return any(_equal(_folded(each), _folded(right)) for each in left)
        if not isinstance(left, str) or not isinstance(right, str):
            return False
        return compare(left.casefold(), right.casefold())

    return holds


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "contains": _textual(operator.contains),
    "startswith": _textual(str.startswith),
    "endswith": _textual(str.endswith),
}
