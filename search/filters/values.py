"""Which value fits which field and operator."""

import math
import sys
from typing import Any

from search.filters.fields import Field, Kind, check_text
from search.filters.limits import MAX_PATTERN_CHARACTERS, FilterError, shown
from search.filters.times import time_span
from search.filters.tree import ORDERINGS, PATTERNS, Operator, Scalar

#: A whole number beyond the range of floats is a mistake.
MAX_NUMBER = int(sys.float_info.max)

_WORDS = frozenset({Operator.EQ, Operator.IN, Operator.EXISTS})
_REFUSED: dict[Kind, frozenset[Operator]] = {
    Kind.NUMBER: PATTERNS,
    Kind.TIME: PATTERNS,
    Kind.LANGUAGE: frozenset(Operator) - _WORDS,
}


def check_operator(field: Field, operator: Operator, *, at: str) -> None:
    """Raise FilterError where `operator` has no meaning for `field`."""
    if operator in _REFUSED.get(field.kind, ()):
        raise FilterError(
            f"“{field}” is {field.kind.value}, which {operator.value} does not compare."
            f" Use {_usable(field.kind)}.",
            at=at,
        )


def operators_of(field: Field) -> list[Operator]:
    """Those that have a meaning for `field`."""
    return [operator for operator in Operator if operator not in _REFUSED.get(field.kind, ())]


def _usable(kind: Kind) -> str:
    usable = [operator.value for operator in Operator if operator not in _REFUSED[kind]]
    return ", ".join([*usable[:1], "$ne", *usable[1:2], "$nin", *usable[2:]])


def check_value(field: Field, operator: Operator, value: Any, *, at: str) -> Scalar:
    """`value`, if `field` can be compared with it so; null is not for this to judge."""
    match value:
        case bool():
            fits = field.kind is Kind.ANY and operator not in ORDERINGS
        case int() | float():
            _check_number(value, at)
            fits = field.kind in {Kind.ANY, Kind.NUMBER}
        case str():
            check_text(value, at=at)
            fits = field.kind is not Kind.NUMBER
        case _:
            fits = False
    if operator in {Operator.STARTSWITH, Operator.ENDSWITH}:
        fits = fits and isinstance(value, str)
    if not fits:
        raise FilterError(
            f"{_named(value)} is no value for {operator.value} here."
            f" Give {_fitting(field, operator)}.",
            at=at,
        )
    if isinstance(value, str):
        _check_string(field, operator, value, at)
    checked: Scalar = value
    return checked


def _check_number(value: float, at: str) -> None:
    if not (isinstance(value, int) or math.isfinite(value)) or abs(value) > MAX_NUMBER:
        raise FilterError("The number is not finite, or above 1.7e308. Give a smaller one.", at=at)


def _check_string(field: Field, operator: Operator, value: str, at: str) -> None:
    if operator in PATTERNS and len(value) > MAX_PATTERN_CHARACTERS:
        raise FilterError(
            f"{operator.value} takes up to {MAX_PATTERN_CHARACTERS:,} characters."
            " Look for a part of that.",
            at=at,
        )
    if field.kind is Kind.TIME:
        try:
            time_span(value)
        except ValueError as error:
            raise FilterError(
                f"{shown(value)} is no time. Give an ISO date or time, such as “2024”, “2024-05”,"
                " “2024-05-31” or “2024-05-31T12:00:00Z”.",
                at=at,
            ) from error


def _named(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return shown(value)
    names = {int: "A number", float: "A number", dict: "An object", list: "A list"}
    return names.get(type(value), f"A {type(value).__name__}")


_EXPECTED = {
    Kind.TEXT: "text",
    Kind.TEXTS: "text",
    Kind.NUMBER: "a number",
    Kind.TIME: "an ISO date or time as text, such as “2024-05-31”",
    Kind.LANGUAGE: "an ISO code as text, such as “de”",
}


def _fitting(field: Field, operator: Operator) -> str:
    if field.kind in _EXPECTED:
        return _EXPECTED[field.kind]
    if operator in {Operator.STARTSWITH, Operator.ENDSWITH}:
        return "text"
    if operator in ORDERINGS:
        return "a number or text"
    if operator is Operator.EQ:
        return "text, a number, true, false or null; for one of several, {“$in”: […]}"
    return "text, a number, true or false"
