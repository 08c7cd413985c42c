"""One step from a set of vertices: all their neighbours in one SQL statement. Begin with `step`.

Stored relations and those implied by documents are arms of one UNION. Each vertex yields a
bounded number of neighbours, those with the largest weight, so that a hub costs no more than
others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput, NotFound
from graph.models import Mention
from graph.reading.results import Link
from graph.reading.vertices import (
    DOCUMENT_LABEL,
    PASSAGE_LABEL,
    Kind,
    Ref,
    Vertex,
    fetch_rows,
    load_sql,
    resolve,
)
from graph.scopes import AccessFilter, Parameters

Direction = Literal["both", "out", "in"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
Grain = Literal["document", "chunk"]
GRAINS: tuple[Grain, ...] = ("document", "chunk")


@dataclass(frozen=True, slots=True)
class Follow:
    """Which relations to follow, and to which labels; empty means all.

    With `grain` document, nodes are mentioned by documents, and by those `passages` (primary
    keys) that were requested.
    """

    rels: tuple[str, ...] = ()
    direction: Direction = "both"
    grain: Grain = "document"
    passages: frozenset[int] = frozenset()
    labels: tuple[str, ...] = ()


_NUMBERED_ARM = "SELECT {number}, arm.* FROM (\n{arm}\n) AS arm"

#: Names the columns, and there is always an arm.
_EMPTY_ARM = """SELECT NULL::text AS kind, NULL::bigint AS id, NULL::text AS rel,
       0::float8 AS weight,
       TRUE AS outgoing, NULL::text AS to_kind, NULL::bigint AS to_id, NULL::bigint AS edge_id,
       NULL::text AS origin, 0::bigint AS scanned
WHERE FALSE"""


class StepStatement(NamedTuple):
    """The SQL of a step from vertices of these `kinds`. `inside`: only to marked vertices, instead
    of to others.
    """

    seen: AccessFilter
    kinds: frozenset[Kind]
    follow: Follow
    inside: bool = False

    def sql(self) -> str:
        """Rows: number of the arm, start (kind, key), relation, weight, whether along it, end
        (kind, key), edge id, origin, and the number of mentions the arm scanned.
        """
        arms = [_EMPTY_ARM, *self._edge_arms(), *self._content_arms(), *self._mention_arms()]
        numbered = [_NUMBERED_ARM.format(number=number, arm=arm) for number, arm in enumerate(arms)]
        return "\n".join(("WITH", load_sql("step_start"), "\nUNION ALL\n".join(numbered)))

    def _goes(self, *, outgoing: bool) -> bool:
        return self.follow.direction in ("both", "out" if outgoing else "in")

    def _follows(self, rel: str, start: Kind, end: Kind, *, outgoing: bool) -> bool:
        """Whether it follows `rel` between vertices of these kinds, in this direction."""
        rels, labels = self.follow.rels, self.follow.labels
        label = {"document": DOCUMENT_LABEL, "chunk": PASSAGE_LABEL}.get(end)
        return (
            start in self.kinds
            and (not rels or rel in rels)
            and self._goes(outgoing=outgoing)
            and (not labels or label is None or label in labels)
        )

    def _reach(self, column: str, marked: Literal["nodes", "documents", "chunks", "rows"]) -> str:
        """Condition on the primary key of the end of the step."""
        is_marked = f"{column} = ANY(%(marked_{marked})s::bigint[])"
        return is_marked if self.inside else f"NOT {is_marked}"

    @property
    def _labelled(self) -> str:
        """Condition on the row of a node."""
        return "other.labels && %(labels)s::varchar[]" if self.follow.labels else "TRUE"

    def _edge_arms(self) -> Iterator[str]:
        # The row at the end may be that of a document or passage.
        kinds = (("document_id", DOCUMENT_LABEL), ("chunk_id", PASSAGE_LABEL))
        content = [
            f"other.{column} IS NOT NULL" for column, label in kinds if label in self.follow.labels
        ]
        for outgoing, near, far in ((True, "source", "target"), (False, "target", "source")):
            if not self._goes(outgoing=outgoing):
                continue
            rels = "edge.rel = ANY(%(rels)s::text[])" if self.follow.rels else "TRUE"
            if self.follow.direction == "both" and not outgoing:
                rels += " AND edge.source_id <> edge.target_id"  # listed by the other arm
            yield load_sql("step_edges").format(
                outgoing=outgoing,
                near=near,
                far=far,
                reach=self._reach(f"edge.{far}_id", "rows"),
                rels=rels,
                labels=f"({' OR '.join([self._labelled, *content])})",
                edge=self.seen.edge("edge"),
                # marked ones were seen before
                other="TRUE" if self.inside else self.seen.node("other"),
            )

    def _content_arms(self) -> Iterator[str]:
        seen = self.seen
        chunk, other = seen.passage("chunk"), seen.passage("other")
        if self._follows("HAS_CHUNK", "document", "chunk", outgoing=True):
            reach = self._reach("chunk.id", "chunks")
            yield load_sql("step_has_chunk_out").format(chunk=chunk, reach=reach)
        if self._follows("HAS_CHUNK", "chunk", "document", outgoing=False):
            yield load_sql("step_has_chunk_in").format(chunk=chunk)
        for outgoing in (True, False):
            if self._follows("NEXT", "chunk", "chunk", outgoing=outgoing):
                yield load_sql("step_next").format(
                    outgoing=outgoing, sign="+" if outgoing else "-", chunk=chunk, other=other
                )
            if self._follows("VERSION_OF", "document", "document", outgoing=outgoing):
                yield load_sql("step_version_of").format(
                    outgoing=outgoing,
                    older="document" if outgoing else "other",
                    newer="other" if outgoing else "document",
                    document=seen.listed("document"),
                    other=seen.listed("other"),
                )
            if self._follows("REFERS_TO", "document", "document", outgoing=outgoing):
                kinds = {"link": Mention.Kind.LINK.value, "itself": Mention.Kind.SELF.value}
                near, far = ("link", "itself") if outgoing else ("itself", "link")
                yield load_sql("step_refers_to").format(
                    outgoing=outgoing,
                    near=near,
                    near_kind=kinds[near],
                    far=far,
                    far_kind=kinds[far],
                    here=seen.passage("here"),
                    there=seen.passage("there"),
                    reach=self._reach("led.id", "documents"),
                )

    def _mention_arms(self) -> Iterator[str]:
        chunk, labels, grain = self.seen.passage("chunk"), self._labelled, self.follow.grain
        if grain == "document":
            if self._follows("MENTIONS", "document", "node", outgoing=True):
                yield load_sql("step_mentions_of_document").format(
                    chunk=chunk, labels=labels, reach=self._reach("named.id", "nodes")
                )
            if self._follows("MENTIONS", "node", "document", outgoing=False):
                yield load_sql("step_documents_mentioning").format(
                    chunk=chunk, reach=self._reach("naming.id", "documents")
                )
        if grain == "chunk" or self.follow.passages:
            if self._follows("MENTIONS", "chunk", "node", outgoing=True):
                yield load_sql("step_mentions_of_chunk").format(
                    chunk=chunk, labels=labels, reach=self._reach("mention.node_id", "nodes")
                )
            if self._follows("MENTIONS", "node", "chunk", outgoing=False):
                some = "chunk.id = ANY(%(passages)s::bigint[])"
                yield load_sql("step_chunks_mentioning").format(
                    chunk=chunk,
                    passages="TRUE" if grain == "chunk" else some,
                    reach=self._reach("chunk.id", "chunks"),
                )


#: Mentions that a step scans, divided among its vertices, …
MAX_MENTIONS = 20_000
#: … and at least this many of each.
MIN_MENTIONS = 100


class Step(NamedTuple):
    """A relation of the vertex `at`; `outgoing`: it leads to `to`. `edge` is its row,
    None if derived.
    """

    at: Ref
    rel: str
    weight: float
    outgoing: bool
    to: Ref
    edge: int | None
    origin: str

    @property
    def source(self) -> Ref:
        """The vertex where the relation begins."""
        return self.at if self.outgoing else self.to

    @property
    def target(self) -> Ref:
        """The vertex where the relation ends."""
        return self.to if self.outgoing else self.at


def step(
    seen: AccessFilter,
    vertices: Iterable[Ref],
    follow: Follow,
    *,
    fan: int,
    visited: AbstractSet[Ref] = frozenset(),
    mentions: int = MAX_MENTIONS,
) -> tuple[list[Step], set[Ref]]:
    """Neighbours of `vertices`, which must be visible, except `visited`; and the hubs, which have
    more than were read.

    Per vertex and kind of relation at most `fan`, by largest weight, then lower primary key. At
    most `mentions` are scanned.
    """
    here = _keys_by_kind(vertices)
    marked = _keys_by_kind(visited)
    statement = StepStatement(seen, _kinds(here), follow).sql()
    scan = _scan_limit(here, mentions)
    given = _parameters(here, follow, fan, scan) | _marked_parameters(marked)
    return _read_steps(fetch_rows(statement, seen.parameters | given), fan, scan)


def steps_between(seen: AccessFilter, vertices: AbstractSet[Ref], follow: Follow) -> list[Step]:
    """All relations among `vertices`, each from its source."""
    here = _keys_by_kind(vertices)
    passages = frozenset(here["chunk"])
    among = replace(follow, direction="out", grain="document", passages=passages, labels=())
    fan, scan = len(vertices) * MAX_PARALLEL, _scan_limit(here, MAX_MENTIONS_BETWEEN)
    given = _parameters(here, among, fan, scan) | _marked_parameters(here)
    # Rows of edges' ends that stand for these documents and passages.
    if here["document"] or here["chunk"]:
        ends = {"documents": here["document"], "chunks": here["chunk"]}
        given["marked_rows"] = here["node"] + [pk for (pk,) in fetch_rows(_ROWS_SQL, ends)]
    statement = StepStatement(seen, _kinds(here), among, inside=True).sql()
    steps, _ = _read_steps(fetch_rows(statement, seen.parameters | given), fan, scan)
    return [each for each in steps if each.to in vertices]


#: Most mentions scanned among vertices of a subgraph.
MAX_MENTIONS_BETWEEN = 200_000
#: Upper bound of the average number of relations between two vertices.
MAX_PARALLEL = 10

_DEGREES_SQL = "SELECT step.kind, step.id, count(*) FROM (\n{step}\n) AS step GROUP BY 1, 2"

_ROWS_SQL = """
    SELECT id FROM graph_node
    WHERE document_id = ANY(%(documents)s::bigint[]) OR chunk_id = ANY(%(chunks)s::bigint[])
"""


def _kinds(here: Mapping[Kind, list[int]]) -> frozenset[Kind]:
    return frozenset(kind for kind, pks in here.items() if pks)


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
        "fan": fan + 1,  # one more, to know if there are more
        "scan": scan,
    }


def _marked_parameters(marked: dict[Kind, list[int]]) -> Parameters:
    return {f"marked_{kind}s": pks for kind, pks in marked.items()} | {
        "marked_rows": marked["node"]
    }


def _read_steps(
    found: Iterable[tuple[Any, ...]], fan: int, scan: int
) -> tuple[list[Step], set[Ref]]:
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
    return steps, hubs


def _keys_by_kind(vertices: Iterable[Ref]) -> dict[Kind, list[int]]:
    pks: dict[Kind, list[int]] = {"node": [], "document": [], "chunk": []}
    for kind, pk in vertices:
        pks[kind].append(pk)
    return {kind: sorted(found) for kind, found in pks.items()}


def _scan_limit(here: dict[Kind, list[int]], most: int) -> int:
    return max(MIN_MENTIONS, most // max(1, sum(map(len, here.values()))))


def make_links(steps: Iterable[Step], ids: Mapping[Ref, str]) -> tuple[Link, ...]:
    """The distinct relations of these steps, between vertices in `ids` and in that order.

    Of duplicates the one with the larger weight is kept.
    """
    links: dict[tuple[str, str, str], Link] = {}
    for each in steps:
        if each.source not in ids or each.target not in ids:
            continue
        link = Link(ids[each.source], each.rel, ids[each.target], each.weight, each.origin)
        name = (link.source, link.rel, link.target)
        if name not in links or links[name].weight < link.weight:
            links[name] = link
    place = {each: number for number, each in enumerate(ids.values())}
    return tuple(
        links[name]
        for name in sorted(links, key=lambda name: (place[name[0]], name[1], place[name[2]]))
    )


#: Cap per kind of relation.
MAX_DEGREE = 20
#: Cap where access must be checked row by row.
MAX_RESTRICTED_DEGREE = 10


def capped_degrees(seen: AccessFilter, vertices: Sequence[Ref]) -> dict[Ref, int]:
    """Number of relations of each vertex, capped.

    Without access lists, index entries of nodes are counted without access checks, and documents
    and passages get the cap.
    """
    if seen.restricted and fetch_rows(load_sql("keeps_secrets"), seen.parameters) == [(True,)]:
        here = _keys_by_kind(vertices)
        follow = Follow(passages=frozenset(here["chunk"]))
        cap = MAX_RESTRICTED_DEGREE
        given = _parameters(here, follow, cap, scan=cap) | _marked_parameters(_keys_by_kind(()))
        step = StepStatement(seen, _kinds(here), follow).sql()
        counted = {
            Ref(kind, pk): min(cap, count)
            for kind, pk, count in fetch_rows(
                _DEGREES_SQL.format(step=step), seen.parameters | given
            )
        }
        return {ref: counted.get(ref, 0) for ref in vertices}
    nodes = [ref.pk for ref in vertices if ref.kind == "node"]
    given = seen.parameters | {"nodes": nodes, "most": MAX_DEGREE}
    counted = {Ref("node", pk): count for pk, count in fetch_rows(load_sql("commonness"), given)}
    return {ref: counted.get(ref, MAX_DEGREE) for ref in vertices}


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
        raise NotFound(
            gettext(
                "“{shown}” is not in the graph ({field}). Search for the node by its name."
            ).format(shown=shown, field=field)
        )
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
        raise InvalidInput(
            gettext("{field} has at most {limit} names.").format(field=field, limit=MAX_NAMES),
            field=field,
        )
    # one that no row can have is followed by nothing
    return tuple(name.replace("\0", "\ufffd").encode(errors="replace").decode() for name in names)


def check_range(value: int, most: int, *, field: str, least: int = 1) -> None:
    """Raises InvalidInput unless the value is in the range."""
    if not least <= value <= most:
        raise InvalidInput(
            gettext("{field} must be from {least} to {most}.").format(
                field=field, least=least, most=number_format(most, force_grouping=True)
            ),
            field=field,
        )


def check_choice(values: Sequence[str], possible: Sequence[str], *, field: str) -> None:
    """Raises InvalidInput unless all values are possible."""
    for value in values:
        if value not in possible:
            raise InvalidInput(
                gettext("There is no {field} “{value}”. Use {names}.").format(
                    field=field, value=value, names=", ".join(possible)
                ),
                field=field,
            )
