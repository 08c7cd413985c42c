"""Shortest paths: level by level from both ends, always from that with less before it."""

from dataclasses import dataclass, field

from graph.reading.arms import Direction
from graph.reading.linking import links_of
from graph.reading.results import Link, Path, PathFound, Truncated
from graph.reading.steps import Follow, Step, Stepped, step
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: A search that has looked at so many relations is given up.
MOST_STEPS = 500_000
#: So many are looked at before the other end is tried: it may not stand before a hub.
FEW_STEPS = 10_000
#: Of each vertex at least so many.
MIN_FAN = 100

_OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


@dataclass(slots=True)
class End:
    """One end of the search: what was reached from there, by which step, and what was last."""

    follow: Follow
    frontier: list[Ref]
    depth: int = 0
    by: dict[Ref, Step | None] = field(default_factory=dict)


@dataclass(slots=True)
class _Search:
    """Both ends, and how much was looked at."""

    seen: Sight
    ends: tuple[End, End]
    looked_at: int = 0
    hubs: set[Ref] = field(default_factory=set)
    exhausted: bool = False

    @property
    def depth(self) -> int:
        return sum(end.depth for end in self.ends)


def shortest(
    seen: Sight, source: Vertex, target: Vertex, follow: Follow, *, depth: int
) -> PathFound:
    """A way of as few steps as possible, at most `depth`. Of several the one with the larger
    weights near its ends, then that of lower primary keys: the same each time."""
    backwards = Follow(follow.rels, _OPPOSITE[follow.direction], follow.grain, follow.passages)
    search = _Search(
        seen,
        (
            End(follow, [source.ref], by={source.ref: None}),
            End(backwards, [target.ref], by={target.ref: None}),
        ),
    )
    meeting = source.ref if source.ref == target.ref else _meet(search, depth)
    way = [] if meeting is None else _way(search, meeting)
    vertices = load(seen, {source.ref, target.ref, *search.hubs, *_ends_of(way)}, props=True)
    hubs = tuple(sorted(vertices[hub].id for hub in search.hubs if hub in vertices))
    truncated = Truncated(hubs=hubs, work=search.exhausted)
    if meeting is None or not all(ref in vertices for ref in _ends_of(way)):
        return PathFound(None, depth, truncated)
    return PathFound(_path(source, way, vertices), depth, truncated)


def _meet(search: _Search, depth: int) -> Ref | None:
    """Where the two ends meet."""
    while search.depth < depth and all(end.frontier for end in search.ends):
        if search.looked_at >= MOST_STEPS:
            search.exhausted = True
            return None
        end, stepped = _next_level(search)
        other = search.ends[1] if end is search.ends[0] else search.ends[0]
        _take(end, stepped)
        meetings = [ref for ref in end.frontier if ref in other.by]
        if meetings:
            return min(meetings)
    return None


def _next_level(search: _Search) -> tuple[End, Stepped]:
    """The level of the end that has less before it."""
    ends = sorted(search.ends, key=lambda end: len(end.frontier))
    for end in ends:
        stepped = _step(search, end, FEW_STEPS)
        if not stepped.hubs:
            return end, stepped
    stepped = _step(search, ends[0], MOST_STEPS - search.looked_at)
    search.hubs |= stepped.hubs
    return ends[0], stepped


def _step(search: _Search, end: End, most: int) -> Stepped:
    fan = max(MIN_FAN, most // len(end.frontier))
    stepped = step(search.seen, end.frontier, end.follow, fan=fan, mentions=most)
    search.looked_at += len(stepped.steps)
    return stepped


def _take(end: End, stepped: Stepped) -> None:
    new: dict[Ref, Step] = {}
    for each in sorted(stepped.steps, key=lambda each: (-each.weight, each.at, each.rel, each.to)):
        if each.to not in end.by:
            new.setdefault(each.to, each)
    end.by.update(new)
    end.frontier = sorted(new)
    end.depth += 1


def _way(search: _Search, meeting: Ref) -> list[Step]:
    """The steps from the source to the target, each as it was found: from either end."""
    first, last = (_back(end, meeting) for end in search.ends)
    return [*reversed(first), *last]


def _back(end: End, ref: Ref) -> list[Step]:
    steps: list[Step] = []
    while (by := end.by[ref]) is not None:
        steps.append(by)
        ref = by.at
    return steps


def _ends_of(way: list[Step]) -> set[Ref]:
    return {ref for each in way for ref in (each.at, each.to)}


def _path(source: Vertex, way: list[Step], vertices: dict[Ref, Vertex]) -> Path:
    """The same as vertices in a row, and the relations between each two."""
    passed = [source.ref]
    for each in way:
        passed.append(each.to if each.at == passed[-1] else each.at)
    ids = {ref: vertex.id for ref, vertex in vertices.items()}
    links: list[Link] = []
    for each in way:
        links += links_of([each], ids)
    assert len(passed) == len(links) + 1
    return Path(tuple(vertices[ref] for ref in passed), tuple(links))
