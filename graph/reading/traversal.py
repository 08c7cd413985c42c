"""What is reached from a vertex, level by level, the nearest first.

A level is one statement, and no vertex is looked at twice: what has been visited is handed to the
next level. A recursive query cannot know what its other branches have seen, and walks every path.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from graph.reading.results import Reached, Traversal, Truncated
from graph.reading.steps import Follow, Step, step
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: A level looks at so many times as many relations as there is room for vertices, divided among
#: those that it starts from, …
STEPS_A_PLACE = 3
#: … and at so many of each at least.
MIN_FAN = 25


@dataclass(slots=True)
class Walk:
    """What was reached so far: how deep, and by which step. `hubs` had more beside them than was
    looked at, `full` says that there is more than `limit`."""

    limit: int
    depths: dict[Ref, int] = field(default_factory=dict)
    by: dict[Ref, Step] = field(default_factory=dict)
    hubs: set[Ref] = field(default_factory=set)
    full: bool = False


def traverse_from(
    seen: Sight, start: Vertex, follow: Follow, *, max_depth: int, limit: int, props: bool = False
) -> Traversal:
    """What is at most `max_depth` steps from `start`, and itself: at most `limit` of it."""
    walk = walk_from(seen, [start.ref], follow, max_depth=max_depth, limit=limit)
    vertices = load(seen, [*walk.depths, *walk.hubs], props=props)
    reached = [
        _reached(vertices, walk, ref, depth)
        for ref, depth in walk.depths.items()
        # one that was deleted between two statements is not told of
        if ref in vertices and (ref not in walk.by or walk.by[ref].at in vertices)
    ]
    hubs = sorted(vertices[hub].id for hub in walk.hubs if hub in vertices)
    return Traversal(tuple(reached), Truncated(limit=walk.full, hubs=tuple(hubs)))


def walk_from(
    seen: Sight, starts: Iterable[Ref], follow: Follow, *, max_depth: int, limit: int
) -> Walk:
    """The same for several starts together, by primary keys."""
    walk = Walk(limit)
    frontier = list(dict.fromkeys(starts))
    walk.depths.update(dict.fromkeys(frontier, 0))
    for depth in range(1, max_depth + 1):
        if not frontier or walk.full:
            break
        left = limit - len(walk.depths)
        # Several relations may lead to the same: no less is looked at where there is little room.
        fan = max(MIN_FAN, min(left + 1, STEPS_A_PLACE * left // len(frontier)))
        stepped = step(seen, frontier, follow, fan=fan, visited=walk.depths.keys())
        walk.hubs |= stepped.hubs
        frontier = _take(walk, stepped.steps, depth)
    return walk


def _take(walk: Walk, steps: Iterable[Step], depth: int) -> list[Ref]:
    """Note what these lead to for the first time, by the largest weight, as far as the limit."""
    places = {ref: place for place, ref in enumerate(walk.depths)}
    new: list[Ref] = []
    for each in sorted(steps, key=lambda each: (-each.weight, places[each.at], each.rel, each.to)):
        if each.to in walk.depths:
            continue
        if len(walk.depths) >= walk.limit:
            walk.full = True
            break
        walk.depths[each.to] = depth
        walk.by[each.to] = each
        new.append(each.to)
    return new


def _reached(vertices: dict[Ref, Vertex], walk: Walk, ref: Ref, depth: int) -> Reached:
    by = walk.by.get(ref)
    if by is None:
        return Reached(vertices[ref], depth)
    return Reached(vertices[ref], depth, vertices[by.at].id, by.rel, by.outgoing)
