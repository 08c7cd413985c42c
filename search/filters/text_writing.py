"""A tree in the text form, whose grammar stands in `text_reading`."""

import re
from typing import Any

from search.filters.fields import Kind
from search.filters.text_reading import SYMBOLS, is_literal
from search.filters.tree import NEGATED_INLINE, PATTERNS, And, Comparison, Node, Not, Operator, Or


def to_text(node: Node) -> str:
    """The text form of a tree: `read_text` gives the same tree back."""
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


_SIGNS = {operator: sign for sign, operator in SYMBOLS.items() if sign != "!="}
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
