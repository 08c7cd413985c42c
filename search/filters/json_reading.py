"""The JSON form, read: `{"year": {"$gte": 2020}, "$or": [{"language": "de"}, {"draft": true}]}`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from search.filters.fields import METADATA, Field, Kind, metadata_field, parse_field
from search.filters.limits import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_PATH_CHARACTERS,
    Budget,
    FilterError,
    shown,
    too_deep,
    too_long,
)
from search.filters.tree import (
    Comparison,
    Node,
    Operator,
    Scalar,
    all_of,
    any_of,
    equals,
    exists,
    negated,
    one_of,
)
from search.filters.values import check_operator, check_value

NEGATIONS = {"$ne": Operator.EQ, "$nin": Operator.IN}
OPERATORS = {**{operator.value: operator for operator in Operator}, **NEGATIONS}
LOGIC = ("$and", "$or", "$not")


def parse_json(text: str) -> Any:
    """The JSON value of `text`; a key that stands twice in an object is a mistake."""
    if len(text) > MAX_CHARACTERS:
        raise too_long()
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except RecursionError as error:
        raise too_deep() from error
    except json.JSONDecodeError as error:
        at = f"character {error.pos + 1} of the filter"
        raise FilterError(f"This is not JSON: {error.msg}.", at=at) from error
    except ValueError as error:
        raise FilterError(f"This is not JSON: {error}.") from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FilterError(f"{shown(key)} stands twice in one object. Put both under $and.")
        found[key] = value
    return found


def read_json(value: Any) -> Node:
    """The tree of a filter in JSON form; raises FilterError."""
    return _Reader().filter(value, "", 0)


class _Reader:
    """One pass over the JSON; `at` is the place, as in `$or[1].year.$gte`."""

    def __init__(self) -> None:
        self._budget = Budget()

    def filter(self, value: Any, at: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(at)
        if not isinstance(value, Mapping):
            raise FilterError('A filter is an object, as in {"year": {"$gte": 2020}}.', at=at)
        return all_of(self._entry(key, part, at, depth) for key, part in value.items())

    def _entry(self, key: Any, value: Any, at: str, depth: int) -> Node:
        here = self._step(key, at)
        if key in LOGIC:
            return self._logic(key, value, here, depth)
        if key in OPERATORS:
            raise FilterError(
                f'{key} belongs under a field, as in {{"year": {{"{key}": …}}}}.', at=here
            )
        if key.startswith("$"):
            raise FilterError(
                f"There is no operator {shown(key)}. There are {', '.join(LOGIC)}, and under a"
                f" field {', '.join(OPERATORS)}.",
                at=here,
            )
        return self._field(parse_field(key, at=here), value, here, depth)

    def _step(self, key: Any, at: str) -> str:
        if not isinstance(key, str):
            raise FilterError("The names in a filter are text.", at=at)
        self._budget.characters(key, at)
        name = key if len(key) <= MAX_PATH_CHARACTERS else shown(key)
        return f"{at}.{name}" if at else name

    def _logic(self, key: str, value: Any, at: str, depth: int) -> Node:
        self._budget.condition(at)
        if key == "$not":
            return negated(self.filter(value, at, depth + 1))
        if not isinstance(value, list | tuple):
            raise FilterError(f'{key} takes a list of filters, as in {{"{key}": [{{…}}]}}.', at=at)
        join = all_of if key == "$and" else any_of
        return join(
            self.filter(part, f"{at}[{number}]", depth + 1) for number, part in enumerate(value)
        )

    def _field(self, field: Field, value: Any, at: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(at)
        if isinstance(value, list | tuple):
            return self._all_values(field, value, at, depth)
        if not isinstance(value, Mapping):
            return self._comparison(field, "$eq", value, at)
        if not value:
            raise FilterError('There is no operator in it. Write {"$exists": true}, say.', at=at)
        if field.name == METADATA and not any(str(key).startswith("$") for key in value):
            return all_of(
                self._field(metadata_field((*field.keys, key), at=here), part, here, depth + 1)
                for key, part in value.items()
                for here in [self._step(key, at)]
            )
        return all_of(self._operator(field, key, part, at, depth) for key, part in value.items())

    def _all_values(self, field: Field, values: Sequence[Any], at: str, depth: int) -> Node:
        """A list holds where each of its values is among the field's, as JSON contains JSON."""
        if field.kind not in (Kind.ANY, Kind.TEXTS):
            raise FilterError(
                f'{field} has one value: {{"$in": […]}} is for one of several.', at=at
            )
        if not values:
            raise FilterError('The list is empty. Write {"$exists": true}, say.', at=at)
        self._budget.values(len(values), at)
        return all_of(
            self._comparison(field, "$eq", part, here)
            if isinstance(part, list | tuple)
            else self._field(field, part, here, depth + 1)
            for number, part in enumerate(values)
            for here in [f"{at}[{number}]"]
        )

    def _operator(self, field: Field, key: Any, value: Any, at: str, depth: int) -> Node:
        here = self._step(key, at)
        if key == "$not":
            self._budget.condition(here)
            if not isinstance(value, Mapping):
                raise FilterError('Under a field, $not takes operators: {"$not": {…}}.', at=here)
            return negated(self._field(field, value, here, depth + 1))
        if key not in OPERATORS:
            raise FilterError(_unknown_operator(field, key), at=here)
        return self._comparison(field, key, value, here)

    def _comparison(self, field: Field, key: str, value: Any, at: str) -> Node:
        self._budget.condition(at)
        operator = OPERATORS[key]
        check_operator(field, operator, at=at)
        match operator:
            case Operator.EXISTS:
                node = self._existence(field, value, at)
            case Operator.IN:
                node = self._choice(field, key, value, at)
            case Operator.EQ:
                node = equals(field, self._value_or_null(field, value, at))
            case _:
                checked = self._value(field, operator, value, at)
                # Only text can be a part; any other value is contained by being there.
                whole = operator is Operator.CONTAINS and not isinstance(checked, str)
                node = Comparison(field, Operator.EQ if whole else operator, checked)
        return negated(node) if key in NEGATIONS else node

    def _existence(self, field: Field, value: Any, at: str) -> Node:
        if not isinstance(value, bool):
            raise FilterError("$exists takes true or false.", at=at)
        return exists(field) if value else negated(exists(field))

    def _choice(self, field: Field, key: str, value: Any, at: str) -> Node:
        if not isinstance(value, list | tuple):
            raise FilterError(f'{key} takes a list of values, as in {{"{key}": [2020, 2021]}}.',
                              at=at)  # fmt: skip
        self._budget.values(len(value), at)
        return one_of(
            field,
            [
                self._value_or_null(field, part, f"{at}[{number}]")
                for number, part in enumerate(value)
            ],
        )

    def _value_or_null(self, field: Field, value: Any, at: str) -> Scalar | None:
        return None if value is None else self._value(field, Operator.EQ, value, at)

    def _value(self, field: Field, operator: Operator, value: Any, at: str) -> Scalar:
        if isinstance(value, str):
            self._budget.characters(value, at)
        return check_value(field, operator, value, at=at)


def _unknown_operator(field: Field, key: str) -> str:
    if key.startswith("$"):
        return f"There is no operator {shown(key)}. There are {', '.join(OPERATORS)} and $not."
    return (
        f"Under a field stand operators such as $gte. For a value within “{field}” write"
        f' {{"{field}.{shown(key)[1:-1]}": …}}.'
    )
