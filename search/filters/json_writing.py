"""A tree in the JSON form."""

from typing import Any

from search.filters.tree import NEGATED_INLINE, And, Comparison, Node, Not, Operator, Or, Value


def to_json(node: Node) -> dict[str, Any]:
    """The JSON form of a tree: `read_json` gives the same tree back."""
    match node:
        case Comparison():
            return {str(node.field): _condition(node)}
        case Not(Comparison() as part) if part.operator in NEGATED_INLINE:
            return {str(part.field): _negation(part)}
        case Not(part):
            return {"$not": to_json(part)}
        case Or(parts):
            return {"$or": [to_json(part) for part in parts]}
        case And(parts):
            return _joined([to_json(part) for part in parts])


def _condition(node: Comparison) -> Any:
    match node.operator:
        case Operator.EQ:
            return node.value
        case Operator.EXISTS:
            return {"$exists": True}
        case Operator.IN:
            return {"$in": _listed(node.value)}
        case operator:
            return {operator.value: node.value}


def _negation(node: Comparison) -> Any:
    match node.operator:
        case Operator.EQ:
            return {"$ne": node.value}
        case Operator.IN:
            return {"$nin": _listed(node.value)}
        case _:
            return {"$exists": False}


def _listed(value: Value) -> list[Any]:
    assert isinstance(value, tuple)
    return list(value)


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One object where no key would stand twice in it."""
    together = {key: value for part in parts for key, value in part.items()}
    return together if len(together) == len(parts) else {"$and": parts}
