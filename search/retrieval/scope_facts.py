"""What a search must know of the collections in its scope and of their embedding spaces.

Cached per process. Each search also reads the `ScopeState` of the scope; if it differs from the
cached one, the search is repeated with fresh facts. Begin with `cached_facts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import features
from common.replicas import read_connection
from common.sql import fetch_rows
from documents.lexical_search import PENDING_AND_REMOVED_CTES
from documents.models import Collection, EmbeddingSpace
from search.results import Scope


@dataclass(frozen=True, slots=True)
class ScopeState:
    """Version of the facts. `version` changes with every change of a collection, space or index;
    `restricted`: some chunks have an access list. `content` changes with every chunk of a small
    collection, and of a larger one with each segment and by each twentieth; `chunks` are counts by
    collection, in the order of ids.
    """

    version: str
    restricted: bool
    content: str = ""
    chunks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope's collections by id with what a search needs of them (`_COLLECTION_FIELDS`), and
    all spaces that hold vectors of theirs, also during re-embedding. `indexes`: by space id,
    estimated rows of its valid index.
    """

    collections: Mapping[int, Collection]
    spaces: tuple[EmbeddingSpace, ...]
    indexes: Mapping[int, int]
    state: ScopeState

    @property
    def embedded(self) -> tuple[int, ...]:
        """Ids of the collections that have vectors."""
        return tuple(pk for pk, each in self.collections.items() if each.has_vectors)

    @property
    def chunks(self) -> int:
        """Chunks of current versions in the collections."""
        return sum(self.state.chunks)

    def is_valid_for(self, state: ScopeState) -> bool:
        """Whether the facts are valid for this state."""
        mine = self.state
        return (mine.version, mine.restricted) == (state.version, state.restricted)


#: Sample size for the baseline similarity.
BASELINE_SAMPLE = 200

#: CTEs of the parameter `collections`; `state` has one row. The address of a row changes with each
#: change.
STATE_CTE = f"""{PENDING_AND_REMOVED_CTES},
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
           EXISTS (SELECT FROM documents_chunk
                   WHERE collection_id = ANY(%(collections)s::bigint[])
                     AND access IS NOT NULL) AS is_restricted
    FROM (
        SELECT collection.id, concat_ws('.', collection.xmin, collection.ctid) AS address,
               coalesce(indexed.chunks, 0) + coalesce(added.current_chunks, 0)
                   - gone.current_chunks AS chunks,
               concat_ws('.', indexed.newest,
                   CASE WHEN indexed.chunks >= {10 * BASELINE_SAMPLE}
                        THEN floor(20 * ln(greatest(
                            indexed.chunks + coalesce(added.chunks, 0) - gone.chunks, 1)))::text
                        ELSE concat_ws('.', added.newest, added.chunks, gone.chunks) END) AS content
        FROM documents_collection AS collection,
             LATERAL (SELECT sum(chunk_count + wordless_count)::bigint AS chunks, max(id) AS newest
                      FROM documents_lexicalsegment
                      WHERE collection_id = collection.id AND is_current) AS indexed,
             LATERAL (SELECT sum(chunks)::bigint AS chunks, max(newest) AS newest,
                             sum(chunks) FILTER (WHERE is_current)::bigint AS current_chunks
                      FROM pending WHERE collection_id = collection.id) AS added,
             LATERAL (SELECT count(*) AS chunks,
                             count(*) FILTER (WHERE is_current) AS current_chunks
                      FROM removed WHERE collection_id = collection.id) AS gone
        WHERE collection.id = ANY(%(collections)s::bigint[])
    ) AS counted
)"""  # noqa: S608 (a constant)

# By hand, because putting it together from querysets took longer than running it. A former space
# that was dropped since is absent.
_FACTS_SQL = f"""
    WITH {STATE_CTE}, collection AS MATERIALIZED (
        SELECT * FROM documents_collection WHERE id = ANY(%(collections)s::bigint[])
    )
    SELECT 'collection', collection.id, to_jsonb(collection), NULL::bigint, NULL::bigint[],
           NULL::text, NULL::text, NULL::bool
    FROM collection
    UNION ALL
    SELECT 'space', space.id, to_jsonb(space), greatest(class.reltuples, 0)::bigint, NULL, NULL,
           NULL, coalesce(index.indisvalid, false)
    FROM documents_embeddingspace AS space
    LEFT JOIN pg_class AS class
      ON class.oid = to_regclass('chunk_space_' || space.id || '_index')
    LEFT JOIN pg_index AS index ON index.indexrelid = class.oid
    WHERE space.id IN (SELECT unnest(former_spaces || space_id) FROM collection WHERE vectors)
    UNION ALL
    SELECT 'state', NULL::bigint, NULL, NULL, chunks, version, content, is_restricted
    FROM state
    ORDER BY 1, 2
"""  # noqa: S608 (a constant)
_SPACE_FIELDS = [field.attname for field in EmbeddingSpace._meta.concrete_fields]
_READ = {
    *("id", "slug", "name", "space_id", "reranker", "rerank_instruction", "tuning", "facets"),
    *("fusion", "vectors"),
}
#: In the order that `from_db` wants.
_COLLECTION_FIELDS = [
    field.attname for field in Collection._meta.concrete_fields if field.attname in _READ
]


def read_scope_facts(scope: Scope) -> ScopeFacts:
    """Reads the facts. Deleted collections are absent."""
    collections: dict[int, Collection] = {}
    spaces: list[EmbeddingSpace] = []
    indexes: dict[int, int] = {}
    state = ScopeState("", restricted=False)
    connection = read_connection()
    for kind, pk, values, rows, chunks, version, content, flag in fetch_rows(
        connection, _FACTS_SQL, {"collections": list(scope.collection_ids)}, prepare=True
    ):
        if kind == "space":
            of_space = [values[name] for name in _SPACE_FIELDS]
            spaces.append(EmbeddingSpace.from_db(connection.alias, _SPACE_FIELDS, of_space))
            if flag:
                indexes[pk] = rows
        elif kind == "state":
            state = read_state(version, content, chunks, restricted=flag)
        else:
            known = [values[name] for name in _COLLECTION_FIELDS]
            collections[pk] = Collection.from_db(connection.alias, _COLLECTION_FIELDS, known)
    if not features.is_on("vectors"):
        spaces, indexes = [], {}
    return ScopeFacts(collections, tuple(spaces), indexes, state)


def read_state(
    version: str | None, content: str | None, chunks: Any, *, restricted: bool
) -> ScopeState:
    """From the columns of the state CTE, which are NULL where no collection is left."""
    return ScopeState(
        version=version or "",
        restricted=restricted,
        content=content or "",
        chunks=() if chunks is None else tuple(chunks.tolist()),
    )


# --- what a process remembers -------------------------------------------------------------------

#: A site has few sets of collections; the cache is cleared beyond this number.
MAX_CACHED_SCOPES = 500

CacheKey = tuple[str, str, tuple[int, ...]]


#: Mean vectors by space, each with the content that it is of.
Means = dict[int, tuple[str, NDArray[np.float64]]]
_cache: dict[CacheKey, tuple[ScopeFacts, Means]] = {}


def _cache_key(scope: Scope) -> CacheKey:
    connection = read_connection()
    return connection.alias, connection.settings_dict["NAME"], scope.collection_ids


def cached_facts(scope: Scope) -> ScopeFacts:
    """The scope's facts as cached in this process, possibly outdated."""
    known = _cache.get(_cache_key(scope))
    return known[0] if known else current_facts(scope)


def current_facts(scope: Scope, state: ScopeState | None = None) -> ScopeFacts:
    """The scope's current facts, cached. Read from the database unless the cached ones
    are valid for `state`.
    """
    key = _cache_key(scope)
    facts, means = _cache.get(key, (None, {}))
    if facts and state and facts.is_valid_for(state):
        if facts.state != state:
            facts = replace(facts, state=state)
            _cache[key] = facts, means
        return facts
    facts = read_scope_facts(scope)
    if len(_cache) >= MAX_CACHED_SCOPES:
        _cache.clear()
    _cache[key] = facts, {}
    return facts


#: Chunks that lie together are of one document: the sample is spread over more than its number.
MAX_STRIDE = 16

_MEANS_SQL = """
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
    """By space: the mean direction of a sample of its chunks in the scope.

    A query's dot product with it, over the query's length, is its mean cosine to the sample:
    the baseline similarity.
    """
    key = _cache_key(scope)
    _, known = _cache.get(key, (facts, {}))
    content = facts.state.content + facts.state.version
    if any(known.get(pk, ("",))[0] != content for pk in spaces):
        rows = fetch_rows(
            read_connection(),
            _MEANS_SQL,
            {
                "spaces": list(spaces),
                "collections": list(scope.collection_ids),
                "sample": BASELINE_SAMPLE,
                "stride": min(MAX_STRIDE, max(1, facts.chunks // BASELINE_SAMPLE)),
            },
        )
        found = {pk: mean for pk, mean in rows if mean is not None}
        known = {pk: (content, mean.to_numpy().astype("f8")) for pk, mean in found.items()}
        if (entry := _cache.get(key)) is not None:
            _cache[key] = entry[0], known
    return {pk: known[pk][1] for pk in spaces if pk in known}
