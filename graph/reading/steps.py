"""One step from some vertices: everything beside them, in one statement.

Relations that rows tell and those that documents imply are arms of one UNION. Each vertex has a
bounded number of neighbours, those with the largest weight, so that a hub costs what others cost.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from graph.reading.arms import Direction, Grain, Wanted, step_statement
from graph.reading.statements import rows
from graph.reading.vertices import Kind, Ref
from graph.scopes import Parameters, Sight

#: At so many mentions does a step have a look, divided among its vertices, …
MOST_MENTIONS = 20_000
#: … and at so many of each at least.
FEWEST_MENTIONS = 100


class Step(NamedTuple):
    """A relation of the vertex `at`; `outgoing` where it leads from there to `to`. `edge` is its
    row, None where it is derived, and `origin` says so."""

    at: Ref
    rel: str
    weight: float
    outgoing: bool
    to: Ref
    edge: int | None
    origin: str

    @property
    def source(self) -> Ref:
        """Where the relation begins."""
        return self.at if self.outgoing else self.to

    @property
    def target(self) -> Ref:
        """Where it ends."""
        return self.to if self.outgoing else self.at


@dataclass(frozen=True, slots=True)
class Follow:
    """Which relations count, and to what they may lead. No `rels` or `labels` are all of them.

    With `grain` document a node is mentioned by documents; by passages, too, if they are among
    `passages` (primary keys): those that somebody asked for by name.
    """

    rels: tuple[str, ...] = ()
    direction: Direction = "both"
    grain: Grain = "document"
    passages: frozenset[int] = frozenset()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stepped:
    """All steps from some vertices, and those vertices that have more than were looked at."""

    steps: tuple[Step, ...]
    hubs: frozenset[Ref]


def step(
    seen: Sight,
    vertices: Iterable[Ref],
    follow: Follow,
    *,
    fan: int,
    visited: AbstractSet[Ref] = frozenset(),
    mentions: int = MOST_MENTIONS,
) -> Stepped:
    """What is beside `vertices`, which may be seen, except for `visited`.

    Of each vertex and kind of relation at most `fan`, those with the largest weight. Among equal
    weights those of the lower primary key: the same each time. At most `mentions` are counted.
    """
    here = _by_kind(vertices)
    marked = _by_kind(visited)
    statement = step_statement(seen, _wanted(here, follow))
    scan = _scan(here, mentions)
    given = _parameters(here, follow, fan, scan) | _marked(marked, marked["node"])
    return _read(rows(statement, seen.parameters | given), fan, scan)


def between(seen: Sight, vertices: AbstractSet[Ref], follow: Follow) -> tuple[Step, ...]:
    """All relations among `vertices`, each from its source."""
    here = _by_kind(vertices)
    passages = frozenset(here["chunk"])
    all_among = replace(follow, direction="out", grain="document", passages=passages, labels=())
    wanted = _wanted(here, all_among)._replace(inside=True)
    fan, scan = len(vertices) * MOST_PARALLEL, _scan(here, MOST_MENTIONS_BETWEEN)
    given = _parameters(here, all_among, fan, scan)
    given |= _marked(here, here["node"] + _rows_of(here))
    found = rows(step_statement(seen, wanted), seen.parameters | given)
    stepped = _read(found, fan, scan)
    return tuple(each for each in stepped.steps if each.to in vertices)


def degrees(seen: Sight, vertices: Iterable[Ref], *, most: int) -> dict[Ref, int]:
    """How many relations each of `vertices` has, counted no further than `most`."""
    here = _by_kind(vertices)
    follow = Follow(passages=frozenset(here["chunk"]))
    given = _parameters(here, follow, most, scan=most) | _marked(_by_kind(()), [])
    counted = _DEGREES.format(step=step_statement(seen, _wanted(here, follow)))
    found = {Ref(kind, pk): count for kind, pk, count in rows(counted, seen.parameters | given)}
    return {
        Ref(kind, pk): min(most, found.get(Ref(kind, pk), 0))
        for kind, pks in here.items()
        for pk in pks
    }


#: What is drawn among documents is complete, up to this.
MOST_MENTIONS_BETWEEN = 200_000
#: Two vertices have fewer different relations than this, on average over a drawn graph.
MOST_PARALLEL = 10

_DEGREES = "SELECT step.kind, step.id, count(*) FROM (\n{step}\n) AS step GROUP BY 1, 2"

_ROWS = """
    SELECT id FROM graph_node
    WHERE document_id = ANY(%(documents)s::bigint[]) OR chunk_id = ANY(%(chunks)s::bigint[])
"""


def _rows_of(here: dict[Kind, list[int]]) -> list[int]:
    """Rows on which edges of these documents and passages hang."""
    if not here["document"] and not here["chunk"]:
        return []
    given = {"documents": here["document"], "chunks": here["chunk"]}
    return [pk for (pk,) in rows(_ROWS, given)]


def _wanted(here: dict[Kind, list[int]], follow: Follow) -> Wanted:
    return Wanted(
        kinds=frozenset(kind for kind, pks in here.items() if pks),
        rels=follow.rels,
        labels=follow.labels,
        direction=follow.direction,
        grain=follow.grain,
        passages=bool(follow.passages),
    )


def _parameters(here: dict[Kind, list[int]], follow: Follow, fan: int, scan: int) -> Parameters:
    chunks = here["chunk"]
    named = [pk for pk in chunks if pk in follow.passages]
    return {
        "nodes": here["node"],
        "documents": here["document"],
        "chunks": chunks,
        "passages": sorted(follow.passages),
        "passages_here": chunks if follow.grain == "chunk" else named,
        "rels": list(follow.rels),
        "labels": list(follow.labels),
        "fan": fan + 1,  # tells whether there is more
        "scan": scan,
    }


def _marked(marked: dict[Kind, list[int]], node_rows: list[int]) -> Parameters:
    return {
        "marked_nodes": marked["node"],
        "marked_documents": marked["document"],
        "marked_chunks": marked["chunk"],
        "marked_rows": node_rows,
    }


def _read(found: Iterable[tuple[Any, ...]], fan: int, scan: int) -> Stepped:
    steps: list[Step] = []
    hubs: set[Ref] = set()
    taken: Counter[tuple[int, Ref]] = Counter()
    for arm, kind, pk, rel, weight, outgoing, to_kind, to_pk, edge, origin, scanned in found:
        at = Ref(kind, pk)
        taken[arm, at] += 1
        if scanned >= scan or taken[arm, at] > fan:
            hubs.add(at)
        if taken[arm, at] <= fan:
            steps.append(Step(at, rel, weight, outgoing, Ref(to_kind, to_pk), edge, origin))
    return Stepped(tuple(steps), frozenset(hubs))


def _by_kind(vertices: Iterable[Ref]) -> dict[Kind, list[int]]:
    pks: dict[Kind, list[int]] = {"node": [], "document": [], "chunk": []}
    for kind, pk in vertices:
        pks[kind].append(pk)
    return {kind: sorted(found) for kind, found in pks.items()}


def _scan(here: dict[Kind, list[int]], most: int) -> int:
    return max(FEWEST_MENTIONS, most // max(1, sum(map(len, here.values()))))
