"""What a graph is made of, as readers see it: rows of `graph_node`, documents, passages."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graph.addresses import document_id, passage_id
from graph.reading.statements import named_rows, piece
from graph.scopes import Sight

Kind = Literal["node", "document", "chunk"]
KINDS: tuple[Kind, ...] = ("node", "document", "chunk")

#: Labels of documents and passages besides those that a caller gave them.
DOCUMENT_LABEL = "Document"
PASSAGE_LABEL = "Passage"
#: Their origin: they are there without anybody's doing.
DERIVED = "derived"


class Ref(NamedTuple):
    """A vertex by its kind and the primary key of its row in that kind's table."""

    kind: Kind
    pk: int


@dataclass(frozen=True, slots=True)
class Vertex:
    """A node, a document or a passage that the scope may see.

    `pk` is that of the row in the kind's own table, `id` what it is called outside. `props` is None
    where they were not asked for. `origin` is `given`, `extracted`, or `derived` for documents and
    passages.
    """

    kind: Kind
    pk: int
    id: str
    name: str
    labels: tuple[str, ...] = ()
    props: Mapping[str, Any] | None = None
    origin: str = "given"

    @property
    def ref(self) -> Ref:
        """It, without what is told of it."""
        return Ref(self.kind, self.pk)


def load(seen: Sight, refs: Iterable[Ref], *, props: bool = False) -> dict[Ref, Vertex]:
    """What is told of these. Those that may not be seen are absent."""
    wanted: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for ref in refs:
        wanted[ref.kind].add(ref.pk)
    vertices: dict[Ref, Vertex] = {}
    for kind in (kind for kind in KINDS if wanted[kind]):
        statement = piece(f"load_{kind}").format(
            node=seen.node("node"), document=seen.listed("document"), passage=seen.passage("chunk")
        )
        asked = {"pks": sorted(wanted[kind]), "props": props}
        for row in named_rows(statement, seen.parameters | asked):
            vertices[Ref(kind, row["id"])] = _READERS[kind](row)
    return vertices


def _node(row: Mapping[str, Any]) -> Vertex:
    return Vertex(
        kind="node",
        pk=row["id"],
        id=row["key"],
        name=row["name"] or row["key"],
        labels=tuple(row["labels"]),
        props=_props(row),
        origin=row["origin"],
    )


def _document(row: Mapping[str, Any]) -> Vertex:
    address = {name: row[name] for name in ("collection", "key", "version", "is_current")}
    return Vertex(
        kind="document",
        pk=row["id"],
        id=document_id(**address),
        name=row["title"] or row["key"],
        labels=(DOCUMENT_LABEL, *(row["labels"] or ())),
        props=_props(row),
        origin=DERIVED,
    )


def _passage(row: Mapping[str, Any]) -> Vertex:
    address = {name: row[name] for name in ("collection", "key", "ordinal")}
    return Vertex(
        kind="chunk",
        pk=row["id"],
        id=passage_id(**address),
        name=f"{row['title'] or row['key']} #{row['ordinal'] + 1}",
        labels=(PASSAGE_LABEL, *(row["labels"] or ())),
        props=_props(row),
        origin=DERIVED,
    )


def _props(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if row["props"] is None else json.loads(row["props"])


_READERS = {"node": _node, "document": _document, "chunk": _passage}
