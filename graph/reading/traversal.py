"""Walks through the graph: breadth-first traversal, shortest paths, subgraph around some vertices.

Each level is one SQL statement that excludes vertices visited before, which a recursive query
cannot do.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log2

from django.utils.translation import gettext

from common.errors import InvalidInput, NotFound
from common.replicas import reads_from_replica
from common.translation import format_number
from graph.reading.results import Link, Page, Path, Reached, Subgraph, Truncated
from graph.reading.steps import (
    MAX_DEPTH,
    MAX_HOPS,
    MAX_REACHED,
    MAX_VERTICES,
    Direction,
    Follow,
    Grain,
    Step,
    capped_degrees,
    check_range,
    make_follow,
    make_links,
    require_vertex,
    step,
    steps_between,
)
from graph.reading.vertices import Ref, Vertex, load_vertices, resolve
from graph.scopes import AccessFilter, GraphScope

#: Relations read per level, as a multiple of the free places, divided among its start vertices, …
TRAVERSAL_STEPS_PER_VERTEX = 3
#: … and at least this many of each.
MIN_TRAVERSAL_FAN = 25


@reads_from_replica
def traverse(
    *,
    scope: GraphScope,
    start: str,
    max_depth: int = 2,
    rels: Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
    limit: int = 200,
    props: bool = False,
) -> Page[Reached]:
    """Vertices at most `max_depth` steps from `start`, nearest first, at most `limit`, including
    it.

    Raises NotFound and InvalidInput.
    """
    check_range(max_depth, MAX_DEPTH, field="max_depth", least=0)
    check_range(limit, MAX_REACHED, field="limit")
    seen = AccessFilter(scope)
    vertex = require_vertex(seen, start, field="start")
    follow = make_follow([vertex], rels, direction, grain)
    depths, reached_by = {vertex.ref: 0}, dict[Ref, Step]()
    all_hubs, full, frontier = set[Ref](), False, [vertex.ref]
    for depth in range(1, max_depth + 1):
        if not frontier or full:
            break
        left = limit - len(depths)
        # Several relations may lead to the same: no less is looked at where there is little room.
        fan = max(
            MIN_TRAVERSAL_FAN, min(left + 1, TRAVERSAL_STEPS_PER_VERTEX * left // len(frontier))
        )
        steps, hubs = step(seen, frontier, follow, fan=fan, visited=depths.keys())
        all_hubs |= hubs
        places = {ref: place for place, ref in enumerate(depths)}
        steps.sort(key=lambda each: (-each.weight, places[each.at], each.rel, each.to))
        new: dict[Ref, Step] = {}
        for each in steps:
            if each.to not in depths:
                new.setdefault(each.to, each)
        full = len(new) > left
        frontier = list(new)[:left]
        depths |= dict.fromkeys(frontier, depth)
        reached_by |= {ref: new[ref] for ref in frontier}
    vertices = load_vertices(seen, [*depths, *all_hubs], props=props)
    reached = []
    for ref, depth in depths.items():
        by = reached_by.get(ref)
        # vertices deleted between two statements are left out
        if ref in vertices and (by is None or by.at in vertices):
            last = (vertices[by.at].id, by.rel, by.outgoing) if by else ()
            reached.append(Reached(vertices[ref], depth, *last))
    truncated = Truncated(limit=full, hubs=_known_ids(all_hubs, vertices))
    return Page(vertex, tuple(reached), truncated=truncated)


def _known_ids(refs: Iterable[Ref], vertices: dict[Ref, Vertex]) -> tuple[str, ...]:
    return tuple(sorted(vertices[ref].id for ref in refs if ref in vertices))


#: A search is given up after reading this many relations.
MAX_STEPS = 500_000
#: Relations read before the other end is tried, which may not be next to a hub.
FIRST_STEPS = 10_000
#: Least relations read of each vertex.
MIN_PATH_FAN = 100

_OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


@reads_from_replica
def shortest_path(
    *,
    scope: GraphScope,
    source: str,
    target: str,
    max_depth: int = 6,
    rels: Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
) -> Path:
    """A path with as few steps as possible; deterministic. Breadth-first from both ends.

    `direction`: `out` follows relations forwards, `in` backwards. Ties prefer larger weights near
    the ends, then lower primary keys. Raises NotFound and InvalidInput.
    """
    check_range(max_depth, MAX_DEPTH, field="max_depth", least=0)
    seen = AccessFilter(scope)
    first = require_vertex(seen, source, field="source")
    last = require_vertex(seen, target, field="target")
    follow = make_follow([first, last], rels, direction, grain)
    search = _PathSearch(seen, follow, first.ref, last.ref)
    way = search.run(max_depth)
    refs = {first.ref, last.ref} | {ref for each in way or () for ref in (each.at, each.to)}
    vertices = load_vertices(seen, refs | search.hubs, props=True)
    truncated = Truncated(hubs=_known_ids(search.hubs, vertices), work=search.given_up)
    if way is None or not refs <= vertices.keys():
        return Path((), (), max_depth, truncated)
    # The steps as a sequence of vertices and links.
    passed = [first.ref]
    for each in way:
        passed.append(each.to if each.at == passed[-1] else each.at)
    ids = {ref: vertex.id for ref, vertex in vertices.items()}
    links = tuple(link for each in way for link in make_links([each], ids))
    return Path(tuple(vertices[ref] for ref in passed), links, max_depth, truncated)


class _SearchEnd:
    """One end of the search: its frontier, and by which step each vertex was reached."""

    def __init__(self, follow: Follow, start: Ref) -> None:
        self.follow = follow
        self.frontier = [start]
        self.reached_by: dict[Ref, Step | None] = {start: None}

    def steps_back(self, ref: Ref) -> list[Step]:
        """Steps from here back to the start."""
        steps: list[Step] = []
        while (by := self.reached_by[ref]) is not None:
            steps.append(by)
            ref = by.at
        return steps


class _PathSearch:
    """A bidirectional search. `hubs` were read in part; `given_up`: too much to look at."""

    def __init__(self, seen: AccessFilter, follow: Follow, source: Ref, target: Ref) -> None:
        backwards = replace(follow, direction=_OPPOSITE[follow.direction])
        self.ends = _SearchEnd(follow, source), _SearchEnd(backwards, target)
        self.hubs: set[Ref] = set()
        self.given_up = False
        self._seen = seen
        self._looked_at = 0

    def run(self, max_depth: int) -> list[Step] | None:
        """Steps from source to target, each as found from its end; None without a path."""
        first, last = self.ends
        meetings = first.frontier if first.frontier == last.frontier else []
        for _ in range(max_depth):
            if meetings or not (first.frontier and last.frontier):
                break
            if self._looked_at >= MAX_STEPS:
                self.given_up = True
                return None
            end, steps = self._next_level()
            steps.sort(key=lambda each: (-each.weight, each.at, each.rel, each.to))
            new: dict[Ref, Step] = {}
            for each in steps:
                if each.to not in end.reached_by:
                    new.setdefault(each.to, each)
            end.reached_by.update(new)
            end.frontier = sorted(new)
            other = last if end is first else first
            meetings = [ref for ref in end.frontier if ref in other.reached_by]
        if not meetings:
            return None
        meeting = min(meetings)
        return [*reversed(first.steps_back(meeting)), *last.steps_back(meeting)]

    def _next_level(self) -> tuple[_SearchEnd, list[Step]]:
        """The next level of the end with the smaller frontier."""
        ends = sorted(self.ends, key=lambda end: len(end.frontier))
        for end in ends:
            steps, hubs = self._step_from(end, FIRST_STEPS)
            if not hubs:
                return end, steps
        steps, hubs = self._step_from(ends[0], MAX_STEPS - self._looked_at)
        self.hubs |= hubs
        return ends[0], steps

    def _step_from(self, end: _SearchEnd, most: int) -> tuple[list[Step], set[Ref]]:
        fan = max(MIN_PATH_FAN, most // len(end.frontier))
        steps, hubs = step(self._seen, end.frontier, end.follow, fan=fan, mentions=most)
        self._looked_at += len(steps)
        return steps, hubs


#: Relations read per level, as a multiple of the maximum of vertices, divided among its start
#: vertices, …
SUBGRAPH_STEPS_PER_VERTEX = 6
#: … and at least this many of each.
MIN_SUBGRAPH_FAN = 10
#: Candidates compared by rarity, as a multiple of the free places.
COMPARED_FACTOR = 1.5


@reads_from_replica
def subgraph(
    *,
    scope: GraphScope,
    ids: Sequence[str],
    hops: int = 1,
    cap: int = 200,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
    grain: Grain = "document",
    props: bool = False,
) -> Subgraph:
    """Vertices at most `hops` steps from any of `ids`, at most `cap`, and all relations among
    them. With `labels`, only vertices with one of them, and `ids`.

    Raises NotFound where none of `ids` exists, and InvalidInput.
    """
    check_range(hops, MAX_HOPS, field="hops", least=0)
    check_range(cap, MAX_VERTICES, field="cap")
    asked = list(dict.fromkeys(ids))
    if len(asked) > cap:
        raise InvalidInput(
            gettext(
                "{count} ids do not fit into a limit of {cap} nodes. Raise cap, or send fewer ids."
            ).format(cap=format_number(cap), count=format_number(len(asked))),
            field="ids",
        )
    seen = AccessFilter(scope)
    found = resolve(seen, asked, props=props)
    if not found:
        raise NotFound(
            gettext("None of these ids is in the graph. Search for the node by its name.")
        )
    starts = list(found.values())
    follow = make_follow(starts, rels, "both", grain, labels)
    frontier = list(dict.fromkeys(start.ref for start in starts))
    # In order: the requested vertices, then each level by relevance.
    chosen, all_hubs, full = dict.fromkeys(frontier), set[Ref](), False
    relations_of_starts: Counter[Ref] = Counter()
    for hop in range(hops):
        if not frontier or full:
            break
        room = cap - len(chosen)
        share = SUBGRAPH_STEPS_PER_VERTEX * cap // len(frontier)
        fan = max(MIN_SUBGRAPH_FAN, min(share, int(COMPARED_FACTOR * room) + 1))
        steps, hubs = step(seen, frontier, follow, fan=fan, visited=chosen.keys())
        all_hubs |= hubs
        if hop == 0:
            relations_of_starts.update(each.at for each in steps)
        frontier = _most_relevant(seen, [each for each in steps if each.to not in chosen], room)
        full = len({each.to for each in steps} - chosen.keys()) > room
        chosen |= dict.fromkeys(frontier)
    vertices = load_vertices(seen, chosen, props=props)
    shown = {ref: vertices[ref] for ref in chosen if ref in vertices}
    links = make_links(
        steps_between(seen, shown.keys(), follow), {ref: vertex.id for ref, vertex in shown.items()}
    )
    return Subgraph(
        vertices=tuple(shown.values()),
        links=links,
        degrees=_degrees(starts, relations_of_starts, links),
        missing=tuple(each for each in asked if each not in found),
        truncated=Truncated(limit=full, hubs=_known_ids(all_hubs, shown)),
    )


def _degrees(
    starts: Sequence[Vertex], relations_of_starts: Counter[Ref], links: Sequence[Link]
) -> dict[str, int]:
    """Number of `links` of each vertex; for requested ones, of all their relations."""
    first = {start.id for start in starts}
    ends = [{link.source, link.target} for link in links]
    counts = Counter(end for both in ends for end in both)
    among = Counter(end for both in ends if both <= first for end in both)
    return counts | Counter(
        {start.id: among[start.id] + relations_of_starts[start.ref] for start in starts}
    )


def _most_relevant(seen: AccessFilter, steps: Sequence[Step], room: int) -> list[Ref]:
    """The closest vertices, by weight and rarity."""
    # Closeness of each vertex to the start vertices. A weight counts relative to the largest of its
    # start and relation: mention counts and callers' weights have no common scale.
    largest: dict[tuple[Ref, str], float] = defaultdict(float)
    for each in steps:
        largest[each.at, each.rel] = max(largest[each.at, each.rel], each.weight)
    near: dict[Ref, float] = defaultdict(float)
    for each in steps:
        most = largest[each.at, each.rel]
        near[each.to] += each.weight / most if most else 1.0
    ranked = sorted(near, key=lambda ref: (-near[ref], ref))
    if len(ranked) <= room:
        return ranked
    compared = ranked[: int(room * COMPARED_FACTOR)]
    degrees = capped_degrees(seen, compared)
    rarity = {ref: 1 / log2(2 + degrees[ref]) for ref in compared}
    return sorted(compared, key=lambda ref: (-near[ref] * rarity[ref], ref))[:room]
