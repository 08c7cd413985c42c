"""The statement of one step: an arm for every relation that may lead on from some vertices."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from graph.models import Mention
from graph.reading.statements import piece
from graph.reading.vertices import DOCUMENT_LABEL, PASSAGE_LABEL, Kind
from graph.scopes import Sight

Direction = Literal["out", "in", "both"]
DIRECTIONS: tuple[Direction, ...] = ("both", "out", "in")
Grain = Literal["document", "chunk"]
GRAINS: tuple[Grain, ...] = ("document", "chunk")

_LABELLED = "other.labels && %(labels)s::varchar[]"


class Wanted(NamedTuple):
    """What a step may follow, and from what.

    `kinds` are those of the vertices it starts from. Without `rels` every relation is followed,
    without `labels` to every vertex. With `grain` document a node is mentioned by documents, and by
    passages only if there are `passages` that count. `inside`: to marked vertices only, instead of
    to all others.
    """

    kinds: frozenset[Kind]
    rels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    direction: Direction = "both"
    grain: Grain = "document"
    passages: bool = False
    inside: bool = False

    def follows(self, rel: str, start: Kind, end: Kind, *, outgoing: bool) -> bool:
        """Whether it follows `rel` from vertices of one kind to those of another, along it or
        against it."""
        return (
            start in self.kinds
            and (not self.rels or rel in self.rels)
            and self.direction in ("both", "out" if outgoing else "in")
            and self._admits(end)
        )

    def _admits(self, kind: Kind) -> bool:
        label = {"document": DOCUMENT_LABEL, "chunk": PASSAGE_LABEL}.get(kind)
        return not self.labels or label is None or label in self.labels

    def reach(self, column: str, marked: Literal["nodes", "documents", "chunks", "rows"]) -> str:
        """The condition on the primary key of what the step leads to."""
        is_marked = f"{column} = ANY(%(marked_{marked})s::bigint[])"
        return is_marked if self.inside else f"NOT {is_marked}"

    @property
    def labelled(self) -> str:
        """The condition on the row of a node."""
        return _LABELLED if self.labels else "TRUE"

    @property
    def labelled_row(self) -> str:
        """The same where the row may be that of a document or passage."""
        kinds = (("document_id", DOCUMENT_LABEL), ("chunk_id", PASSAGE_LABEL))
        also = [f"other.{column} IS NOT NULL" for column, label in kinds if label in self.labels]
        return f"({' OR '.join([self.labelled, *also])})"


def step_statement(seen: Sight, wanted: Wanted) -> str:
    """The statement of a step. Its rows: the number of the arm, from where (kind, key), by which
    relation, with what weight, whether along it, to where (kind, key), by which row, by whose word,
    and at how many mentions the arm had a look."""
    arms = [_NOTHING, *_edges(seen, wanted), *_content(seen, wanted), *_mentions(seen, wanted)]
    numbered = [_NUMBERED.format(number=number, arm=arm) for number, arm in enumerate(arms)]
    return "\n".join(("WITH", piece("step_start"), "\nUNION ALL\n".join(numbered)))


_NUMBERED = "SELECT {number}, arm.* FROM (\n{arm}\n) AS arm"

#: Names the columns, and there is always an arm.
_NOTHING = """SELECT NULL::text AS kind, NULL::bigint AS id, NULL::text AS rel, 0::float8 AS weight,
       TRUE AS outgoing, NULL::text AS to_kind, NULL::bigint AS to_id, NULL::bigint AS edge_id,
       NULL::text AS origin, 0::bigint AS scanned
WHERE FALSE"""


def _edges(seen: Sight, wanted: Wanted) -> Iterator[str]:
    for outgoing, near, far in ((True, "source", "target"), (False, "target", "source")):
        if wanted.direction not in ("both", "out" if outgoing else "in"):
            continue
        rels = "edge.rel = ANY(%(rels)s::text[])" if wanted.rels else "TRUE"
        if wanted.direction == "both" and not outgoing:
            rels += " AND edge.source_id <> edge.target_id"  # told by the other arm
        yield piece("step_edges").format(
            outgoing=outgoing,
            near=near,
            far=far,
            reach=wanted.reach(f"edge.{far}_id", "rows"),
            rels=rels,
            labels=wanted.labelled_row,
            edge=seen.edge("edge"),
            # marked ones were seen before
            other="TRUE" if wanted.inside else seen.node("other"),
        )


def _content(seen: Sight, wanted: Wanted) -> Iterator[str]:
    chunk, other = seen.passage("chunk"), seen.passage("other")
    if wanted.follows("HAS_CHUNK", "document", "chunk", outgoing=True):
        reach = wanted.reach("chunk.id", "chunks")
        yield piece("step_has_chunk_out").format(chunk=chunk, reach=reach)
    if wanted.follows("HAS_CHUNK", "chunk", "document", outgoing=False):
        yield piece("step_has_chunk_in").format(chunk=chunk)
    for outgoing in (True, False):
        if wanted.follows("NEXT", "chunk", "chunk", outgoing=outgoing):
            yield piece("step_next").format(
                outgoing=outgoing, sign="+" if outgoing else "-", chunk=chunk, other=other
            )
        if wanted.follows("VERSION_OF", "document", "document", outgoing=outgoing):
            yield piece("step_version_of").format(
                outgoing=outgoing,
                older="document" if outgoing else "other",
                newer="other" if outgoing else "document",
                document=seen.listed("document"),
                other=seen.listed("other"),
            )
        if wanted.follows("REFERS_TO", "document", "document", outgoing=outgoing):
            yield _refers_to(seen, wanted, outgoing=outgoing)


def _refers_to(seen: Sight, wanted: Wanted, *, outgoing: bool) -> str:
    link, itself = Mention.Kind.LINK.value, Mention.Kind.SELF.value
    return piece("step_refers_to").format(
        outgoing=outgoing,
        near="link" if outgoing else "itself",
        near_kind=link if outgoing else itself,
        far="itself" if outgoing else "link",
        far_kind=itself if outgoing else link,
        here=seen.passage("here"),
        there=seen.passage("there"),
        reach=wanted.reach("led.id", "documents"),
    )


def _mentions(seen: Sight, wanted: Wanted) -> Iterator[str]:
    chunk, labels = seen.passage("chunk"), wanted.labelled
    if wanted.grain == "document":
        if wanted.follows("MENTIONS", "document", "node", outgoing=True):
            yield piece("step_mentions_of_document").format(
                chunk=chunk, labels=labels, reach=wanted.reach("named.id", "nodes")
            )
        if wanted.follows("MENTIONS", "node", "document", outgoing=False):
            yield piece("step_documents_mentioning").format(
                chunk=chunk, reach=wanted.reach("naming.id", "documents")
            )
    if wanted.grain == "chunk" or wanted.passages:
        if wanted.follows("MENTIONS", "chunk", "node", outgoing=True):
            yield piece("step_mentions_of_chunk").format(
                chunk=chunk, labels=labels, reach=wanted.reach("mention.node_id", "nodes")
            )
        if wanted.follows("MENTIONS", "node", "chunk", outgoing=False):
            some = "chunk.id = ANY(%(passages)s::bigint[])"
            yield piece("step_chunks_mentioning").format(
                chunk=chunk,
                passages="TRUE" if wanted.grain == "chunk" else some,
                reach=wanted.reach("chunk.id", "chunks"),
            )
