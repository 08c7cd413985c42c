"""The filter tree: fields, operators, value checks, limits, and the choice of facet values within
it. Pure.

Begin with `Comparison`, `And`, `Or`, `Not`.
"""

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

from common.errors import InvalidInput
from common.translation import format_number, gettext, gettext_noop

#: `$and`, `$or` and `$not` within one another. An API body of 32 levels has room for it.
MAX_DEPTH = 12
MAX_CONDITIONS = 100
#: Of all `$in` and `$nin` together.
MAX_VALUES = 1_000
MAX_CHARACTERS = 65_536
MAX_PATH_CHARACTERS = 128
#: Looked for as a regular expression, whose automaton grows with it.
MAX_PATTERN_CHARACTERS = 1_000

_MAX_EXCERPT = 40


class FilterError(InvalidInput):
    """An invalid filter; the message names the position and the cure."""

    def __init__(self, message: str, *, at: str = "") -> None:
        # Half a surrogate pair could not be sent back.
        whole = f"At {at or 'the filter'}: {message}".encode(errors="replace").decode()
        super().__init__(whole, field="filter")


class FilterBudget:
    """Remaining size of a filter; methods raise FilterError when it is exceeded.

    Counting while parsing rejects a megabyte after its first hundred conditions.
    """

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0
        self._characters = 0

    def condition(self, at: str) -> None:
        """Counts one comparison, `$and`, `$or` or `$not`."""
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise FilterError(
                gettext(
                    "The filter has more than {limit} conditions. Join alternatives of one"
                    " field with $in, or store what they mean as a field."
                ).format(limit=MAX_CONDITIONS),
                at=at,
            )

    def values(self, count: int, at: str) -> None:
        """Counts `count` more list values."""
        self._values += count
        if self._values > MAX_VALUES:
            raise FilterError(
                gettext(
                    "The lists of the filter have more than {limit} values. Ask in several"
                    " searches."
                ).format(limit=format_number(MAX_VALUES)),
                at=at,
            )

    def characters(self, text: str, at: str) -> None:
        """Counts the characters of a name or string."""
        self._characters += len(text)
        if self._characters > MAX_CHARACTERS:
            raise too_long(at)


def too_long(at: str = "") -> FilterError:
    """The error for a filter with too many characters."""
    return FilterError(
        gettext(
            "The filter has more than {limit} characters. Leave out what is not needed."
        ).format(limit=format_number(MAX_CHARACTERS)),
        at=at,
    )


def too_deep(at: str = "") -> FilterError:
    """The error for a filter that is nested too deep."""
    return FilterError(
        gettext("$and, $or and $not are nested more than {limit} deep. Flatten the filter.").format(
            limit=MAX_DEPTH
        ),
        at=at,
    )


def quote_excerpt(text: str) -> str:
    """`text` in quotation marks for a message, shortened."""
    return f"“{text if len(text) <= _MAX_EXCERPT else text[:_MAX_EXCERPT] + '…'}”"


METADATA = "metadata"


class Kind(Enum):
    """Value type of a field. A list matches if one of its elements does."""

    ANY = "anything"
    TEXT = "text"
    TEXTS = "a list of texts"
    NUMBER = "a number"
    TIME = "a time"
    LANGUAGE = "a language"


FIELDS: Mapping[str, Kind] = {
    "collection": Kind.TEXT,
    "document": Kind.TEXT,
    "title": Kind.TEXT,
    "source": Kind.TEXT,
    "url": Kind.TEXT,
    "origin": Kind.TEXT,
    "media_type": Kind.TEXT,
    "language": Kind.LANGUAGE,
    "dated": Kind.TIME,
    "created": Kind.TIME,
    "updated": Kind.TIME,
    "chunk": Kind.TEXT,
    "chapter": Kind.TEXT,
    "section": Kind.TEXT,
    "heading": Kind.TEXTS,
    "page": Kind.NUMBER,
}
ALIASES: Mapping[str, str] = {"lang": "language"}

_KEY = re.compile(r"(?:[^.\\]|\\[.\\])+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """A name of `FIELDS`, or `metadata` with the path of keys to a value."""

    name: str
    keys: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """The type that it can be compared with."""
        return FIELDS.get(self.name, Kind.ANY)

    def __str__(self) -> str:
        """The shortest path that means this field."""
        if not self.keys:
            return self.name
        path = ".".join(re.sub(r"[.\\]", r"\\\g<0>", key) for key in self.keys)
        reserved = path in FIELDS or path in ALIASES or path.startswith("$")
        needs_prefix = reserved or self.keys[0] == METADATA
        return f"{METADATA}.{path}" if needs_prefix else path


def parse_field(path: str, *, at: str) -> Field:
    """The field that `path` names: one of `FIELDS`, else a metadata path, with or without
    `metadata.`.

    Dots and backslashes within a key follow a backslash.
    """
    if len(path) > MAX_PATH_CHARACTERS:
        raise FilterError(
            gettext(
                "The field {path} has more than {limit} characters. Give that value a shorter name."
            ).format(path=quote_excerpt(path), limit=MAX_PATH_CHARACTERS),
            at=at,
        )
    check_text(path, at=at)
    name = ALIASES.get(path, path)
    if name in FIELDS:
        return Field(name)
    keys: tuple[str, ...] = ()
    position = 0
    while key := _KEY.match(path, position):
        keys += (re.sub(r"\\(.)", r"\1", key[0], flags=re.DOTALL),)
        position = key.end() + 1
        if path[key.end() : position] != ".":
            break
    if position != len(path) + 1:
        raise FilterError(
            gettext(
                "{path} is no field. Write names with single dots between them, as in"
                " “author.name”; a dot or backslash that belongs to a name has a"
                " backslash before it."
            ).format(path=quote_excerpt(path)),
            at=at,
        )
    if keys[0] != METADATA:
        return Field(METADATA, keys)
    if len(keys) == 1:
        raise FilterError(gettext("Which metadata? Name a key, as in “metadata.year”."), at=at)
    return Field(METADATA, keys[1:])


def metadata_field(keys: tuple[str, ...], *, at: str) -> Field:
    """The metadata field at these keys; raises FilterError."""
    field = Field(METADATA, keys)
    parse_field(str(field), at=at)  # raises for what cannot be one
    return field


def check_text(text: str, *, at: str) -> None:
    """Raises FilterError for text that PostgreSQL cannot store."""
    if "\x00" in text:
        raise FilterError(gettext("There is a NUL character (U+0000) in it. Remove it."), at=at)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise FilterError(
            gettext("There is half of a surrogate pair in it. Send whole Unicode characters."),
            at=at,
        )


_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)


def time_span(text: str) -> tuple[datetime, datetime]:
    """[start, end) of what `text` means, in its time zone or else UTC.

    `2024`, `2024-05` and `2024-05-31` span a year, a month, a day; a time of day is an instant.
    Raises ValueError for anything else.
    """
    if partial := _YEAR_OR_MONTH.fullmatch(text):
        year, month = int(partial[1]), int(partial[2] or 12)
        start = date(year, int(partial[2] or 1), 1)
        return _midnight(start), _midnight(date(year + month // 12, month % 12 + 1, 1))
    length = timedelta(days=1)
    try:
        try:
            start = _midnight(date.fromisoformat(text))
        except ValueError:
            start, length = datetime.fromisoformat(text), datetime.resolution
            # In UTC, because PostgreSQL refuses offsets that Python takes.
            start = start.astimezone(UTC) if start.tzinfo else start.replace(tzinfo=UTC)
        return start, start + length
    except OverflowError as error:  # before the first day of the calendar, or after its last
        raise ValueError(text) from error


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


Scalar = str | int | float | bool
Value = Scalar | tuple[Scalar, ...] | None


class Operator(Enum):
    """Comparison operators; their negations are `Not`."""

    EQ = "$eq"
    IN = "$in"
    GT = "$gt"
    GTE = "$gte"
    LT = "$lt"
    LTE = "$lte"
    CONTAINS = "$contains"
    STARTSWITH = "$startswith"
    ENDSWITH = "$endswith"
    EXISTS = "$exists"


ORDERINGS = frozenset({Operator.GT, Operator.GTE, Operator.LT, Operator.LTE})
PATTERNS = frozenset({Operator.CONTAINS, Operator.STARTSWITH, Operator.ENDSWITH})
#: Those whose negation has a spelling of its own: `$ne`, `$nin`, `$exists: false`.
NEGATED_INLINE = frozenset({Operator.EQ, Operator.IN, Operator.EXISTS})


@dataclass(frozen=True, slots=True)
class Comparison:
    """Matches when some value of `field` passes. `value` is a tuple of two or more for
    IN, None for EXISTS.
    """

    field: Field
    operator: Operator
    value: Value = None


@dataclass(frozen=True, slots=True)
class And:
    """Matches when every part does; without parts always."""

    parts: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """Matches when one of its two or more parts does."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Matches when its part does not, also for lack of a value."""

    part: "Node"


Node = Comparison | And | Or | Not

ALL = And()
NONE = Not(ALL)


def all_of(parts: Iterable[Node]) -> Node:
    """`parts` joined with AND; nested ANDs are flattened."""
    flat = tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))
    )
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(parts: Iterable[Node]) -> Node:
    """`parts` joined with OR; without parts nothing matches."""
    flat = tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))
    )
    if not flat:
        return NONE
    return flat[0] if len(flat) == 1 else Or(flat)


def negate(part: Node) -> Node:
    return part.part if isinstance(part, Not) else Not(part)


def exists(field: Field) -> Node:
    """`field` has a value that is not null."""
    return Comparison(field, Operator.EXISTS)


def equals(field: Field, value: Scalar | None) -> Node:
    """`field` has this value; null means it has none."""
    if value is None:
        return negate(exists(field))
    return Comparison(field, Operator.EQ, value)


def one_of(field: Field, values: Sequence[Scalar | None]) -> Node:
    """`field` has one of `values`."""
    given = tuple(value for value in values if value is not None)
    parts: list[Node] = [equals(field, None)] if len(given) < len(values) else []
    if len(given) == 1:
        parts.append(equals(field, given[0]))
    elif given:
        parts.append(Comparison(field, Operator.IN, given))
    return any_of(parts)


def depth(node: Node) -> int:
    """Nesting depth of `$and`, `$or` and `$not` in the written form."""
    match node:
        case Comparison():
            return 0
        case Not(Comparison(operator=operator)) if operator in NEGATED_INLINE:
            return 0
        case Not(part):
            return 1 + depth(part)
        case And(parts) | Or(parts):
            return 1 + max(map(depth, parts), default=0)


#: Integers beyond the range of floats are rejected.
MAX_NUMBER = int(sys.float_info.max)

_LANGUAGE_OPERATORS = frozenset({Operator.EQ, Operator.IN, Operator.EXISTS})
_REFUSED: dict[Kind, frozenset[Operator]] = {
    Kind.NUMBER: PATTERNS,
    Kind.TIME: PATTERNS,
    Kind.LANGUAGE: frozenset(Operator) - _LANGUAGE_OPERATORS,
}


def check_operator(field: Field, operator: Operator, *, at: str) -> None:
    """Raises FilterError where `operator` is not defined for `field`."""
    if operator in _REFUSED.get(field.kind, ()):
        usable = [each.value for each in Operator if each not in _REFUSED[field.kind]]
        usable = [*usable[:1], "$ne", *usable[1:2], "$nin", *usable[2:]]
        raise FilterError(
            gettext("“{field}” is {kind}, which {operator} does not compare. Use {names}.").format(
                field=field, kind=field.kind.value, operator=operator.value, names=", ".join(usable)
            ),
            at=at,
        )


def operators_of(field: Field) -> list[Operator]:
    """Operators that are defined for `field`."""
    return [operator for operator in Operator if operator not in _REFUSED.get(field.kind, ())]


def check_value(field: Field, operator: Operator, value: Any, *, at: str) -> Scalar:
    """`value`, if `field` can be compared with it; null is checked elsewhere. Raises
    FilterError.
    """
    match value:
        case bool():
            fits = field.kind is Kind.ANY and operator not in ORDERINGS
        case int() | float():
            if not (isinstance(value, int) or math.isfinite(value)) or abs(value) > MAX_NUMBER:
                raise FilterError(
                    gettext("The number is not finite, or above 1.7e308. Give a smaller one."),
                    at=at,
                )
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
            gettext("{value} is no value for {operator} here. Give {expected}.").format(
                value=_value_name(value),
                operator=operator.value,
                expected=_expected_value(field, operator),
            ),
            at=at,
        )
    if isinstance(value, str):
        if operator in PATTERNS and len(value) > MAX_PATTERN_CHARACTERS:
            raise FilterError(
                gettext("{value} takes up to {limit} characters. Look for a part of that.").format(
                    value=operator.value,
                    limit=format_number(MAX_PATTERN_CHARACTERS),
                ),
                at=at,
            )
        if field.kind is Kind.TIME:
            try:
                time_span(value)
            except ValueError as error:
                raise FilterError(
                    gettext(
                        "{value} is no time. Give an ISO date or time, such as “2024”,"
                        " “2024-05”, “2024-05-31” or “2024-05-31T12:00:00Z”."
                    ).format(value=quote_excerpt(value)),
                    at=at,
                ) from error
    checked: Scalar = value
    return checked


def _value_name(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quote_excerpt(value)
    names = {
        int: gettext("A number"),
        float: gettext("A number"),
        dict: gettext("An object"),
        list: gettext("A list"),
    }
    return names.get(type(value), f"A {type(value).__name__}")


_EXPECTED = {
    Kind.TEXT: gettext_noop("text"),
    Kind.TEXTS: gettext_noop("text"),
    Kind.NUMBER: gettext_noop("a number"),
    Kind.TIME: gettext_noop("an ISO date or time as text, such as “2024-05-31”"),
    Kind.LANGUAGE: gettext_noop("an ISO code as text, such as “de”"),
}


def _expected_value(field: Field, operator: Operator) -> str:
    if field.kind in _EXPECTED:
        return gettext(_EXPECTED[field.kind])
    if operator in {Operator.STARTSWITH, Operator.ENDSWITH}:
        return gettext("text")
    if operator in ORDERINGS:
        return gettext("a number or text")
    if operator is Operator.EQ:
        return gettext("text, a number, true, false or null; for one of several, {“$in”: […]}")
    return gettext("text, a number, true or false")


def chosen_values(node: Node, field: Field) -> tuple[Scalar, ...]:
    """The values that hits may have in `field`; empty where none are named."""
    values = [value for part in _parts(node) for value in _choice_values(part, field) or ()]
    # To Python 1 and True are the same, to a filter not.
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


def chosen_fields(node: Node) -> tuple[Field, ...]:
    """Fields with chosen values, each once, in their order."""
    named = (part.field for part in _parts(node) if isinstance(part, Comparison))
    return tuple(dict.fromkeys(field for field in named if chosen_values(node, field)))


def without_field(node: Node, field: Field) -> Node:
    """The filter without the values chosen of `field`."""
    return all_of(part for part in _parts(node) if _choice_values(part, field) is None)


def is_chosen(node: Node, field: Field, value: Scalar) -> bool:
    """Whether `value` is among the chosen ones."""
    values = chosen_values(node, field)
    return any(_same_value(each, value, field) for each in values)


def toggle_value(node: Node, field: Field, value: Scalar) -> Node:
    """The filter with `value` added to the chosen ones, or removed from them."""
    before = chosen_values(node, field)
    others = tuple(each for each in before if not _same_value(each, value, field))
    values = others if len(others) < len(before) else (*before, value)
    choice = [one_of(field, values)] if values else []
    place = next(
        (n for n, part in enumerate(_parts(node)) if _choice_values(part, field) is not None), None
    )
    if place is None:
        return all_of([*_parts(node), *choice])
    kept = [part for part in _parts(node) if _choice_values(part, field) is None]
    return all_of([*kept[:place], *choice, *kept[place:]])


def _parts(node: Node) -> Sequence[Node]:
    return node.parts if isinstance(node, And) else (node,)


def _choice_values(part: Node, field: Field) -> tuple[Scalar, ...] | None:
    match part:
        case Comparison(field=named, operator=Operator.EQ, value=value) if named == field:
            return (value,)  # type: ignore[return-value]  # of EQ it is one
        case Comparison(field=named, operator=Operator.IN, value=tuple(values)) if named == field:
            return values
        case _:
            return None


def _same_value(one: Scalar, other: Scalar, field: Field) -> bool:
    if field.kind is Kind.LANGUAGE:
        return _language_code(one) == _language_code(other)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _language_code(value: Scalar) -> str:
    return str(value).lower().replace("_", "-").split("-")[0]
