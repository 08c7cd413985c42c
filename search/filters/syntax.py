"""The two notations of a filter, JSON and text: parsing (`read_filter`) and writing (`to_json`,
`to_text`). Pure.

Grammar of the text form:

filter    = [ any { ";" any } [ ";" ] ]
any       = term { "|" term }
term      = "!" term | "(" filter ")" | condition
condition = name [ operator value { "," value } ]
operator  = "=" | "!=" | ">" | ">=" | "<" | "<=" | "~" | "^=" | "$="
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from common.translation import gettext
from search.filters.tree import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_PATH_CHARACTERS,
    METADATA,
    NEGATED_INLINE,
    PATTERNS,
    And,
    Comparison,
    Field,
    FilterBudget,
    FilterError,
    Kind,
    Node,
    Not,
    Operator,
    Or,
    Scalar,
    all_of,
    any_of,
    check_operator,
    check_text,
    check_value,
    depth,
    equals,
    exists,
    metadata_field,
    negate,
    one_of,
    parse_field,
    quote_excerpt,
    too_deep,
    too_long,
)

NEGATIONS = {"$ne": Operator.EQ, "$nin": Operator.IN}
JSON_OPERATORS = {**{operator.value: operator for operator in Operator}, **NEGATIONS}
LOGIC = ("$and", "$or", "$not")


def load_json(text: str) -> Any:
    """The JSON value of `text`; duplicate keys in an object are an error."""
    if len(text) > MAX_CHARACTERS:
        raise too_long()

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is no JSON number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise FilterError(
                    gettext("{key} stands twice in one object. Put both under $and.").format(
                        key=quote_excerpt(key)
                    )
                )
            found[key] = value
        return found

    try:
        return json.loads(text, parse_constant=no_constant, object_pairs_hook=unique)
    except RecursionError as error:
        raise too_deep() from error
    except json.JSONDecodeError as error:
        at = f"character {error.pos + 1} of the filter"
        raise FilterError(
            gettext("This is not JSON: {msg}.").format(msg=error.msg), at=at
        ) from error
    except ValueError as error:
        raise FilterError(gettext("This is not JSON: {error}.").format(error=error)) from error


def parse_json_filter(value: Any) -> Node:
    """The filter tree of a JSON value; raises FilterError."""
    return _JsonParser().filter(value, "", 0)


class _JsonParser:
    """One pass over the JSON; `at` is the position, as in `$or[1].year.$gte`."""

    def __init__(self) -> None:
        self._budget = FilterBudget()

    def filter(self, value: Any, at: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(at)
        if not isinstance(value, Mapping):
            raise FilterError(
                gettext('A filter is an object, as in {"year": {"$gte": 2020}}.'), at=at
            )
        return all_of(self._entry(key, part, at, depth) for key, part in value.items())

    def _entry(self, key: Any, value: Any, at: str, depth: int) -> Node:
        here = self._step(key, at)
        if key in LOGIC:
            self._budget.condition(here)
            if key == "$not":
                return negate(self.filter(value, here, depth + 1))
            if not isinstance(value, list | tuple):
                raise FilterError(
                    gettext('{key} takes a list of filters, as in {{"{key}": [{{…}}]}}.').format(
                        key=key
                    ),
                    at=here,
                )
            join = all_of if key == "$and" else any_of
            return join(
                self.filter(part, f"{here}[{number}]", depth + 1)
                for number, part in enumerate(value)
            )
        if key in JSON_OPERATORS:
            raise FilterError(
                gettext('{key} belongs under a field, as in {{"year": {{"{key}": …}}}}.').format(
                    key=key
                ),
                at=here,
            )
        if key.startswith("$"):
            raise FilterError(
                gettext(
                    "There is no operator {key}. There are {names}, and under a field {operators}."
                ).format(
                    key=quote_excerpt(key),
                    names=", ".join(LOGIC),
                    operators=", ".join(JSON_OPERATORS),
                ),
                at=here,
            )
        return self._field(parse_field(key, at=here), value, here, depth)

    def _step(self, key: Any, at: str) -> str:
        if not isinstance(key, str):
            raise FilterError(gettext("The names in a filter are text."), at=at)
        self._budget.characters(key, at)
        name = key if len(key) <= MAX_PATH_CHARACTERS else quote_excerpt(key)
        return f"{at}.{name}" if at else name

    def _field(self, field: Field, value: Any, at: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(at)
        if isinstance(value, list | tuple):
            # A list matches where each of its values is among the field's, as with JSON
            # containment.
            if field.kind not in (Kind.ANY, Kind.TEXTS):
                raise FilterError(
                    gettext('{field} has one value: {{"$in": […]}} is for one of several.').format(
                        field=field
                    ),
                    at=at,
                )
            if not value:
                raise FilterError(
                    gettext('The list is empty. Write {"$exists": true}, say.'), at=at
                )
            self._budget.values(len(value), at)
            return all_of(
                self._comparison(field, "$eq", part, here)
                if isinstance(part, list | tuple)
                else self._field(field, part, here, depth + 1)
                for number, part in enumerate(value)
                for here in [f"{at}[{number}]"]
            )
        if not isinstance(value, Mapping):
            return self._comparison(field, "$eq", value, at)
        if not value:
            raise FilterError(
                gettext('There is no operator in it. Write {"$exists": true}, say.'), at=at
            )
        if field.name == METADATA and not any(str(key).startswith("$") for key in value):
            return all_of(
                self._field(metadata_field((*field.keys, key), at=here), part, here, depth + 1)
                for key, part in value.items()
                for here in [self._step(key, at)]
            )
        return all_of(self._operator(field, key, part, at, depth) for key, part in value.items())

    def _operator(self, field: Field, key: Any, value: Any, at: str, depth: int) -> Node:
        here = self._step(key, at)
        if key == "$not":
            self._budget.condition(here)
            if not isinstance(value, Mapping):
                raise FilterError(
                    gettext('Under a field, $not takes operators: {"$not": {…}}.'), at=here
                )
            return negate(self._field(field, value, here, depth + 1))
        if key not in JSON_OPERATORS:
            if key.startswith("$"):
                raise FilterError(
                    gettext("There is no operator {key}. There are {names} and $not.").format(
                        key=quote_excerpt(key), names=", ".join(JSON_OPERATORS)
                    ),
                    at=here,
                )
            raise FilterError(
                gettext(
                    "Under a field stand operators such as $gte. For a value within"
                    ' “{field}” write {{"{field}.{key}": …}}.'
                ).format(field=field, key=quote_excerpt(key)[1:-1]),
                at=here,
            )
        return self._comparison(field, key, value, here)

    def _comparison(self, field: Field, key: str, value: Any, at: str) -> Node:
        self._budget.condition(at)
        operator = JSON_OPERATORS[key]
        check_operator(field, operator, at=at)
        match operator:
            case Operator.EXISTS:
                if not isinstance(value, bool):
                    raise FilterError(gettext("$exists takes true or false."), at=at)
                node = exists(field) if value else negate(exists(field))
            case Operator.IN:
                if not isinstance(value, list | tuple):
                    example = f'{{"{key}": [2020, 2021]}}'
                    raise FilterError(
                        gettext("{key} takes a list of values, as in {example}.").format(
                            key=key, example=example
                        ),
                        at=at,
                    )
                self._budget.values(len(value), at)
                node = one_of(
                    field,
                    [
                        self._value_or_null(field, part, f"{at}[{number}]")
                        for number, part in enumerate(value)
                    ],
                )
            case Operator.EQ:
                node = equals(field, self._value_or_null(field, value, at))
            case _:
                checked = self._value(field, operator, value, at)
                # Only text can be a part; any other value is contained by being there.
                is_equality = operator is Operator.CONTAINS and not isinstance(checked, str)
                node = Comparison(field, Operator.EQ if is_equality else operator, checked)
        return negate(node) if key in NEGATIONS else node

    def _value_or_null(self, field: Field, value: Any, at: str) -> Scalar | None:
        return None if value is None else self._value(field, Operator.EQ, value, at)

    def _value(self, field: Field, operator: Operator, value: Any, at: str) -> Scalar:
        if isinstance(value, str):
            self._budget.characters(value, at)
        return check_value(field, operator, value, at=at)


def to_json(node: Node) -> dict[str, Any]:
    """The JSON form of a tree; parsing it gives the same tree back."""
    match node:
        case Comparison(field, Operator.EQ, value):
            return {str(field): value}
        case Comparison(field, operator):
            return {str(field): {operator.value: _json_value(node)}}
        case Not(Comparison(field, operator) as part) if operator in NEGATED_INLINE:
            negation = {equal: name for name, equal in NEGATIONS.items()}.get(operator)
            return {str(field): {negation: _json_value(part)} if negation else {"$exists": False}}
        case Not(part):
            return {"$not": to_json(part)}
        case Or(parts):
            return {"$or": [to_json(part) for part in parts]}
        case And(parts):
            # One object where no key would be duplicated.
            objects = [to_json(part) for part in parts]
            together = {key: value for each in objects for key, value in each.items()}
            return together if len(together) == len(objects) else {"$and": objects}


def _json_value(node: Comparison) -> Any:
    if node.operator is Operator.EXISTS:
        return True
    return list(node.value) if isinstance(node.value, tuple) else node.value


TEXT_OPERATORS = {
    "=": Operator.EQ,
    "!=": Operator.EQ,
    ">=": Operator.GTE,
    "<=": Operator.LTE,
    ">": Operator.GT,
    "<": Operator.LT,
    "~": Operator.CONTAINS,
    "^=": Operator.STARTSWITH,
    "$=": Operator.ENDSWITH,
}
CONSTANTS: dict[str, Scalar | None] = {"true": True, "false": False, "null": None}

_QUOTES = '"“”„'
_ANYTHING = re.compile(r"\*(?=\s*(?:[;|)]|\Z))")
_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[^\s=!<>~^$;|,()\[\]{}\"“”„]+")
_SYMBOL = re.compile(r"!=|>=|<=|\^=|\$=|[=<>~]")
_QUOTED = re.compile(r"[\"“”„]((?:[^\"“”„\\]|\\.)*)[\"“”„]", re.DOTALL)
_BARE = re.compile(r"[^=<>~;|,()\"“”„]+")
_NOT_BARE = "=<>~(" + _QUOTES
_NEGATION_WITHIN = re.compile(r"\s!")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<rest>(?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)
#: More digits than any number that fits.
_MAX_DIGITS = 400


def parse_text_filter(text: str) -> Node:
    """The filter tree of the text form; raises FilterError, which names the character position."""
    if len(text) > MAX_CHARACTERS:
        raise too_long()
    return _TextParser(text).parse()


class _TextParser:
    """Recursive-descent parser of the text form, in one pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._budget = FilterBudget()

    def parse(self) -> Node:
        node = self._filter(0)
        if self._position < len(self._text):
            raise self._expected(gettext("“;” between conditions"))
        return node

    def _filter(self, depth: int) -> Node:
        parts: list[Node] = []
        while True:
            self._skip_blank()
            if self._text[self._position : self._position + 1] in {"", ")"}:
                return all_of(parts)
            terms = [self._term(depth)]
            while self._take("|"):
                terms.append(self._term(depth))
            parts.append(any_of(terms))
            if not self._take(";"):
                return all_of(parts)

    def _term(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(self._here())
        if self._take("!"):
            self._budget.condition(self._here())
            return negate(self._term(depth + 1))
        if not self._take("("):
            return self._condition()
        self._budget.condition(self._here())
        node = self._filter(depth + 1)
        if not self._take(")"):
            raise self._expected("“)”")
        return node

    def _condition(self) -> Node:
        at = self._here()
        self._budget.condition(at)
        self._skip_blank()
        name = self._quoted()
        if name is None:
            match = _NAME.match(self._text, self._position)
            if match is None:
                raise self._expected(gettext("the name of a field, as in “year>=2020”"))
            self._position = match.end()
            name = match[0]
        field = parse_field(name, at=at)
        self._skip_blank()
        symbol = _SYMBOL.match(self._text, self._position)
        if symbol is None:
            if field.kind is not Kind.ANY:
                raise FilterError(
                    gettext(
                        "What of “{field}”? Give an operator and a value, or {field}=* for any"
                        " value."
                    ).format(field=field),
                    at=at,
                )
            flag = True
            return equals(field, flag)
        self._position = symbol.end()
        operator = TEXT_OPERATORS[symbol[0]]
        check_operator(field, operator, at=at)
        node = self._values(field, operator)
        return negate(node) if symbol[0] == "!=" else node

    def _values(self, field: Field, operator: Operator) -> Node:
        self._skip_blank()
        at = self._here()
        if operator is Operator.EQ and (anything := _ANYTHING.match(self._text, self._position)):
            self._position = anything.end()
            return exists(field)
        values = [self._value(field, operator)]
        while self._take(","):
            if operator is not Operator.EQ:
                raise FilterError(
                    gettext(
                        "Only = and != take several values. Put the text in quotes, or join"
                        " conditions with “|”."
                    ),
                    at=at,
                )
            self._budget.values(2 if len(values) == 1 else 1, at)
            values.append(self._value(field, operator))
        if operator is Operator.EQ:
            return one_of(field, values)
        (value,) = values
        return Comparison(field, operator, value)

    def _value(self, field: Field, operator: Operator) -> Any:
        self._skip_blank()
        at = self._here()
        value: Any = self._quoted()
        if value is None:
            value = self._bare()
            if field.kind in {Kind.ANY, Kind.NUMBER} and operator not in PATTERNS:
                value = _parse_literal(value, at)
        if value is None and operator is Operator.EQ:
            return None
        return check_value(field, operator, value, at=at)

    def _quoted(self) -> str | None:
        if self._text[self._position : self._position + 1] not in set(_QUOTES):
            return None
        quoted = _QUOTED.match(self._text, self._position)
        if quoted is None:
            raise FilterError(gettext("This quote is never closed. Close it."), at=self._here())
        self._position = quoted.end()
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL)

    def _bare(self) -> str:
        bare = _BARE.match(self._text, self._position)
        value = bare[0].strip() if bare else ""
        if not value:
            raise self._expected(gettext("a value, in quotes if it begins with a sign"))
        if value.startswith("*") or value.endswith("*"):
            raise FilterError(
                gettext(
                    "“*” stands alone. Write ^= for a beginning, $= for an end, ~ for a"
                    " part, or put the value in quotes."
                ),
                at=self._here(),
            )
        self._position = bare.end() if bare else self._position
        behind = self._text[self._position : self._position + 1]
        if (behind and behind in _NOT_BARE) or _NEGATION_WITHIN.search(value):
            raise self._expected(
                gettext("“;” before the next condition, or quotes round the value")
            )
        return value

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._position)
        self._position = blank.end() if blank else self._position

    def _take(self, sign: str) -> bool:
        self._skip_blank()
        taken = self._text.startswith(sign, self._position)
        self._position += len(sign) if taken else 0
        return taken

    def _here(self) -> str:
        return gettext("character {position} of the filter").format(position=self._position + 1)

    def _expected(self, what: str) -> FilterError:
        found = self._text[self._position : self._position + 1]
        text = (
            gettext("There is “{found}”. Write {what}.")
            if found
            else gettext("There is the end. Write {what}.")
        )
        return FilterError(text.format(found=found, what=what), at=self._here())


def is_literal(bare: str) -> bool:
    """Whether an unquoted word is a number, true, false or null."""
    return bare in CONSTANTS or _NUMBER.fullmatch(bare) is not None


def _parse_literal(bare: str, at: str) -> Scalar | None:
    if bare in CONSTANTS:
        return CONSTANTS[bare]
    number = _NUMBER.fullmatch(bare)
    if number is None:
        return bare
    if len(bare) > _MAX_DIGITS:
        raise FilterError(
            gettext("The number has too many digits. Put it in quotes if it is text."), at=at
        )
    return float(bare) if number["rest"] else int(bare)


def to_text(node: Node) -> str:
    """The text form of a tree; parsing it gives the same tree back."""
    return "; ".join(map(_any_text, node.parts)) if isinstance(node, And) else _any_text(node)


def _any_text(node: Node) -> str:
    return " | ".join(map(_term_text, node.parts)) if isinstance(node, Or) else _term_text(node)


def _term_text(node: Node) -> str:
    match node:
        case Comparison():
            return _condition_text(node)
        case Not(Comparison() as part) if part.operator in NEGATED_INLINE:
            return _condition_text(part, "!=")
        case Not(part):
            return f"!{_term_text(part)}"
        case And() | Or():
            return f"({to_text(node)})"


_SIGNS = {operator: sign for sign, operator in TEXT_OPERATORS.items() if sign != "!="}
_PLAIN_NAME = re.compile(r"[\w.\\-]+")
_PLAIN_VALUE = re.compile(r"[\w./:+@%-]+")


def _condition_text(node: Comparison, equal: str = "=") -> str:
    name = str(node.field)
    name = name if _PLAIN_NAME.fullmatch(name) else _in_quotes(name)
    match node.operator, node.value:
        case Operator.EXISTS, _:
            return f"{name}{equal}*"
        case Operator.IN, tuple(values):
            return f"{name}{equal}{','.join(_value_text(node, value) for value in values)}"
        case Operator.EQ, value if value is True:
            return name if equal == "=" else f"!{name}"
        case Operator.EQ, value:
            return f"{name}{equal}{_value_text(node, value)}"
        case operator, value:
            return f"{name}{_SIGNS[operator]}{_value_text(node, value)}"


def _value_text(node: Comparison, value: Any) -> str:
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else repr(value)
    plain = _PLAIN_VALUE.fullmatch(value) is not None
    if node.field.kind is Kind.ANY and node.operator not in PATTERNS:
        plain = plain and not is_literal(value)
    return value if plain else _in_quotes(value)


def _in_quotes(text: str) -> str:
    return '"' + re.sub(r"[\"“”„\\]", r"\\\g<0>", text) + '"'


def read_filter(value: Any) -> Node:
    """The tree of a filter: a mapping in JSON form, or text that holds JSON or the text form.

    None and blank text match everything. Raises FilterError.
    """
    if value is None or isinstance(value, str):
        text = value or ""
        is_json = text.lstrip().startswith("{")
        node = parse_json_filter(load_json(text)) if is_json else parse_text_filter(text)
    else:
        node = parse_json_filter(value)
    if depth(node) > MAX_DEPTH:
        raise too_deep()
    return node


def metadata_filter(pairs: Mapping[str, Any]) -> Node:
    """Metadata containment of these pairs: equal values, all elements of a list,
    nested objects. Raises FilterError.
    """
    return all_of(_contains((key,), value) for key, value in pairs.items())


def _contains(keys: tuple[str, ...], value: Any) -> Node:
    at = ".".join(keys)
    if len(keys) > MAX_DEPTH + 1:
        raise too_deep(at)
    field = Field(METADATA, keys)
    check_text(at, at=at)
    match value:
        case Mapping() | list() | tuple() if not value:
            raise FilterError(gettext("There is no value in it. Give one."), at=at)
        case Mapping():
            return all_of(_contains((*keys, key), inner) for key, inner in value.items())
        case list() | tuple():
            return all_of(_contains(keys, element) for element in value)
        case None:
            return equals(field, None)
        case _:
            return equals(field, check_value(field, Operator.EQ, value, at=at))
