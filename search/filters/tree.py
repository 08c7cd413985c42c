"""The tree that both forms of a filter mean, built so that what means the same looks the same."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from search.filters.fields import Field

Scalar = str | int | float | bool
Value = Scalar | tuple[Scalar, ...] | None


class Operator(Enum):
    """Comparisons that a field may pass; their negations are `Not`."""

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
    """Holds when some value of `field` passes. `value` is two or more for IN, None for EXISTS."""

    field: Field
    operator: Operator
    value: Value = None


@dataclass(frozen=True, slots=True)
class And:
    """Holds when every part does; without parts always."""

    parts: tuple["Node", ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """Holds when one of its parts, of which there are two or more, does."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Holds when its part does not, be it for want of a value."""

    part: "Node"


Node = Comparison | And | Or | Not

ALL = And()
NOTHING = Not(ALL)


def all_of(parts: Iterable[Node]) -> Node:
    """`parts` joined with and; one within another is one."""
    flat = tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))
    )
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(parts: Iterable[Node]) -> Node:
    """`parts` joined with or; none of them is nothing."""
    flat = tuple(
        inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))
    )
    if not flat:
        return NOTHING
    return flat[0] if len(flat) == 1 else Or(flat)


def negated(part: Node) -> Node:
    """What `part` leaves out."""
    return part.part if isinstance(part, Not) else Not(part)


def exists(field: Field) -> Node:
    """`field` has a value; null is none."""
    return Comparison(field, Operator.EXISTS)


def equals(field: Field, value: Scalar | None) -> Node:
    """`field` has this value; null is having none."""
    if value is None:
        return negated(exists(field))
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
    """How deep `$and`, `$or` and `$not` are nested when it is written down."""
    match node:
        case Comparison():
            return 0
        case Not(Comparison(operator=operator)) if operator in NEGATED_INLINE:
            return 0
        case Not(part):
            return 1 + depth(part)
        case And(parts) | Or(parts):
            return 1 + max(map(depth, parts), default=0)
