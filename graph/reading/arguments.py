"""Limits and checks of the arguments of reading functions."""

from collections.abc import Sequence

from common.errors import InvalidInput, NotFound
from graph.reading.steps import DIRECTIONS, GRAINS, Direction, Follow, Grain
from graph.reading.vertices import Vertex, resolve
from graph.scopes import AccessFilter

MAX_DEPTH = 100
MAX_HOPS = 5
MAX_REACHED = 10_000
MAX_VERTICES = 5_000
MAX_PAGE = 1_000
MAX_FOUND = 100
#: Names of relations, or labels, that one call may name.
MAX_NAMES = 100


def require_vertex(
    seen: AccessFilter, node_id: str, *, field: str = "id", props: bool = False
) -> Vertex:
    """The vertex with this id. Raises NotFound."""
    vertex = resolve(seen, [node_id], props=props).get(node_id)
    if vertex is None:
        shown = node_id if len(node_id) <= 100 else f"{node_id[:100]}…"
        raise NotFound(f"There is no “{shown}” in the graph ({field}). Look for it by its name.")
    return vertex


def make_follow(
    named: Sequence[Vertex],
    rels: Sequence[str],
    direction: Direction,
    grain: Grain,
    labels: Sequence[str] = (),
) -> Follow:
    """What to follow; requested passages count, whatever the grain. Raises InvalidInput."""
    check_choice([direction], DIRECTIONS, field="direction")
    check_choice([grain], GRAINS, field="grain")
    return Follow(
        rels=checked_names(rels, field="rels"),
        direction=direction,
        grain=grain,
        passages=frozenset(vertex.pk for vertex in named if vertex.kind == "chunk"),
        labels=checked_names(labels, field="labels"),
    )


def checked_names(names: str | Sequence[str], *, field: str) -> tuple[str, ...]:
    """The names as PostgreSQL can hold them. Raises InvalidInput for too many."""
    if isinstance(names, str):
        names = [names] if names else []
    if len(names) > MAX_NAMES:
        raise InvalidInput(f"{field} has at most {MAX_NAMES} names.", field=field)
    # one that no row can have is followed by nothing
    return tuple(name.replace("\0", "\ufffd").encode(errors="replace").decode() for name in names)


def check_range(value: int, most: int, *, field: str, least: int = 1) -> None:
    """Raises InvalidInput unless the value is in the range."""
    if not least <= value <= most:
        raise InvalidInput(f"{field} is from {least} to {most:,}.", field=field)


def check_choice(values: Sequence[str], possible: Sequence[str], *, field: str) -> None:
    """Raises InvalidInput unless all values are possible."""
    for value in values:
        if value not in possible:
            raise InvalidInput(
                f"There is no {field} “{value}”. Use {', '.join(possible)}.", field=field
            )
