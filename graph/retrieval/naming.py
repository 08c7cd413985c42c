"""Names for the stops of paths, as people read them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from common.postgresql.binary import array, fetch
from common.replicas import read_connection
from graph.addresses import passage_id
from graph.ranking import Stop


@dataclass(frozen=True, slots=True)
class Named:
    """A stop with its public id and its name: a passage has its document's title."""

    kind: Literal["chunk", "node"]
    id: str
    name: str


_SQL = """
    SELECT 'node' AS kind, id, key, name, NULL AS slug, NULL::int AS ordinal
    FROM graph_node WHERE id = ANY(%(nodes)s::bigint[])
    UNION ALL
    SELECT 'chunk', chunk.id, document.key,
           coalesce(nullif(document.title, ''), nullif(document.source, ''), document.key),
           collection.slug, chunk.ordinal
    FROM documents_chunk AS chunk
    JOIN documents_document AS document ON document.id = chunk.document_id
    JOIN documents_collection AS collection ON collection.id = chunk.collection_id
    WHERE chunk.id = ANY(%(chunks)s::bigint[])
"""


def named_stops(paths: Iterable[Iterable[Stop]]) -> dict[Stop, Named]:
    """By stop; one that was removed meanwhile is absent."""
    ids: dict[str, set[int]] = {"node": set(), "chunk": set()}
    for path in paths:
        for stop in path:
            ids[stop.kind].add(stop.id)
    if not any(ids.values()):
        return {}
    asked = {f"{kind}s": array(of_kind) for kind, of_kind in ids.items()}
    names = {}
    for kind, pk, key, name, slug, ordinal in fetch(read_connection(), _SQL, asked, prepare=True):
        is_node = kind == "node"
        public = key if is_node else passage_id(collection=slug, key=key, ordinal=ordinal)
        names[Stop(kind, pk)] = Named(kind, public, name or key)
    return names
