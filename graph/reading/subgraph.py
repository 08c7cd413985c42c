"""A part of the graph that can be looked at: what is around some vertices, the relevant first."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2

from graph.reading.commonness import commonness
from graph.reading.linking import links_of
from graph.reading.results import Link, Subgraph, Truncated
from graph.reading.steps import Follow, Step, between, step
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: A level looks at so many times as many relations as there may be vertices, divided among those
#: that it starts from, …
STEPS_A_PLACE = 6
#: … and at so many of each at least.
MIN_FAN = 10
#: So many times as many as there is room for are compared by how rare they are.
COMPARED = 1.5


@dataclass(slots=True)
class Chosen:
    """The vertices of the part so far, in order, and what was left out. `beside` is how many
    relations lead from those that were asked for to others."""

    vertices: dict[Ref, None]
    beside: Counter[Ref] = field(default_factory=Counter)
    hubs: set[Ref] = field(default_factory=set)
    full: bool = False


def subgraph_around(
    seen: Sight,
    starts: Sequence[Vertex],
    follow: Follow,
    *,
    hops: int,
    cap: int,
    props: bool = False,
    missing: Sequence[str] = (),
) -> Subgraph:
    """What is at most `hops` steps from any of `starts`: at most `cap` vertices, `starts` among
    them, and all relations among these that `follow` lets count."""
    chosen = _choose(seen, starts, follow, hops=hops, cap=cap)
    vertices = load(seen, chosen.vertices, props=props)
    shown = {ref: vertices[ref] for ref in chosen.vertices if ref in vertices}
    links = links_of(
        between(seen, shown.keys(), follow), {ref: vertex.id for ref, vertex in shown.items()}
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
    starts: Sequence[Vertex], beside: Counter[Ref], links: Sequence[Link]
) -> dict[str, int]:
    """How many of `links` each has; of those that were asked for, how many there are in all."""
    told = Counter(end for link in links for end in {link.source, link.target})
    first = {start.id for start in starts}
    ends = [{link.source, link.target} for link in links]
    among = Counter(end for both in ends if both <= first for end in both)
    return told | Counter({start.id: among[start.id] + beside[start.ref] for start in starts})


def _choose(
    seen: Sight, starts: Sequence[Vertex], follow: Follow, *, hops: int, cap: int
) -> Chosen:
    frontier = list(dict.fromkeys(start.ref for start in starts))
    chosen = Chosen(dict.fromkeys(frontier))
    for _ in range(hops):
        if not frontier or chosen.full:
            break
        room = cap - len(chosen.vertices)
        share = STEPS_A_PLACE * cap // len(frontier)
        fan = max(MIN_FAN, min(share, int(COMPARED * room) + 1))
        stepped = step(seen, frontier, follow, fan=fan, visited=chosen.vertices.keys())
        chosen.hubs |= stepped.hubs
        if not chosen.beside:
            chosen.beside.update(each.at for each in stepped.steps)
        steps = [each for each in stepped.steps if each.to not in chosen.vertices]
        frontier = _most_relevant(seen, chosen, steps, room=room)
        chosen.vertices |= dict.fromkeys(frontier)
    return chosen


def _most_relevant(seen: Sight, chosen: Chosen, steps: Iterable[Step], *, room: int) -> list[Ref]:
    """Those that have most to do with what is there: by weight, and by having little to do with
    anything else."""
    near = _nearness(steps)
    ranked = sorted(near, key=lambda ref: (-near[ref], ref))
    if len(ranked) <= room:
        return ranked
    chosen.full = True
    compared = ranked[: int(room * COMPARED)]
    common = commonness(seen, compared)
    rarity = {ref: 1 / log2(2 + common[ref]) for ref in compared}
    return sorted(compared, key=lambda ref: (-near[ref] * rarity[ref], ref))[:room]


def _nearness(steps: Iterable[Step]) -> dict[Ref, float]:
    """How much each has to do with those that the steps start from.

    A weight counts as its share of the largest that its start has for such a relation: numbers of
    mentions and weights of a caller are not on one scale.
    """
    steps = list(steps)
    largest: dict[tuple[Ref, str], float] = defaultdict(float)
    for each in steps:
        largest[each.at, each.rel] = max(largest[each.at, each.rel], each.weight)
    near: dict[Ref, float] = defaultdict(float)
    for each in steps:
        most = largest[each.at, each.rel]
        near[each.to] += each.weight / most if most else 1.0
    return dict(near)
