"""Writing the inverted index of chunks: posting lists in rows, changed with the chunks they are of.

How it works (docs/decisions/0051):

- Triggers of `documents_chunk` (migration 0014) give each chunk an `index_id`, another one whenever
  its words, language or version state change. A new id is in `PendingChunk`, one that is gone in
  `RemovedChunk`, from the very transaction of the chunk on.
- `index_pending` moves pending chunks into a segment: for each lexeme blocks of (id, frequency,
  length). Searches score pending chunks by their search vectors, so a chunk is found whether or not
  that has happened yet, with the same score.
- `compact` merges segments of about the same size, and leaves removed chunks out.
- `forget` takes words that only chunks about to vanish have out of the index at once.

Nothing here waits for a search or keeps one waiting: rows that somebody else works on are skipped.
Who takes words out waits for who writes them in (`_hold`), or they would come back.
"""

import logging
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np
from django.db import OperationalError, connection, transaction
from numpy.typing import NDArray
from psycopg.errors import SerializationFailure

from common.bm25 import BLOCK_BITS, Ids, Postings, merged, pack, unpack
from common.copy import copy_rows
from common.fence import unfenced
from common.postgresql.binary import fetch, snapshot
from documents.ingestion.locks import share_collections

logger = logging.getLogger(__name__)

#: So many pending chunks of a collection are worth a segment: to score them by their search vectors
#: takes a millisecond.
PENDING = 256
#: At most so many chunks become one segment at once.
BATCH = 20_000
#: So many segments of one size are merged into one of the next, which is as many times greater.
FANOUT = 8
#: Segments are written anew without removed chunks when these are so many, and such a share.
REMOVED = 1_000
REMOVED_SHARE = 0.2
#: Segments of more chunks are merged with no others: nothing would be gained by it.
LARGEST = 2_000_000

#: Others that write the same index once are bad luck.
TRIES = 5

#: The lexeme under which a segment lists all its chunks.
ALL = ""

_TAKE = """
    DELETE FROM documents_pendingchunk
    WHERE (collection_id, index_id) IN (
        SELECT collection_id, index_id FROM documents_pendingchunk
        WHERE collection_id = %s ORDER BY index_id LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING index_id
"""

_SEARCH_VECTORS = """
    SELECT workspace_id, language::text, is_current, index_id, tsvectorsend(search_vector)
    FROM documents_chunk WHERE index_id = ANY(%s) ORDER BY 1, 2, 3, 4
"""

_DROP_REMOVED = """
    DELETE FROM documents_removedchunk WHERE collection_id = %s AND index_id = ANY(%s)
"""

_POSTING_COLUMNS = (
    ("workspace_id", "int8"),
    ("segment_id", "int8"),
    ("lexeme", "text"),
    ("base", "int8"),
    ("data", "bytea"),
)

_ADD_LEXEMES = """
    INSERT INTO documents_lexeme (workspace_id, collection_id, language, lexeme)
    SELECT %s, %s, %s::regconfig, lexeme FROM unnest(%s::text[]) AS lexeme WHERE lexeme <> ''
    ORDER BY lexeme COLLATE "C"
    ON CONFLICT DO NOTHING
"""

_SEGMENT = """
    INSERT INTO documents_lexicalsegment
        (workspace_id, collection_id, language, is_current, chunk_count, wordless_count,
         total_length, created_at)
    VALUES (%s, %s, %s::regconfig, %s, %s, %s, %s, now()) RETURNING id
"""


def index_pending(collection_id: int, *, at_least: int = 1) -> int:
    """Move the collection's pending chunks into segments, where there are `at_least` so many; how
    many were moved. Then merge segments where that is due."""
    moved = 0
    # The first look waits for nobody: storing one small text comes here, too.
    while moved or _is_due(collection_id, at_least):
        with _owned():
            _hold(collection_id)
            if not _is_due(collection_id, at_least):
                break
            taken = _index_batch(collection_id)
        moved += taken
        if not taken:
            break
    if moved:
        compact(collection_id)
    return moved


def _is_due(collection_id: int, at_least: int) -> bool:
    with connection.cursor() as cursor, unfenced():
        cursor.execute(
            "SELECT count(*) >= %s FROM (SELECT FROM documents_pendingchunk"
            " WHERE collection_id = %s LIMIT %s) AS pending",
            [at_least, collection_id, at_least],
        )
        return bool(cursor.fetchone()[0])


def _index_batch(collection_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [collection_id, BATCH])
        ids = [index_id for (index_id,) in cursor.fetchall()]
    if not ids:
        return 0
    alive: list[Ids] = []
    rows = _binary(_SEARCH_VECTORS, [ids])
    for (workspace_id, language, is_current), group in groupby(rows, key=lambda row: row[:3]):
        lexemes = _inverted((index_id, vector) for *_, index_id, vector in group)
        alive.append(lexemes[ALL].ids)
        _add_segment(workspace_id, collection_id, language, is_current, lexemes)
    gone = np.setdiff1d(np.array(ids, np.int64), np.concatenate(alive) if alive else [])
    if len(gone):
        # They were removed before they were in any segment: no posting is to be passed over.
        with connection.cursor() as cursor:
            cursor.execute(
                _DROP_REMOVED,
                [collection_id, gone.tolist()],
            )
    return len(ids)


#: Bytes that do not begin a position of weight A, in the form in which a tsvector is sent.
_OTHER_WEIGHTS = bytes(range(0xC0))


def _inverted(vectors: Iterable[tuple[int, bytes]]) -> dict[str, Postings]:
    """The postings of each lexeme, and under `ALL` of all, from index ids, ascending, and the
    search vectors in the form in which PostgreSQL sends them: the number of lexemes (4 bytes), then
    of each its text, a zero, the number of positions and the positions (2 bytes each, the weight in
    the upper two bits). In Python, because `unnest` and grouping take ten times as long."""
    found: defaultdict[bytes, array[int]] = defaultdict(lambda: array("q"))
    for index_id, vector in vectors:
        count = int.from_bytes(vector[:4])
        once = index_id << 24 | 1 << 16 | min(count, 65_535)
        found[b""].append(once)
        at = 4
        for _ in range(count):
            end = vector.index(0, at)
            lexeme, first = vector[at:end], end + 3
            positions = vector[end + 1] << 8 | vector[end + 2]
            at = first + 2 * positions
            if positions == 1 and vector[first] < 0xC0:
                found[lexeme].append(once)
            else:
                # A word of the context counts twice: once as a word, once as a heading (weight A).
                headings = len(vector[first:at:2].translate(None, _OTHER_WEIGHTS))
                found[lexeme].append(once + (min(positions + headings, 255) - 1 << 16))
    return {
        lexeme.decode(): _unpacked(np.frombuffer(numbers, np.int64))
        for lexeme, numbers in found.items()
    }


def _unpacked(numbers: NDArray[np.int64]) -> Postings:
    """From index id, frequency and length, shifted together."""
    return Postings(numbers >> 24, (numbers >> 16) & 0xFF, numbers & 0xFFFF)


def _add_segment(
    workspace_id: int,
    collection_id: int,
    language: str,
    is_current: bool,
    lexemes: dict[str, Postings],
) -> None:
    everything = lexemes[ALL]
    with connection.cursor() as cursor:
        cursor.execute(
            _SEGMENT,
            [
                workspace_id,
                collection_id,
                language,
                is_current,
                int(np.count_nonzero(everything.lengths)),
                int(np.count_nonzero(everything.lengths == 0)),
                int(everything.lengths.sum(dtype=np.int64)),
            ],
        )
        segment_id = cursor.fetchone()[0]
        if is_current:
            cursor.execute(_ADD_LEXEMES, [workspace_id, collection_id, language, list(lexemes)])
    rows = (
        (workspace_id, segment_id, lexeme, base, data)
        for lexeme, postings in lexemes.items()
        for base, data in pack(postings).items()
    )
    copy_rows("documents_posting", _POSTING_COLUMNS, rows)


# --- merging -------------------------------------------------------------------------------------

_SEGMENTS = """
    SELECT id, language::text, is_current, chunk_count + wordless_count AS chunks
    FROM documents_lexicalsegment
    WHERE collection_id = %s ORDER BY language::text, is_current, chunks, id
"""

_REMOVED = """
    SELECT language::text, is_current, count(*) FROM documents_removedchunk AS gone
    WHERE collection_id = %s
      AND NOT EXISTS (SELECT FROM documents_pendingchunk AS added
                      WHERE added.collection_id = gone.collection_id
                        AND added.index_id = gone.index_id)
    GROUP BY 1, 2
"""


def compact(collection_id: int, *, everything: bool = False) -> int:
    """Merge segments of the collection where many are of one size, or many of their chunks are
    removed; with `everything` all of them. How many segments were merged."""
    count = 0
    cleaned: set[tuple[str, bool]] = set()
    while True:
        with connection.cursor() as cursor, unfenced():
            cursor.execute(_REMOVED, [collection_id])
            removed = {(language, current): many for language, current, many in cursor.fetchall()}
            cursor.execute(_SEGMENTS, [collection_id])
            segments = cursor.fetchall()
        due: list[int] = []
        for key, group in groupby(segments, key=lambda row: (row[1], row[2])):
            sizes = [(pk, chunks) for pk, _, _, chunks in group]
            gone = 0 if key in cleaned else removed.get(key, 0)
            due = _due(sizes, gone, everything=everything)
            if due:
                if len(due) == len(sizes):
                    cleaned.add(key)
                break
        if not due or not _merge(collection_id, due):
            return count
        count += len(due)


def _due(segments: Sequence[tuple[int, int]], removed: int, *, everything: bool) -> list[int]:
    """Which of the segments (id, number of chunks), smallest first, are to become one."""
    chunks = sum(size for _, size in segments)
    if everything:
        return [pk for pk, _ in segments] if len(segments) > 1 or removed else []
    if removed >= max(REMOVED, REMOVED_SHARE * chunks) or (removed and removed >= chunks):
        return [pk for pk, _ in segments]
    tiers = defaultdict(list)
    for pk, size in segments:
        if size < LARGEST:
            tiers[int(np.log(max(size / PENDING, 1)) / np.log(FANOUT))].append(pk)
    return next((tier for _, tier in sorted(tiers.items()) if len(tier) >= FANOUT), [])


def _merge(collection_id: int, segment_ids: Sequence[int]) -> bool:
    """Make one segment of these, without what was removed; False where somebody else does."""
    with _owned(), connection.cursor() as cursor:
        _hold(collection_id)
        cursor.execute(
            "SELECT id, workspace_id, language::text, is_current FROM documents_lexicalsegment"
            " WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED",
            [list(segment_ids)],
        )
        rows = cursor.fetchall()
        if len(rows) < len(segment_ids):
            return False
        _, workspace_id, language, is_current = rows[0]
        removed = removed_ids(collection_id)
        lexemes: dict[str, Postings] = {}
        dead = np.zeros(0, np.int64)
        for lexeme, parts in groupby(_blocks(segment_ids), key=lambda row: row[0]):
            together = merged([unpack(base, data) for _, base, data in parts])
            alive = together.without(removed)
            if lexeme == ALL:
                dead = np.setdiff1d(together.ids, alive.ids)
            if len(alive):
                lexemes[lexeme] = alive
        cursor.execute(
            "DELETE FROM documents_lexicalsegment WHERE id = ANY(%s)", [list(segment_ids)]
        )
        if len(dead):
            cursor.execute(
                _DROP_REMOVED,
                [collection_id, dead.tolist()],
            )
        if ALL in lexemes:
            _add_segment(workspace_id, collection_id, language, is_current, lexemes)
        if len(dead) and is_current:
            _drop_lexemes(collection_id)
    return True


def _blocks(segment_ids: Sequence[int]) -> list[tuple[Any, ...]]:
    return _binary(
        "SELECT lexeme, base, data FROM documents_posting WHERE segment_id = ANY(%s)"
        " ORDER BY lexeme, base",
        [list(segment_ids)],
    )


def removed_ids(collection_id: int) -> Ids:
    """Index ids that no chunk of the collection has any more, ascending."""
    return _integers(
        "SELECT array_agg(index_id ORDER BY index_id) FROM documents_removedchunk"
        " WHERE collection_id = %s",
        collection_id,
    )


# --- forgetting ----------------------------------------------------------------------------------

# Blocks that may hold nothing else: those with no more postings than there are dead ids.
_OF_THEIR_WORDS = """
    SELECT posting.segment_id, posting.lexeme, posting.base, posting.data
    FROM (SELECT DISTINCT chunk.collection_id, word.lexeme
          FROM documents_chunk AS chunk,
               unnest(tsvector_to_array(chunk.search_vector)) AS word (lexeme)
          WHERE chunk.id = ANY(%s)) AS word
    JOIN documents_lexicalsegment AS segment USING (collection_id)
    JOIN documents_posting AS posting
      ON posting.segment_id = segment.id AND posting.lexeme = word.lexeme COLLATE "C"
    WHERE octet_length(posting.data) <= 5 * %s
"""

_DROP_BLOCKS = """
    DELETE FROM documents_posting AS posting
    USING unnest(%s::bigint[], %s::text[], %s::bigint[]) AS gone (segment_id, lexeme, base)
    WHERE posting.segment_id = gone.segment_id AND posting.lexeme = gone.lexeme COLLATE "C"
      AND posting.base = gone.base
"""

_DROP_LEXEMES = """
    DELETE FROM documents_lexeme AS known
    WHERE known.collection_id = %(collection)s
      AND (%(lexemes)s::text[] IS NULL OR known.lexeme = ANY(%(lexemes)s::text[] COLLATE "C"))
      AND NOT EXISTS (
          SELECT FROM documents_lexicalsegment AS segment
          JOIN documents_posting AS posting
            ON posting.segment_id = segment.id AND posting.lexeme = known.lexeme
          WHERE segment.collection_id = known.collection_id AND segment.is_current
            AND segment.language = known.language)
"""


def forget(chunks: Any) -> None:
    """Take what only these chunks (a queryset) say out of the index, in the transaction that is
    about to delete them or to change their words: no word of a deleted text is left in any table.

    What other chunks say too stays where it is; there a removed chunk is passed over.
    """
    by_collection: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pk, collection_id, index_id in chunks.values_list("id", "collection_id", "index_id"):
        by_collection[collection_id].append((pk, index_id))
    for collection_id, rows in sorted(by_collection.items()):
        with _owned(), connection.cursor() as cursor:
            cursor.execute(_LOCK, [collection_id])
            dying = np.array([index_id for _, index_id in rows], np.int64)
            dead = np.union1d(dying, removed_ids(collection_id))
            gone = [
                (segment_id, lexeme, base)
                for segment_id, lexeme, base, data in _binary(
                    _OF_THEIR_WORDS, [[pk for pk, _ in rows], len(dead)]
                )
                if not len(unpack(base, data).without(dead))
            ]
            if gone:
                cursor.execute(_DROP_BLOCKS, [list(column) for column in zip(*gone, strict=True)])
                _drop_lexemes(collection_id, sorted({lexeme for _, lexeme, _ in gone}))


def _drop_lexemes(collection_id: int, lexemes: Sequence[str] | None = None) -> None:
    """Take these of the collection's words, or any, out of the vocabulary where no segment has
    them any more."""
    with connection.cursor() as cursor:
        cursor.execute(
            _DROP_LEXEMES,
            {"collection": collection_id, "lexemes": None if lexemes is None else list(lexemes)},
        )


# --- building anew, and comparing -----------------------------------------------------------------


def rebuild(collection_id: int) -> int:
    """Build the collection's index anew from its chunks; how many it holds. Searches see the old
    one until this is committed."""
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            count = _rebuild(collection_id)
            break
        except OperationalError as error:
            # Somebody else wrote the index between this one's snapshot and its lock.
            is_overtaken = isinstance(error.__cause__, SerializationFailure)
            if not is_overtaken or not tries_left or connection.in_atomic_block:
                raise
    compact(collection_id)
    return count


def _rebuild(collection_id: int) -> int:
    outermost = not connection.in_atomic_block
    with _owned(), connection.cursor() as cursor:
        if outermost:
            # What is removed or added meanwhile is noted by its own transaction, beside this one.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        _hold(collection_id)
        for table in ("lexicalsegment", "pendingchunk", "removedchunk", "lexeme"):
            cursor.execute(
                f"DELETE FROM documents_{table} WHERE collection_id = %s",  # noqa: S608
                [collection_id],
            )
        cursor.execute(_PEND, {"collection": collection_id})
        count = 0
        while moved := _index_batch(collection_id):
            count += moved
    return count


_PEND = """
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM documents_chunk
    WHERE collection_id = %(collection)s
"""


def index_all_pending(*, at_least: int = 1) -> int:
    """`index_pending` for every collection; how many chunks were moved. One that fails does not
    keep the others from it: it is tried again next time."""
    with connection.cursor() as cursor, unfenced():
        cursor.execute(
            "SELECT collection_id FROM documents_pendingchunk GROUP BY 1 HAVING count(*) >= %s"
            " UNION SELECT collection_id FROM documents_removedchunk GROUP BY 1 ORDER BY 1",
            [at_least],
        )
        collection_ids = [pk for (pk,) in cursor.fetchall()]
    moved = 0
    for collection_id in collection_ids:
        try:
            count = index_pending(collection_id, at_least=at_least)
            if not count:  # else they are merged already, where that is due
                compact(collection_id)
            moved += count
        except Exception:
            if connection.in_atomic_block:
                raise
            logger.exception("the lexical index of collection %s was not updated", collection_id)
    return moved


_SAMPLE = """
    SELECT chunk.index_id, word.lexeme,
           least(cardinality(word.positions) + cardinality(array_positions(word.weights, 'A')),
                 255),
           least(length(chunk.search_vector), 65535)
    FROM (SELECT * FROM documents_chunk WHERE index_id = ANY(%s)) AS chunk,
         unnest(chunk.search_vector) AS word
"""


def differences(collection_id: int, *, sample: int = 200) -> list[str]:
    """What the index of a collection says otherwise than its chunks, in words: the list of chunks
    whole, the words of a `sample` of them. Empty where all is right."""
    with unfenced(), snapshot(connection):
        chunks = _unpacked(
            _integers(
                "SELECT array_agg((index_id << 24) | least(length(search_vector), 65535)"
                " ORDER BY index_id)"
                " FROM documents_chunk WHERE collection_id = %s",
                collection_id,
            )
        )
        pending = _integers(
            "SELECT array_agg(index_id ORDER BY index_id) FROM documents_pendingchunk"
            " WHERE collection_id = %s",
            collection_id,
        )
        removed = removed_ids(collection_id)
        listed = [
            (segment_id, unpack(base, data), is_current, count, total)
            for segment_id, base, data, is_current, count, total in _binary(
                "SELECT segment.id, base, data, is_current, chunk_count + wordless_count,"
                " total_length"
                " FROM documents_lexicalsegment AS segment LEFT JOIN documents_posting AS posting"
                " ON posting.segment_id = segment.id AND posting.lexeme = %s"
                " WHERE collection_id = %s AND base IS NOT NULL",
                [ALL, collection_id],
            )
        ]
        indexed = merged([part for _, part, *_ in listed])
        alive = indexed.without(removed)
        found = _set_differences(chunks, indexed, alive, pending, removed)
        found += _sum_differences(collection_id, listed)
        found += _word_differences(collection_id, alive, sample)
    return found


def _set_differences(
    chunks: Postings, indexed: Postings, alive: Postings, pending: Ids, removed: Ids
) -> list[str]:
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
    return found


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
    for index_id, lexeme, frequency, length in _binary(_SAMPLE, [ids.tolist()]):
        wanted[lexeme][index_id] = (frequency, length)
    indexed: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    bases = np.unique(ids >> BLOCK_BITS)
    for lexeme, base, data in _binary(
        "SELECT lexeme, base, data FROM documents_posting WHERE base = ANY(%s) AND segment_id IN"
        " (SELECT id FROM documents_lexicalsegment WHERE collection_id = %s) AND lexeme <> %s",
        [bases.tolist(), collection_id, ALL],
    ):
        part = unpack(base, data)
        at = np.flatnonzero(np.isin(part.ids, ids))
        for place in at:
            indexed[lexeme][int(part.ids[place])] = (
                int(part.frequencies[place]),
                int(part.lengths[place]),
            )
    return [] if indexed == wanted else ["chunks are indexed with other words than they have"]


# --- statements ----------------------------------------------------------------------------------


@contextmanager
def _owned() -> Iterator[None]:
    """A transaction outside the fence: the index is kept by the site, not by whoever is asking."""
    with unfenced(), transaction.atomic():
        connection.fence_transaction()  # type: ignore[attr-defined]  # of common.postgresql
        yield


_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('index', %s))"


def _hold(collection_id: int) -> None:
    """Wait until nobody deletes the collection, writes its index, or takes words out of it; held
    to the end of the transaction, and before any row."""
    share_collections([collection_id])
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [collection_id])


def _binary(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows in PostgreSQL's binary form; arrays of integers as numpy's."""
    with unfenced():
        return fetch(connection, statement, parameters)


def _integers(statement: str, collection_id: int) -> Ids:
    """The one array that a statement about a collection gives."""
    found = _binary(statement, [collection_id])[0][0]
    ids: Ids = np.zeros(0, np.int64) if found is None else found
    return ids
