"""What a search must know of the collections in its scope and of their spaces.

A process remembers it. Each search asks, with all else that it asks, for the `State` of the scope:
where that is another than the one that was remembered, the search is made anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.postgresql.binary import fetch
from common.replicas import read_connection
from documents.models import EmbeddingSpace
from search.results import Scope


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """`chunks` is how many of current versions there are, in one place of the index or another."""

    slug: str
    name: str
    space_id: int
    chunks: int
    reranker: str
    rerank_instruction: str
    tuning: Mapping[str, Any] | None
    facets: tuple[str, ...] = ()
    fusion: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    """Of which rows facts are. `version` changes with every row of a collection and of a space, and
    with the indexes; `restricted`: some chunks have an access list; `settled`: none is pending or
    removed in the lexical index. `content` changes with every chunk, `chunks` are how many each
    collection has, in the order of their ids."""

    version: str
    restricted: bool
    settled: bool = False
    content: str = ""
    chunks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope's collections by id, and every space that holds chunks of theirs: their own, and
    those that chunks are just leaving. `indexes` are, by id of the space, about how many rows its
    index has, where there is one that is whole."""

    collections: Mapping[int, CollectionFacts]
    spaces: tuple[EmbeddingSpace, ...]
    indexes: Mapping[int, int]
    state: State

    @property
    def restricted(self) -> bool:
        """Whether some chunks have an access list."""
        return self.state.restricted

    @property
    def chunks(self) -> int:
        """How many chunks of current versions the collections have."""
        return sum(self.state.chunks)

    def are_of(self, state: State) -> bool:
        """Whether they would be read the same, and what was asked by them was enough."""
        mine = self.state
        is_same = (mine.version, mine.restricted) == (state.version, state.restricted)
        return is_same and (state.settled or not mine.settled)

    def counted(self, state: State) -> "ScopeFacts":
        """The same with the numbers of chunks that there are now."""
        counts = zip(sorted(self.collections), state.chunks, strict=True)
        collections = {pk: replace(self.collections[pk], chunks=count) for pk, count in counts}
        return replace(self, collections=collections, state=state)


#: A CTE of one row, of the parameter `collections`. The address of a row changes with each change.
STATE = """
state AS MATERIALIZED (
    SELECT string_agg(counted.address, ' ' ORDER BY counted.id)
           || coalesce((
               SELECT string_agg(
                   concat_ws('.', ' ', space.xmin, space.ctid, index.indisvalid), ' '
                   ORDER BY space.id)
               FROM documents_embeddingspace AS space
               LEFT JOIN pg_index AS index
                 ON index.indexrelid = to_regclass('chunk_space_' || space.id || '_index')
               WHERE space.id IN (
                   SELECT unnest(former_spaces || space_id) FROM documents_collection
                   WHERE id = ANY(%(collections)s::bigint[]))
           ), '') AS version,
           string_agg(counted.content, ' ' ORDER BY counted.id) AS content,
           array_agg(counted.chunks ORDER BY counted.id) AS chunks,
           bool_and(counted.is_settled) AS is_settled,
           EXISTS (SELECT FROM documents_chunk
                   WHERE collection_id = ANY(%(collections)s::bigint[])
                     AND access IS NOT NULL) AS is_restricted
    FROM (
        SELECT collection.id, concat_ws('.', collection.xmin, collection.ctid) AS address,
               coalesce(indexed.chunks, 0) + pending.chunks AS chunks,
               pending.chunks + removed.chunks = 0 AS is_settled,
               concat_ws('.', indexed.newest, pending.newest, pending.chunks, removed.chunks)
                   AS content
        FROM documents_collection AS collection,
             LATERAL (SELECT sum(chunk_count + wordless_count)::bigint AS chunks, max(id) AS newest
                      FROM documents_lexicalsegment
                      WHERE collection_id = collection.id AND is_current) AS indexed,
             LATERAL (SELECT count(*) AS chunks, max(index_id) AS newest FROM documents_pendingchunk
                      WHERE collection_id = collection.id) AS pending,
             LATERAL (SELECT count(*) AS chunks FROM documents_removedchunk
                      WHERE collection_id = collection.id) AS removed
        WHERE collection.id = ANY(%(collections)s::bigint[])
    ) AS counted
)"""

# By hand, because putting it together from querysets took longer than running it. A former space
# that was dropped since is absent.
_SQL = f"""
    WITH {STATE}, collection AS MATERIALIZED (
        SELECT * FROM documents_collection WHERE id = ANY(%(collections)s::bigint[])
    )
    SELECT 'collection', collection.id, to_jsonb(ARRAY[slug, name, reranker, rerank_instruction]),
           tuning::jsonb, space_id, jsonb_build_array(facets, fusion), NULL::bigint[],
           NULL::text, NULL::text, NULL::bool
    FROM collection
    UNION ALL
    SELECT 'space', space.id, to_jsonb(space), NULL, greatest(class.reltuples, 0)::bigint, NULL,
           NULL, NULL, NULL, coalesce(index.indisvalid, false)
    FROM documents_embeddingspace AS space
    LEFT JOIN pg_class AS class
      ON class.oid = to_regclass('chunk_space_' || space.id || '_index')
    LEFT JOIN pg_index AS index ON index.indexrelid = class.oid
    WHERE space.id IN (SELECT unnest(former_spaces || space_id) FROM collection)
    UNION ALL
    SELECT 'state', is_settled::int, NULL, NULL, NULL, NULL, chunks, version, content, is_restricted
    FROM state
    ORDER BY 1, 2
"""  # noqa: S608 (a constant)
_SPACE_FIELDS = [field.attname for field in EmbeddingSpace._meta.concrete_fields]


def scope_facts(scope: Scope) -> ScopeFacts:
    """Read them. A collection that was deleted since the scope was made is absent."""
    collections: dict[int, CollectionFacts] = {}
    spaces: list[EmbeddingSpace] = []
    indexes: dict[int, int] = {}
    state = State("", restricted=False)
    connection = read_connection()
    for kind, pk, values, tuning, number, options, chunks, version, content, flag in fetch(
        connection, _SQL, {"collections": list(scope.collection_ids)}, prepare=True
    ):
        if kind == "space":
            of_space = [values[name] for name in _SPACE_FIELDS]
            spaces.append(EmbeddingSpace.from_db(connection.alias, _SPACE_FIELDS, of_space))
            if flag:
                indexes[pk] = number
        elif kind == "state":
            state = read_state(version, content, chunks, restricted=flag, settled=pk)
        else:
            slug, name, reranker, instruction = values
            facets, fusion = options
            collections[pk] = CollectionFacts(
                slug=slug,
                name=name,
                space_id=number,
                chunks=0,
                reranker=reranker,
                rerank_instruction=instruction,
                tuning=tuning,
                facets=tuple(facets),
                fusion=fusion,
            )
    return ScopeFacts(collections, tuple(spaces), indexes, state).counted(state)


def read_state(
    version: str | None, content: str | None, chunks: Any, *, restricted: bool, settled: int | None
) -> State:
    """Of the columns of `STATE`, which are NULL where no collection is left."""
    return State(
        version=version or "",
        restricted=restricted,
        settled=bool(settled),
        content=content or "",
        chunks=() if chunks is None else tuple(chunks.tolist()),
    )


# --- what a process remembers -------------------------------------------------------------------

#: Scopes are sets of collections, of which a site has few; beyond so many all are forgotten.
MOST_REMEMBERED = 500

Key = tuple[str, str, tuple[int, ...]]


@dataclass(slots=True)
class _Remembered:
    facts: ScopeFacts
    means: dict[int, tuple[str, NDArray[np.float64]]] = field(default_factory=dict)


_remembered: dict[Key, _Remembered] = {}


def _key(scope: Scope) -> Key:
    connection = read_connection()
    return connection.alias, connection.settings_dict["NAME"], scope.collection_ids


def known_facts(scope: Scope) -> ScopeFacts:
    """The scope's facts as they were when this process last looked."""
    known = _remembered.get(_key(scope))
    return known.facts if known else facts_now(scope)


def facts_now(scope: Scope, state: State | None = None) -> ScopeFacts:
    """The scope's facts as they are, which this process remembers. They are read, unless those that
    it knew are of this `state`."""
    known = _remembered.get(_key(scope))
    if known and state and known.facts.are_of(state):
        if known.facts.state != state:
            known.facts = known.facts.counted(state)
        return known.facts
    facts = scope_facts(scope)
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    _remembered[_key(scope)] = _Remembered(facts)
    return facts


#: So many chunks tell what similarity is usual for a question.
SAMPLE = 200
#: Chunks that lie together are of one document: the sample is spread over more than its number.
MAX_STRIDE = 16

_MEANS = """
    SELECT space.id, (
        SELECT avg(l2_normalize(embedding)) FROM (
            SELECT embedding FROM documents_chunk
            WHERE space_id = space.id AND embedding IS NOT NULL AND is_current
              AND collection_id = ANY(%(collections)s::bigint[]) AND id %% %(stride)s::int = 0
            LIMIT %(sample)s::int
        ) AS sample)
    FROM unnest(%(spaces)s::bigint[]) AS space (id)
"""


def mean_vectors(
    scope: Scope, facts: ScopeFacts, spaces: Sequence[int]
) -> dict[int, NDArray[np.float64]]:
    """Of each space that the collections have chunks in: the mean direction of a sample of these.

    A vector's cosine to it, times its length, is the mean of the cosines to each.
    """
    entry = _remembered.get(_key(scope)) or _Remembered(facts)
    content = facts.state.content + facts.state.version
    known = entry.means
    if any(known.get(pk, ("",))[0] != content for pk in spaces):
        rows = fetch(
            read_connection(),
            _MEANS,
            {
                "spaces": list(spaces),
                "collections": list(scope.collection_ids),
                "sample": SAMPLE,
                "stride": min(MAX_STRIDE, max(1, facts.chunks // SAMPLE)),
            },
        )
        found = {pk: mean for pk, mean in rows if mean is not None}
        known = {pk: (content, mean.to_numpy().astype("f8")) for pk, mean in found.items()}
        entry.means = known
    return {pk: known[pk][1] for pk in spaces if pk in known}
