"""Compares the inverted index of chunks with the chunks. Begin with `find_differences`."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from django.db import connection

from common.bm25 import BLOCK_BITS, Postings, merged, unpack, unpack_entries
from common.rls import bypass_rls
from common.sql import fetch_rows, read_snapshot
from documents.lexical_index import fetch_ids, removed_ids
from documents.lexical_search import ALL_CHUNKS, PART_MARK

_SAMPLE_WORDS = """
    SELECT chunk.index_id, word.lexeme, word.frequency, least(length(search_vector), 65535)
    FROM documents_chunk AS chunk,
         ragsite_postings(language, context, text, search_vector) AS word
    WHERE index_id = ANY(%s) AND word.lexeme <> ''
"""


def find_differences(collection_id: int, *, sample: int = 200) -> list[str]:
    """Differences between the index of a collection and its chunks, as sentences: of the full list
    of chunks, and of the words of `sample` chunks. Empty if there are none."""
    with bypass_rls(), read_snapshot(connection):
        chunks = unpack_entries(
            fetch_ids(
                "SELECT array_agg((index_id << 24) | least(length(search_vector), 65535)"
                " ORDER BY index_id)"
                " FROM documents_chunk WHERE collection_id = %s",
                collection_id,
            )
        )
        pending = fetch_ids(
            "SELECT array_agg(index_id ORDER BY index_id) FROM documents_pendingchunk"
            " WHERE collection_id = %s",
            collection_id,
        )
        removed = removed_ids(collection_id)
        listed = [
            (segment_id, unpack(base, data), is_current, count, total)
            for segment_id, base, data, is_current, count, total in fetch_rows(
                connection,
                "SELECT segment.id, base, data, is_current, chunk_count + wordless_count,"
                " total_length"
                " FROM documents_lexicalsegment AS segment LEFT JOIN documents_posting AS posting"
                " ON posting.segment_id = segment.id AND posting.lexeme = %s"
                " WHERE collection_id = %s AND base IS NOT NULL",
                [ALL_CHUNKS, collection_id],
            )
        ]
        indexed = merged([part for _, part, *_ in listed])
        alive = indexed.without(removed)
        found = []
        missing = np.setdiff1d(chunks.ids, np.union1d(alive.ids, pending))
        if len(missing):
            found.append(f"chunks that are not indexed: {len(missing):,}")
        stray = np.setdiff1d(alive.ids, chunks.ids)
        if len(stray):
            found.append(f"indexed chunks that are gone or have other words: {len(stray):,}")
        if len(np.unique(indexed.ids)) < len(indexed) or len(np.intersect1d(alive.ids, pending)):
            found.append("chunks are indexed twice")
        unknown = np.setdiff1d(removed, np.union1d(indexed.ids, pending))
        if len(unknown):
            found.append(f"{len(unknown)} removed chunks were never indexed")
        _, here, there = np.intersect1d(chunks.ids, alive.ids, return_indices=True)
        if (chunks.lengths[here] != alive.lengths[there]).any():
            found.append("chunks are indexed with another length")
        found += _pending_differences(collection_id)
        found += _sum_differences(collection_id, listed)
        found += _word_differences(collection_id, alive, sample)
    return found


# Of removed chunks words may be forgotten already, and only they.
_PENDING_DIFFERENCES = """
    WITH listed AS (
        SELECT entry >> 24 AS index_id, language, is_current, lexeme, entry & 16777215 AS counted
        FROM documents_pendingposting, unnest(entries) AS entry
        WHERE collection_id = %(collection)s
    ), expected AS (
        SELECT index_id, language, is_current, word.lexeme,
               word.frequency << 16 | least(length(search_vector), 65535) AS counted
        FROM documents_pendingchunk AS pending
        JOIN documents_chunk AS chunk USING (collection_id, index_id),
             ragsite_postings(language, context, text, search_vector) AS word
        WHERE collection_id = %(collection)s
    )
    SELECT EXISTS (SELECT * FROM expected EXCEPT SELECT * FROM listed)
        OR EXISTS (
            SELECT * FROM listed
            WHERE index_id NOT IN (SELECT index_id FROM documents_removedchunk
                                   WHERE collection_id = %(collection)s)
            EXCEPT SELECT * FROM expected)
        OR EXISTS (
            SELECT FROM listed
            WHERE index_id NOT IN (SELECT index_id FROM documents_pendingchunk
                                   WHERE collection_id = %(collection)s))
"""


def _pending_differences(collection_id: int) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(_PENDING_DIFFERENCES, {"collection": collection_id})
        differs = cursor.fetchone()[0]
    return ["chunks wait to be indexed with other words than they have"] if differs else []


def _sum_differences(
    collection_id: int, listed: Sequence[tuple[int, Postings, bool, int, int]]
) -> list[str]:
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    noted = {}
    for segment_id, part, _, count, total in listed:
        sums[segment_id][0] += len(part)
        sums[segment_id][1] += int(part.lengths.sum(dtype=np.int64))
        noted[segment_id] = [count, total]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM documents_lexicalsegment WHERE collection_id = %s", [collection_id]
        )
        segments = {pk for (pk,) in cursor.fetchall()}
    if segments - sums.keys() or any(sums[pk] != noted[pk] for pk in noted):
        return ["a segment counts other chunks than it lists"]
    return []


def _word_differences(collection_id: int, alive: Postings, sample: int) -> list[str]:
    if not len(alive):
        return []
    step = max(1, len(alive) // sample)
    ids = alive.ids[::step][:sample]
    wanted: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    for index_id, lexeme, frequency, length in fetch_rows(
        connection, _SAMPLE_WORDS, [ids.tolist()]
    ):
        wanted[lexeme][index_id] = (frequency, length)
    indexed: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    bases = np.unique(ids >> BLOCK_BITS)
    for lexeme, base, data in fetch_rows(
        connection,
        "SELECT lexeme, base, data FROM documents_posting WHERE base = ANY(%s) AND segment_id IN"
        " (SELECT id FROM documents_lexicalsegment WHERE collection_id = %s) AND lexeme <> %s"
        " AND NOT starts_with(lexeme, %s)",
        [bases.tolist(), collection_id, ALL_CHUNKS, chr(PART_MARK)],
    ):
        part = unpack(base, data)
        at = np.flatnonzero(np.isin(part.ids, ids))
        for place in at:
            indexed[lexeme][int(part.ids[place])] = (
                int(part.frequencies[place]),
                int(part.lengths[place]),
            )
    return [] if indexed == wanted else ["chunks are indexed with other words than they have"]
