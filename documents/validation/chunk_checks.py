"""Checks of chunks, vectors, embedding spaces and indexes, and that no row crosses workspaces."""

from functools import partial

from django.conf import settings
from django.db import connection

from documents import lexical_differences, lexical_index
from documents.fitting_models import better_space
from documents.ingestion.vector_indexes import build_index, index_states
from documents.models import Chunk, Collection, EmbeddingSpace
from documents.validation.base import Check, Scope, SqlProbe, execute, fix_each

#: Reads every chunk's row once, without its text and vector.
_CHUNK_COPIES = """
    SELECT c.id,
           c.workspace_id <> d.workspace_id AS chunk_workspace,
           c.collection_id <> d.collection_id AS chunk_collection,
           c.access IS DISTINCT FROM d.access AS chunk_access,
           c.media_type <> d.media_type AS chunk_media_type,
           c.is_current <> d.is_current AS chunk_is_current,
           d.status = 'ready' AND c.embedding IS NULL AND k.vectors AND %(vectors)s
               AS chunk_without_vector,
           c.space_id <> k.space_id AND c.space_id <> ALL (k.former_spaces) AS chunk_space
    FROM documents_chunk c
    JOIN documents_document d ON d.id = c.document_id
    JOIN documents_collection k ON k.id = c.collection_id
    WHERE %(collection)s::bigint IS NULL
       OR c.collection_id = %(collection)s OR d.collection_id = %(collection)s
"""

#: Reads every chunk's text once, document by document.
_CHUNK_OFFSETS = """
    SELECT c.id,
           c."end" - c.start <> char_length(c.text) AS chunk_offsets,
           c.start < before.start AS chunk_order,
           c.start < before."end" AND c.start >= before.start
               AND left(c.text, shared.length)
                   <> substr(before.text, (c.start - before.start)::int + 1, shared.length)
               AS chunk_overlap
    FROM documents_chunk c
    LEFT JOIN documents_chunk before
        ON before.document_id = c.document_id AND before.ordinal = c.ordinal - 1
    CROSS JOIN LATERAL (
        SELECT (least(before."end", c."end") - c.start)::int AS length
    ) AS shared
    WHERE %(collection)s::bigint IS NULL OR c.collection_id = %(collection)s
"""

_FIX_COPIES = """
    UPDATE documents_chunk c
    SET access = d.access, media_type = d.media_type, is_current = d.is_current
    FROM documents_document d
    WHERE d.id = c.document_id
      AND (%(collection)s::bigint IS NULL OR d.collection_id = %(collection)s)
      AND (c.access IS DISTINCT FROM d.access OR c.media_type <> d.media_type
           OR c.is_current <> d.is_current)
"""


_DELETE_AND_INGEST = "Delete their documents and ingest them again."
_OVERWRITE = "Ingest their documents again with `--overwrite`."


#: Reads every vector, which are most of the table's bytes. pgvector itself keeps NaN out; a length
#: of zero, or beyond what its squares can hold, it does not.
_VECTOR_STATES = """
    SELECT c.id,
           vector_dims(c.embedding) <> s.dimensions AS vector_dimensions,
           NOT (vector_norm(c.embedding) > 0 AND vector_norm(c.embedding) < 'infinity')
               AS vector_unusable
    FROM documents_chunk c JOIN documents_embeddingspace s ON s.id = c.space_id
    WHERE c.embedding IS NOT NULL
      AND (%(collection)s::bigint IS NULL OR c.collection_id = %(collection)s)
"""

_REINDEX_CURE = "`manage.py reindex --chunk-ids …` embeds them anew."


_FORMER_SPACES = """
    SELECT DISTINCT k.id, true AS former_space_missing
    FROM documents_collection k CROSS JOIN unnest(k.former_spaces) AS former (id)
    WHERE NOT EXISTS (SELECT FROM documents_embeddingspace s WHERE s.id = former.id)
      AND (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
"""

_FORGET_FORMER_SPACES = """
    UPDATE documents_collection k
    SET former_spaces = ARRAY(
        SELECT former.id FROM unnest(k.former_spaces) AS former (id)
        JOIN documents_embeddingspace s ON s.id = former.id ORDER BY former.id
    )
    WHERE (%(collection)s::bigint IS NULL OR k.id = %(collection)s)
      AND EXISTS (
        SELECT FROM unnest(k.former_spaces) AS former (id)
        WHERE NOT EXISTS (SELECT FROM documents_embeddingspace s WHERE s.id = former.id)
      )
"""


#: table, column that names the other row, the other table; and where the collection stands
_WORKSPACE_COPIES = (
    ("document", "collection", "collection", "t.collection_id"),
    ("stageddocument", "document", "document", "o.collection_id"),
    ("ingestionrun", "collection", "collection", "t.collection_id"),
    ("ingestionitem", "run", "ingestionrun", "o.collection_id"),
    ("lexicalsegment", "collection", "collection", "t.collection_id"),
)


_TOKENS_OF_WORKSPACES = """
    SELECT t.chunk_id AS id, true AS chunktokens_workspace
    FROM documents_chunktokens t JOIN documents_chunk c ON c.id = t.chunk_id
    WHERE t.workspace_id <> c.workspace_id
      AND (%(collection)s::bigint IS NULL OR c.collection_id = %(collection)s)
"""

_FIX_TOKENS_OF_WORKSPACES = """
    UPDATE documents_chunktokens t SET workspace_id = c.workspace_id FROM documents_chunk c
    WHERE c.id = t.chunk_id AND t.workspace_id <> c.workspace_id
      AND (%(collection)s::bigint IS NULL OR c.collection_id = %(collection)s)
"""


#: Indexes that are being built are not valid yet, and are left out.
_INVALID_INDEXES = """
    SELECT i.indexrelid::int8 AS id, true AS index_invalid
    FROM pg_index i
    JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_class c ON c.oid = i.indexrelid
    WHERE %(collection)s::bigint IS NULL AND NOT i.indisvalid AND t.relname LIKE 'documents\\_%%'
      AND c.relname !~ '^chunk_space_[0-9]+_index$'
      AND t.relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (
        SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid
      )
"""

_INDEXES_BEING_BUILT = """
    SELECT c.relname FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.index_relid
"""


def spaces_without_index(scope: Scope) -> list[EmbeddingSpace]:
    """Live spaces whose index is broken, or missing although an exact scan would be slow."""
    live = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE)
    if scope.collection_id is not None:
        live = live.filter(collections=scope.collection_id)
    spaces = list(live.exclude(index_type=EmbeddingSpace.IndexType.NONE))
    states = index_states(spaces)
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES_BEING_BUILT)
        building = {name for (name,) in cursor.fetchall()}
    most: int = settings.EXACT_SCAN_CHUNKS
    return [
        space
        for space in spaces
        if space.sql.index_name not in building
        and (
            not states[space.pk].valid
            if space.pk in states
            else Chunk.objects.filter(space=space)[: most + 1].count() > most
        )
    ]


def _collections_with_former_model(scope: Scope) -> list[str]:
    collections = Collection.objects.select_related("space", "workspace").order_by("pk")
    if scope.collection_id is not None:
        collections = collections.filter(pk=scope.collection_id)
    return [f"{row.workspace.slug}/{row.slug}" for row in collections if better_space(row)]


def _collections_with_differences(scope: Scope) -> list[int]:
    collections = Collection.objects.order_by("pk")
    if scope.collection_id is not None:
        collections = collections.filter(pk=scope.collection_id)
    ids = list(collections.values_list("pk", flat=True))
    return [pk for pk in ids if lexical_differences.find_differences(pk)]


PROBES: tuple[Check | SqlProbe, ...] = (
    SqlProbe(
        _CHUNK_COPIES,
        (
            Check(
                "chunk_workspace",
                "chunks",
                "are in another workspace than their document",
                _DELETE_AND_INGEST,
            ),
            Check(
                "chunk_collection",
                "chunks",
                "are in another collection than their document",
                _DELETE_AND_INGEST,
            ),
            Check(
                "chunk_access",
                "chunks",
                "have another access list than their document",
                "`validate --fix` gives them the document's.",
                partial(execute, _FIX_COPIES),
            ),
            Check(
                "chunk_media_type",
                "chunks",
                "have another media type than their document",
                "`validate --fix` gives them the document's.",
                partial(execute, _FIX_COPIES),
            ),
            Check(
                "chunk_is_current",
                "chunks",
                "are current where their document is not, or the other way round",
                "`validate --fix` gives them the document's.",
                partial(execute, _FIX_COPIES),
            ),
            Check(
                "chunk_without_vector",
                "chunks",
                "of ready documents have no vector",
                "`manage.py reindex --chunk-ids …` embeds them.",
            ),
            Check(
                "chunk_space",
                "chunks",
                "are in an embedding space that their collection does not search",
                "`manage.py reindex --chunk-ids …` embeds them in the collection's.",
            ),
        ),
    ),
    SqlProbe(
        _CHUNK_OFFSETS,
        (
            Check(
                "chunk_offsets",
                "chunks",
                "have offsets that are not as far apart as their text is long",
                _OVERWRITE,
            ),
            Check(
                "chunk_order", "chunks", "begin before the chunk that goes before them", _OVERWRITE
            ),
            Check(
                "chunk_overlap",
                "chunks",
                "share characters with the chunk before them that are not the same",
                _OVERWRITE,
            ),
        ),
    ),
    SqlProbe(
        _VECTOR_STATES,
        (
            Check(
                "vector_dimensions",
                "chunks",
                "have a vector of other dimensions than their space",
                _REINDEX_CURE,
            ),
            Check(
                "vector_unusable",
                "chunks",
                "have a vector of zeros, NaN or infinity, which is near to nothing",
                _REINDEX_CURE,
            ),
        ),
    ),
    SqlProbe(
        _FORMER_SPACES,
        (
            Check(
                "former_space_missing",
                "collections",
                "search a former embedding space that is gone",
                "`validate --fix` forgets it.",
                partial(execute, _FORGET_FORMER_SPACES),
            ),
        ),
    ),
    *(
        SqlProbe(
            f"""
            SELECT t.id, true AS {table}_workspace
            FROM documents_{table} t JOIN documents_{other} o ON o.id = t.{column}_id
            WHERE t.workspace_id <> o.workspace_id
              AND (%(collection)s::bigint IS NULL OR {collection} = %(collection)s)
        """,  # noqa: S608 (the names above)
            (
                Check(
                    f"{table}_workspace",
                    f"rows of {table}",
                    f"are in another workspace than their {other}",
                    "Delete them: their text may be seen by the wrong people.",
                ),
            ),
        )
        for table, column, other, collection in _WORKSPACE_COPIES
    ),
    SqlProbe(
        _TOKENS_OF_WORKSPACES,
        (
            Check(
                "chunktokens_workspace",
                "tokens of chunks",
                "are in another workspace than their chunk",
                "`validate --fix` gives them the chunk's.",
                partial(execute, _FIX_TOKENS_OF_WORKSPACES),
            ),
        ),
    ),
    Check(
        "lexical_index",
        "collections",
        "have an index of words that disagrees with their texts",
        "`validate --fix` builds it anew, as `reindex` does.",
        fix_each(_collections_with_differences, lexical_index.rebuild_lexical_index),
        # Reads the list of all chunks of a collection, and the words of 200 of them.
        _collections_with_differences,
    ),
    Check(
        "space_index",
        "embedding spaces",
        "have no usable index, so that searches compare every vector",
        "`manage.py spaces build-index NAME`, or `validate --fix`, which may take long.",
        fix_each(spaces_without_index, build_index),
        lambda scope: [space.name for space in spaces_without_index(scope)],
    ),
    Check(
        "former_model",
        "collections",
        "have the model of an earlier release, and that of new collections finds more",
        "Move them on their pages, or with `manage.py reembed --to NAME --collection SLUG`;"
        " `manage.py spaces list` says which space is the default. Nothing is wrong until then.",
        find=_collections_with_former_model,
    ),
    SqlProbe(
        _INVALID_INDEXES,
        (
            Check(
                "index_invalid",
                "indexes",
                "(oid) were not built to their end",
                "`REINDEX INDEX CONCURRENTLY` each; `SELECT oid::regclass` names it.",
            ),
        ),
    ),
)
