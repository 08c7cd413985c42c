"""Term statistics of a collection, for BM25: kept true by refreshing, and at once on deletion."""

from collections.abc import Iterable
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet, Sum

from documents.models import Chunk, Collection, Document, LexicalStatistics

#: A small collection is counted anew after every run; a large one by beat.
REFRESH_AT_ONCE = 50_000
#: A program may store a thousand batches where a person starts one run. A collection of so many
#: chunks, or so many times the batch's, is counted anew after it, which then costs no more than the
#: batch did; a larger one when it has grown by this factor.
REFRESH_AFTER_BATCH = 1_000
CHUNKS_A_CHANGE = 20
#: The planner is told at once of so many new chunks; of fewer, autovacuum tells it in time.
ANALYZE_FROM = 5_000
GROWTH = 1.2

# Superseded versions have no part in the counts, only in what languages there are to look for.
_LANGUAGES = """
    SELECT language::text, count(*) FILTER (WHERE is_current),
           -- vectors without text have no words: they do not make texts long
           coalesce(avg(length(search_vector))
                        FILTER (WHERE is_current AND length(search_vector) > 0), 1)
    FROM documents_chunk WHERE collection_id = %s GROUP BY language
"""

# ts_stat takes its query as text; collection and language are our own integer and identifier.
_FREQUENCIES = """
    INSERT INTO documents_lexemefrequency
        (workspace_id, collection_id, language, lexeme, chunk_count)
    SELECT %s, %s, %s::regconfig, word, ndoc FROM ts_stat(format(
        'SELECT search_vector FROM documents_chunk
          WHERE collection_id = %%s AND language = %%L::regconfig AND is_current',
        %s::bigint, %s::text))
"""

# In one order, so that two deletions cannot wait for each other.
_LESS = """
    SELECT f.id, f.chunk_count - gone.chunk_count FROM documents_lexemefrequency f
    JOIN (
        SELECT c.collection_id, c.language, word.lexeme, count(*) AS chunk_count
        FROM documents_chunk c, unnest(tsvector_to_array(c.search_vector)) AS word (lexeme)
        WHERE c.id = ANY(%s) AND c.is_current GROUP BY 1, 2, 3
    ) AS gone USING (collection_id, language, lexeme)
    ORDER BY f.id FOR UPDATE OF f
"""

_RECOUNT = """
    UPDATE documents_lexemefrequency f SET chunk_count = less.chunk_count
    FROM unnest(%s::bigint[], %s::bigint[]) AS less (id, chunk_count) WHERE f.id = less.id
"""


@transaction.atomic
def refresh(collection: Collection) -> None:
    """Count the collection's lexemes, chunks and lengths anew, unless it was deleted meanwhile."""
    hold([collection.id])
    if not Collection.objects.filter(id=collection.id).update(statistics_stale=False):
        return
    with connection.cursor() as cursor:
        cursor.execute(_LANGUAGES, [collection.id])
        languages = cursor.fetchall()
        collection.lexeme_frequencies.all().delete()
        collection.lexical_statistics.all().delete()
        for language, chunk_count, average_length in languages:
            key = [collection.id, language]
            cursor.execute(_FREQUENCIES, [collection.workspace_id, *key, *key])
            LexicalStatistics.objects.create(
                workspace_id=collection.workspace_id,
                collection=collection,
                language=language,
                chunk_count=chunk_count,
                average_length=max(1.0, float(average_length)),
            )


def hold(collection_ids: Iterable[int]) -> None:
    """Wait until nobody else counts these, or takes out of the counts. Before their rows."""
    with connection.cursor() as cursor:
        for collection_id in sorted(set(collection_ids)):
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended('statistics', %s))", [collection_id]
            )


def note_language(document: Document, language: str) -> None:
    """Make sure that searches look for this language, and that the next refresh counts.

    Called in the loading transaction: a document is found from the moment it is ready, even
    before the first refresh.
    """
    LexicalStatistics.objects.bulk_create(
        [
            LexicalStatistics(
                workspace_id=document.workspace_id,
                collection_id=document.collection_id,
                language=language,
                chunk_count=1,
                average_length=100.0,
            )
        ],
        ignore_conflicts=True,
    )
    note_change(document.collection_id)


def forget(chunks: QuerySet[Any]) -> None:
    """Take the lexemes of chunks that are about to be deleted, or superseded, out of the counts.

    At once, so that no word of a deleted document stays behind, not even in the statistics: those
    that are counted just now are waited for, because they may have seen it.
    """
    rows = list(chunks.values_list("id", "collection_id"))
    if not rows:
        return
    hold(collection_id for _, collection_id in rows)
    ids = [pk for pk, _ in rows]
    with connection.cursor() as cursor:
        cursor.execute(_LESS, [ids])
        left = dict(cursor.fetchall())
        # By arrays, whose lengths the planner knows: it joined 50,000 words row by row.
        some = [pk for pk, count in left.items() if count > 0]
        cursor.execute(_RECOUNT, [some, [left[pk] for pk in some]])
        none = [pk for pk, count in left.items() if count <= 0]
        cursor.execute("DELETE FROM documents_lexemefrequency WHERE id = ANY(%s)", [none])


# Words that the collection did not have come with it.
_MORE = """
    INSERT INTO documents_lexemefrequency AS known
        (workspace_id, collection_id, language, lexeme, chunk_count)
    SELECT c.workspace_id, c.collection_id, c.language, word.lexeme, count(*)
    FROM documents_chunk c, unnest(tsvector_to_array(c.search_vector)) AS word (lexeme)
    WHERE c.id = ANY(%s) AND c.is_current GROUP BY 1, 2, 3, 4
    ORDER BY 2, 3, 4
    ON CONFLICT (collection_id, language, lexeme, workspace_id)
        DO UPDATE SET chunk_count = known.chunk_count + excluded.chunk_count
"""


def remember(chunks: QuerySet[Any]) -> None:
    """Put the lexemes of chunks into the counts, from which `forget` took those of their texts
    before: nothing else counts meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute(_MORE, [list(chunks.values_list("pk", flat=True))])


def note_change(collection_id: int) -> None:
    """Make sure that the next refresh counts.

    Called in the transaction of a change, and once more when what was loaded is committed: a count
    that ran at the same time did not see it, and may have taken the sign of it away.
    """
    Collection.objects.filter(id=collection_id, statistics_stale=False).update(
        statistics_stale=True
    )


def refresh_after_run(collection: Collection) -> None:
    """Refresh a collection that changed, if that is cheap; beat does the others."""
    stale = Collection.objects.filter(id=collection.id, statistics_stale=True).exists()
    if (
        stale
        and Chunk.objects.filter(collection=collection)[:REFRESH_AT_ONCE].count() < REFRESH_AT_ONCE
    ):
        refresh(collection)


def refresh_after_batch(collection: Collection, changed: int) -> None:
    """Refresh a collection of which `changed` chunks are new, if that is cheap against them."""
    if not changed:
        return
    chunks = Chunk.objects.filter(collection=collection)[:REFRESH_AT_ONCE].count()
    counted = collection.lexical_statistics.aggregate(chunks=Sum("chunk_count"))["chunks"] or 0
    is_cheap = chunks < max(REFRESH_AFTER_BATCH, CHUNKS_A_CHANGE * changed)
    if chunks < REFRESH_AT_ONCE and (is_cheap or chunks > GROWTH * counted):
        refresh(collection)


def analyze_after_run(chunks: int) -> None:
    """Tell the planner of a bulk load, before the first search after it."""
    if chunks >= ANALYZE_FROM:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE documents_document, documents_chunk")
