"""A comparison of metadata as a jsonpath predicate for `jsonb @@ jsonpath`.

In jsonpath's lax mode a list stands for its elements, a missing key for nothing, and values that
cannot be compared are no match instead of an error: the rules of the filter language.
"""

import json

from search.filters.fields import Field
from search.filters.patterns import pattern
from search.filters.tree import PATTERNS, Comparison, Operator, Value

SYMBOLS = {
    Operator.EQ: "==",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}


def predicate(node: Comparison) -> str:
    """Such as `$."author"."born" >= 1900`."""
    path = _path(node.field)
    match node.operator, node.value:
        case Operator.EXISTS, _:
            return f'{path}.type() != "null"'
        case Operator.IN, tuple(values):
            return " || ".join(f"{path} == {_literal(value)}" for value in values)
        case operator, value if operator in PATTERNS:
            return f'{path} like_regex {_literal(pattern(operator, str(value)))} flag "i"'
        case operator, value:
            return f"{path} {SYMBOLS[operator]} {_literal(value)}"


def elements_of(field: Field) -> str:
    """The value of `field`, or each element of it where it is a list."""
    return f"{_path(field)}[*]"


def _path(field: Field) -> str:
    return "$" + "".join(f".{_literal(key)}" for key in field.keys)


def _literal(value: Value) -> str:
    # ASCII only: jsonpath reads JSON's escapes, and nothing else could end the string.
    return json.dumps(value)
