"""Walks through the graph: breadth-first traversal, shortest paths, subgraph around some vertices.

Each level is one SQL statement that excludes vertices visited before, which a recursive query
cannot do.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2

from graph.reading.results import Link, Path, PathFound, Reached, Subgraph, Traversal, Truncated
from graph.reading.steps import (
    Direction,
    Follow,
    Step,
    StepResult,
    capped_degrees,
    make_links,
    step,
    steps_between,
)
from graph.reading.vertices import Ref, Vertex, load_vertices
from graph.scopes import AccessFilter

#: Relations read per level, as a multiple of the free places, divided among its start vertices, …
TRAVERSAL_STEPS_PER_VERTEX = 3
#: … and at least this many of each.
MIN_TRAVERSAL_FAN = 25


@dataclass(slots=True)
class Walk:
    """State of a traversal: depth and last step by vertex. `hubs` had more neighbours
    than read; `full`: more than `limit`.
    """

    limit: int
    depths: dict[Ref, int] = field(default_factory=dict)
    reached_by: dict[Ref, Step] = field(default_factory=dict)
    hubs: set[Ref] = field(default_factory=set)
    full: bool = False


def traverse_from(
    seen: AccessFilter,
    start: Vertex,
    follow: Follow,
    *,
    max_depth: int,
    limit: int,
    props: bool = False,
) -> Traversal:
    """Vertices at most `max_depth` steps from `start`, including it, at most `limit`."""
    walk = walk_from(seen, [start.ref], follow, max_depth=max_depth, limit=limit)
    vertices = load_vertices(seen, [*walk.depths, *walk.hubs], props=props)
    reached = []
    for ref, depth in walk.depths.items():
        by = walk.reached_by.get(ref)
        # vertices deleted between two statements are left out
        if ref not in vertices or (by and by.at not in vertices):
            continue
        last = (vertices[by.at].id, by.rel, by.outgoing) if by else ()
        reached.append(Reached(vertices[ref], depth, *last))
    hubs = sorted(vertices[hub].id for hub in walk.hubs if hub in vertices)
    return Traversal(tuple(reached), Truncated(limit=walk.full, hubs=tuple(hubs)))


def walk_from(
    seen: AccessFilter, starts: Iterable[Ref], follow: Follow, *, max_depth: int, limit: int
) -> Walk:
    """The traversal from several starts, by primary keys."""
    walk = Walk(limit)
    frontier = list(dict.fromkeys(starts))
    walk.depths.update(dict.fromkeys(frontier, 0))
    for depth in range(1, max_depth + 1):
        if not frontier or walk.full:
            break
        left = limit - len(walk.depths)
        # Several relations may lead to the same: no less is looked at where there is little room.
        fan = max(
            MIN_TRAVERSAL_FAN, min(left + 1, TRAVERSAL_STEPS_PER_VERTEX * left // len(frontier))
        )
        stepped = step(seen, frontier, follow, fan=fan, visited=walk.depths.keys())
        walk.hubs |= stepped.hubs
        frontier = _take_steps(walk, stepped.steps, depth)
    return walk


def _take_steps(walk: Walk, steps: Iterable[Step], depth: int) -> list[Ref]:
    """Adds newly reached vertices by largest weight, up to the limit; returns them."""
    places = {ref: place for place, ref in enumerate(walk.depths)}
    new: list[Ref] = []
    for each in sorted(steps, key=lambda each: (-each.weight, places[each.at], each.rel, each.to)):
        if each.to in walk.depths:
            continue
        if len(walk.depths) >= walk.limit:
            walk.full = True
            break
        walk.depths[each.to] = depth
        walk.reached_by[each.to] = each
        new.append(each.to)
    return new


#: A search is given up after reading this many relations.
MAX_STEPS = 500_000
#: Relations read before the other end is tried, which may not be next to a hub.
FIRST_STEPS = 10_000
#: Least relations read of each vertex.
MIN_PATH_FAN = 100

_OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


@dataclass(slots=True)
class SearchEnd:
    """One end of a bidirectional search: its frontier, and by which step each vertex
    was reached.
    """

    follow: Follow
    frontier: list[Ref]
    depth: int = 0
    reached_by: dict[Ref, Step | None] = field(default_factory=dict)


@dataclass(slots=True)
class _PathSearch:
    """State of a bidirectional search."""

    seen: AccessFilter
    ends: tuple[SearchEnd, SearchEnd]
    looked_at: int = 0
    hubs: set[Ref] = field(default_factory=set)
    exhausted: bool = False

    @property
    def depth(self) -> int:
        return sum(end.depth for end in self.ends)


def find_shortest_path(
    seen: AccessFilter, source: Vertex, target: Vertex, follow: Follow, *, depth: int
) -> PathFound:
    """A path with as few steps as possible, at most `depth`; deterministic. Breadth-first from
    both ends.

    Ties prefer larger weights near the ends, then lower primary keys.
    """
    backwards = Follow(follow.rels, _OPPOSITE[follow.direction], follow.grain, follow.passages)
    search = _PathSearch(
        seen,
        (
            SearchEnd(follow, [source.ref], reached_by={source.ref: None}),
            SearchEnd(backwards, [target.ref], reached_by={target.ref: None}),
        ),
    )
    meeting = source.ref if source.ref == target.ref else _find_meeting(search, depth)
    way: list[Step] = []
    if meeting is not None:
        # Steps from source to target, each as found from its end.
        first, last = (_steps_back(end, meeting) for end in search.ends)
        way = [*reversed(first), *last]
    vertices = load_vertices(
        seen, {source.ref, target.ref, *search.hubs, *_refs_of(way)}, props=True
    )
    hubs = tuple(sorted(vertices[hub].id for hub in search.hubs if hub in vertices))
    truncated = Truncated(hubs=hubs, work=search.exhausted)
    if meeting is None or not all(ref in vertices for ref in _refs_of(way)):
        return PathFound(None, depth, truncated)
    # The steps as a sequence of vertices and links.
    passed = [source.ref]
    for each in way:
        passed.append(each.to if each.at == passed[-1] else each.at)
    ids = {ref: vertex.id for ref, vertex in vertices.items()}
    links: list[Link] = []
    for each in way:
        links += make_links([each], ids)
    assert len(passed) == len(links) + 1
    path = Path(tuple(vertices[ref] for ref in passed), tuple(links))
    return PathFound(path, depth, truncated)


def _find_meeting(search: _PathSearch, depth: int) -> Ref | None:
    """The vertex where both ends meet; None without a path."""
    while search.depth < depth and all(end.frontier for end in search.ends):
        if search.looked_at >= MAX_STEPS:
            search.exhausted = True
            return None
        end, stepped = _next_level(search)
        other = search.ends[1] if end is search.ends[0] else search.ends[0]
        new: dict[Ref, Step] = {}
        for each in sorted(
            stepped.steps, key=lambda each: (-each.weight, each.at, each.rel, each.to)
        ):
            if each.to not in end.reached_by:
                new.setdefault(each.to, each)
        end.reached_by.update(new)
        end.frontier = sorted(new)
        end.depth += 1
        meetings = [ref for ref in end.frontier if ref in other.reached_by]
        if meetings:
            return min(meetings)
    return None


def _next_level(search: _PathSearch) -> tuple[SearchEnd, StepResult]:
    """The next level of the end with the smaller frontier."""
    ends = sorted(search.ends, key=lambda end: len(end.frontier))
    for end in ends:
        stepped = _step_from(search, end, FIRST_STEPS)
        if not stepped.hubs:
            return end, stepped
    stepped = _step_from(search, ends[0], MAX_STEPS - search.looked_at)
    search.hubs |= stepped.hubs
    return ends[0], stepped


def _step_from(search: _PathSearch, end: SearchEnd, most: int) -> StepResult:
    fan = max(MIN_PATH_FAN, most // len(end.frontier))
    stepped = step(search.seen, end.frontier, end.follow, fan=fan, mentions=most)
    search.looked_at += len(stepped.steps)
    return stepped


def _steps_back(end: SearchEnd, ref: Ref) -> list[Step]:
    steps: list[Step] = []
    while (by := end.reached_by[ref]) is not None:
        steps.append(by)
        ref = by.at
    return steps


def _refs_of(way: list[Step]) -> set[Ref]:
    return {ref for each in way for ref in (each.at, each.to)}


#: Relations read per level, as a multiple of the maximum of vertices, divided among its start
#: vertices, …
SUBGRAPH_STEPS_PER_VERTEX = 6
#: … and at least this many of each.
MIN_SUBGRAPH_FAN = 10
#: Candidates compared by rarity, as a multiple of the free places.
COMPARED_FACTOR = 1.5


@dataclass(slots=True)
class ChosenVertices:
    """Vertices chosen so far, in order. `beside`: relations of requested vertices to others."""

    vertices: dict[Ref, None]
    beside: Counter[Ref] = field(default_factory=Counter)
    hubs: set[Ref] = field(default_factory=set)
    full: bool = False


def subgraph_around(
    seen: AccessFilter,
    starts: Sequence[Vertex],
    follow: Follow,
    *,
    hops: int,
    cap: int,
    props: bool = False,
    missing: Sequence[str] = (),
) -> Subgraph:
    """Vertices at most `hops` steps from `starts`, at most `cap` including these, and
    all relations among them.
    """
    frontier = list(dict.fromkeys(start.ref for start in starts))
    chosen = ChosenVertices(dict.fromkeys(frontier))
    for _ in range(hops):
        if not frontier or chosen.full:
            break
        room = cap - len(chosen.vertices)
        share = SUBGRAPH_STEPS_PER_VERTEX * cap // len(frontier)
        fan = max(MIN_SUBGRAPH_FAN, min(share, int(COMPARED_FACTOR * room) + 1))
        stepped = step(seen, frontier, follow, fan=fan, visited=chosen.vertices.keys())
        chosen.hubs |= stepped.hubs
        if not chosen.beside:
            chosen.beside.update(each.at for each in stepped.steps)
        steps = [each for each in stepped.steps if each.to not in chosen.vertices]
        frontier = _most_relevant(seen, chosen, steps, room=room)
        chosen.vertices |= dict.fromkeys(frontier)
    vertices = load_vertices(seen, chosen.vertices, props=props)
    shown = {ref: vertices[ref] for ref in chosen.vertices if ref in vertices}
    links = make_links(
        steps_between(seen, shown.keys(), follow), {ref: vertex.id for ref, vertex in shown.items()}
    )
    return Subgraph(
        vertices=tuple(shown.values()),
        links=links,
        degrees=_degrees(starts, chosen.beside, links),
        missing=tuple(missing),
        truncated=Truncated(
            limit=chosen.full,
            hubs=tuple(sorted(shown[hub].id for hub in chosen.hubs if hub in shown)),
        ),
    )


def _degrees(
    starts: Sequence[Vertex], neighbour_counts: Counter[Ref], links: Sequence[Link]
) -> dict[str, int]:
    """Number of `links` of each vertex; for requested ones, of all their relations."""
    told = Counter(end for link in links for end in {link.source, link.target})
    first = {start.id for start in starts}
    ends = [{link.source, link.target} for link in links]
    among = Counter(end for both in ends if both <= first for end in both)
    return told | Counter(
        {start.id: among[start.id] + neighbour_counts[start.ref] for start in starts}
    )


def _most_relevant(
    seen: AccessFilter, chosen: ChosenVertices, steps: Iterable[Step], *, room: int
) -> list[Ref]:
    """The closest vertices, by weight and rarity."""
    # Closeness of each vertex to the start vertices. A weight counts relative to the largest of its
    # start and relation: mention counts and callers' weights have no common scale.
    steps = list(steps)
    largest: dict[tuple[Ref, str], float] = defaultdict(float)
    for each in steps:
        largest[each.at, each.rel] = max(largest[each.at, each.rel], each.weight)
    near: dict[Ref, float] = defaultdict(float)
    for each in steps:
        most = largest[each.at, each.rel]
        near[each.to] += each.weight / most if most else 1.0
    near = dict(near)
    ranked = sorted(near, key=lambda ref: (-near[ref], ref))
    if len(ranked) <= room:
        return ranked
    chosen.full = True
    compared = ranked[: int(room * COMPARED_FACTOR)]
    common = capped_degrees(seen, compared)
    rarity = {ref: 1 / log2(2 + common[ref]) for ref in compared}
    return sorted(compared, key=lambda ref: (-near[ref] * rarity[ref], ref))[:room]
