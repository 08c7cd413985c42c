"""Vertices: rows of `graph_node`, documents and passages, by kind and primary key
(`Ref`) or by id (`resolve`).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from common.replicas import read_connection, reads_from_replica
from graph.models import Node
from graph.node_ids import (
    DocumentAddress,
    document_addresses,
    document_id,
    passage_address,
    passage_id,
    retired_id_form,
)
from graph.scopes import AccessFilter, GraphScope, Parameters

SQL_DIRECTORY = Path(__file__).parent / "sql"


@cache
def load_sql(name: str) -> str:
    """Text of `sql/<name>.sql`, read once."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text(encoding="utf-8").strip()


def fetch_rows(statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
    """All rows of the statement."""
    with read_connection().cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def fetch_dicts(statement: str, parameters: Parameters) -> list[dict[str, Any]]:
    """All rows, as dicts by column name."""
    with read_connection().cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


Kind = Literal["node", "document", "chunk"]
KINDS: tuple[Kind, ...] = ("node", "document", "chunk")

#: Labels of documents and passages, besides those of callers.
DOCUMENT_LABEL = "Document"
PASSAGE_LABEL = "Passage"
#: Their origin.
DERIVED = "derived"


_SURROGATE = re.compile("[\ud800-\udfff]")


class Ref(NamedTuple):
    """A vertex by kind and primary key in that kind's table."""

    kind: Kind
    pk: int


@dataclass(frozen=True, slots=True)
class Vertex:
    """A visible node, document or passage.

    `pk` is that of its row in the kind's table, `id` its public id. `props` is None unless
    requested. `origin` is `given`, `extracted`, or `derived` for documents and passages.
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
        """Its kind and primary key only."""
        return Ref(self.kind, self.pk)


def load_vertices(
    seen: AccessFilter, refs: Iterable[Ref], *, props: bool = False
) -> dict[Ref, Vertex]:
    """Vertices by reference. Invisible ones are absent."""
    wanted: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
    for ref in refs:
        wanted[ref.kind].add(ref.pk)
    vertices: dict[Ref, Vertex] = {}
    for kind in (kind for kind in KINDS if wanted[kind]):
        statement = load_sql(f"load_{kind}").format(
            node=seen.node("node"), document=seen.listed("document"), passage=seen.passage("chunk")
        )
        asked = {"pks": sorted(wanted[kind]), "props": props}
        for row in fetch_dicts(statement, seen.parameters | asked):
            vertices[Ref(kind, row["id"])] = _make_vertex(kind, row)
    return vertices


def _make_vertex(kind: Kind, row: Mapping[str, Any]) -> Vertex:
    labels: Sequence[str] = row["labels"] or ()
    origin = DERIVED
    if kind == "node":
        id, name, origin = row["key"], row["name"] or row["key"], row["origin"]
    elif kind == "document":
        id = document_id(
            **{each: row[each] for each in ("collection", "key", "version", "is_current")}
        )
        name, labels = row["title"] or row["key"], (DOCUMENT_LABEL, *labels)
    else:
        id = passage_id(**{each: row[each] for each in ("collection", "key", "ordinal")})
        name = f"{row['title'] or row['key']} #{row['ordinal'] + 1}"
        labels = (PASSAGE_LABEL, *labels)
    props = None if row["props"] is None else json.loads(row["props"])
    return Vertex(kind, row["id"], id, name, tuple(labels), props, origin)


#: No id is longer: that of a passage names a collection, a document's key and a number.
MAX_ID_CHARACTERS = 1200


def resolve(seen: AccessFilter, ids: Iterable[str], *, props: bool = False) -> dict[str, Vertex]:
    """Vertices by the ids asked for.

    Missing, invisible, and foreign ids are absent. The former id of a merged node finds the
    node it went into.
    """
    asked = [
        each
        for each in dict.fromkeys(ids)
        if len(each) <= MAX_ID_CHARACTERS and "\0" not in each and not _SURROGATE.search(each)
    ]
    found = _resolve_documents(seen, asked) | _resolve_passages(seen, asked)
    if rest := [each for each in asked if each not in found]:
        statement = load_sql("resolve_nodes").format(node=seen.node("node"))
        given = {"ids": rest, "forms": [retired_id_form(each) for each in rest]}
        for node_id, kind, pk in fetch_rows(statement, seen.parameters | given):
            found[node_id] = Ref(kind, pk)
    vertices = load_vertices(seen, found.values(), props=props)
    return {
        each: vertices[found[each]] for each in asked if each in found and found[each] in vertices
    }


@reads_from_replica
def get_node(*, scope: GraphScope, id: str) -> Vertex | None:
    """The node, document or passage with this `id`, with properties; None if missing or invisible.
    Former ids find the node they went into.
    """
    return resolve(AccessFilter(scope), [id], props=True).get(id)


def _resolve_documents(seen: AccessFilter, ids: Sequence[str]) -> dict[str, Ref]:
    addresses = {each: possible for each in ids if (possible := document_addresses(each))}
    wanted = sorted({at[:2] for possible in addresses.values() for at in possible})
    if not wanted:
        return {}
    there: dict[DocumentAddress, Ref] = {}
    for slug, key, version, is_current, pk in fetch_rows(
        load_sql("resolve_documents").format(document=seen.listed("document")),
        seen.parameters
        | {"slugs": [slug for slug, _ in wanted], "keys": [key for _, key in wanted]},
    ):
        there[slug, key, version] = Ref("document", pk)
        if is_current:
            there[slug, key, None] = Ref("document", pk)
    return {
        each: there[next(at for at in possible if at in there)]
        for each, possible in addresses.items()
        if any(at in there for at in possible)
    }


def _resolve_passages(seen: AccessFilter, ids: Sequence[str]) -> dict[str, Ref]:
    addresses = {each: at for each in ids if (at := passage_address(each)) is not None}
    if not addresses:
        return {}
    slugs, keys, ordinals = map(list, zip(*addresses.values(), strict=True))
    there = {
        (slug, key, ordinal): Ref("chunk", pk)
        for slug, key, ordinal, pk in fetch_rows(
            load_sql("resolve_passages").format(passage=seen.passage("chunk")),
            seen.parameters | {"slugs": slugs, "keys": keys, "ordinals": ordinals},
        )
    }
    return {each: there[at] for each, at in addresses.items() if at in there}


def ref_of_node(node: Node) -> Ref:
    """The document or passage that the row stands for, or the row itself."""
    if node.document_id is not None:
        return Ref("document", node.document_id)
    return Ref("node", node.pk) if node.chunk_id is None else Ref("chunk", node.chunk_id)


def vertex_rows(vertices: Mapping[str, Vertex]) -> dict[str, int]:
    """Rows of `graph_node`; documents and passages have one only for edges of callers."""
    rows = {}
    for node_id, vertex in vertices.items():
        if vertex.kind == "node":
            rows[node_id] = vertex.pk
        elif row := Node.objects.filter(**{vertex.kind: vertex.pk}).first():
            rows[node_id] = row.pk
    return rows
