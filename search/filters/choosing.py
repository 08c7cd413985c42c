"""Values picked from a list: the conditions of a filter that name values of one field.

They stand at the top of a filter, as `author=knuth` or `author=knuth,dijkstra`, joined with its
other conditions. Ranges, negations and alternatives are no choice from a list.
"""

from collections.abc import Sequence

from search.filters.fields import Field, Kind
from search.filters.tree import And, Comparison, Node, Operator, Scalar, all_of, one_of


def chosen(node: Node, field: Field) -> tuple[Scalar, ...]:
    """The values that hits may have in `field`; empty where none are named."""
    values = [value for part in _parts(node) for value in _choice(part, field) or ()]
    # To Python 1 and True are the same, to a filter not.
    return tuple({(isinstance(value, bool), value): value for value in values}.values())


def chosen_fields(node: Node) -> tuple[Field, ...]:
    """The fields that values are named of, each once, in their order."""
    named = (part.field for part in _parts(node) if isinstance(part, Comparison))
    return tuple(dict.fromkeys(field for field in named if chosen(node, field)))


def loosened(node: Node, field: Field) -> Node:
    """The filter without its choice of values of `field`."""
    return all_of(part for part in _parts(node) if _choice(part, field) is None)


def is_chosen(node: Node, field: Field, value: Scalar) -> bool:
    """Whether `value` is among those named."""
    return _is_among(value, chosen(node, field), field)


def toggled(node: Node, field: Field, value: Scalar) -> Node:
    """The filter with `value` among the named ones, or without it where it was."""
    before = chosen(node, field)
    others = tuple(each for each in before if not _same(each, value, field))
    values = others if len(others) < len(before) else (*before, value)
    choice = [one_of(field, values)] if values else []
    place = next(
        (n for n, part in enumerate(_parts(node)) if _choice(part, field) is not None), None
    )
    if place is None:
        return all_of([*_parts(node), *choice])
    kept = [part for part in _parts(node) if _choice(part, field) is None]
    return all_of([*kept[:place], *choice, *kept[place:]])


def _parts(node: Node) -> Sequence[Node]:
    return node.parts if isinstance(node, And) else (node,)


def _choice(part: Node, field: Field) -> tuple[Scalar, ...] | None:
    match part:
        case Comparison(field=named, operator=Operator.EQ, value=value) if named == field:
            return (value,)  # type: ignore[return-value]  # of EQ it is one
        case Comparison(field=named, operator=Operator.IN, value=tuple(values)) if named == field:
            return values
        case _:
            return None


def _is_among(value: Scalar, values: Sequence[Scalar], field: Field) -> bool:
    return any(_same(each, value, field) for each in values)


def _same(one: Scalar, other: Scalar, field: Field) -> bool:
    if field.kind is Kind.LANGUAGE:
        return _code(one) == _code(other)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _code(value: Scalar) -> str:
    return str(value).lower().replace("_", "-").split("-")[0]
