"""Writes the inverted index of chunks: posting lists in rows, changed with their chunks. Begin with
`index_pending`.

How it works (docs/decisions/0051):
- Triggers of `documents_chunk` (migration 0014) give each chunk an `index_id`, a new one whenever
  its words, language or version state change. New ids go into `PendingChunk`, obsolete ones into
  `RemovedChunk`, in the same transaction.
- Triggers also write the words of new ids into `PendingPosting` (migration 0022), where a search
  looks them up, and delete them with their `PendingChunk`.
- `index_pending` moves pending chunks into a segment: for each lexeme blocks of (id, frequency,
  length). A chunk is found with the same score before and after that.
  `indexed_in_transaction` writes the segment of many new chunks in their own transaction, so that
  they are never pending.
- Beside its words a chunk is listed under their forms, such as `orleans` for `Orléans`
  (`ragsite_forms`, migration 0024), marked by `FORM_MARK`. In a segment it is also listed under
  parts of its compounds (`documents.compounds`), marked by `PART_MARK`.
- `merge_segments` merges segments of about the same size, and leaves removed chunks out.
- `forget_words` removes words that only chunks about to be deleted have from the index at once.
- `documents.lexical_differences` compares the index with the chunks.

Nothing here blocks a search or is blocked by one: rows that somebody else works on are skipped.
Removing words waits for writers (`_lock_index`), or the words would come back.
"""

import logging
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import psycopg
from django.db import OperationalError, connection, transaction
from psycopg.errors import SerializationFailure

from common.bm25 import BLOCK, BLOCK_BITS, Ids, Postings, merged, pack, unpack, unpack_entries
from common.rls import bypass_rls
from common.sql import copy_rows, fetch_rows
from documents.compounds import COMPOUNDING, MAY_COMPOUND, SURE_LANGUAGE_CHARACTERS, Splitter
from documents.ingestion.concurrency import share_collection_locks
from documents.lexical_search import ALL_CHUNKS, FIRST_WORD, FORM_MARK, PART_MARK, is_part

logger = logging.getLogger(__name__)

#: Pending chunks of a collection from which a segment is built: looking up the words of a question
#: in fewer takes at most a millisecond.
SEGMENT_MIN_PENDING = 256
#: Maximum chunks of a new segment.
SEGMENT_MAX_CHUNKS = 20_000
#: Number of segments of one size that are merged into one of the next size.
MERGE_FANOUT = 8
#: Segments are rewritten without removed chunks from this number and this share of them.
COMPACT_MIN_REMOVED = 1_000
COMPACT_MIN_REMOVED_SHARE = 0.2
#: Larger segments are not merged: nothing would be gained.
MERGE_MAX_CHUNKS = 2_000_000

#: Attempts when others write the same index concurrently.
LOCK_TRIES = 5

# An array, because IN may run the subquery once a row, by another plan, and then takes more.
_TAKE_PENDING = """
    DELETE FROM documents_pendingchunk
    WHERE collection_id = %(collection)s AND index_id = ANY(ARRAY(
        SELECT index_id FROM documents_pendingchunk
        WHERE collection_id = %(collection)s ORDER BY index_id LIMIT %(most)s
        FOR UPDATE SKIP LOCKED))
    RETURNING index_id
"""

# OFFSET 0: forms are made after sorting, while the rows before are worked on.
_SEARCH_VECTORS = """
    SELECT workspace_id, language::text, is_current, index_id, tsvectorsend(search_vector),
           ragsite_forms(language, context || E'\\n' || text, search_vector),
           CASE WHEN language::text = ANY(%s) OR length(text) < %s
                THEN context || E'\\n' || text ELSE '' END
    FROM (SELECT * FROM documents_chunk WHERE {column} = ANY(%s)
          ORDER BY workspace_id, language::text, is_current, index_id OFFSET 0) AS chunk
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

_ADD_LEXEMES = f"""
    INSERT INTO documents_lexeme (workspace_id, collection_id, language, lexeme)
    SELECT %s, %s, %s::regconfig, lexeme FROM unnest(%s::text[]) AS lexeme
    WHERE lexeme >= chr({FIRST_WORD}) COLLATE "C"
    ORDER BY lexeme COLLATE "C"
    ON CONFLICT DO NOTHING
"""  # noqa: S608 (a constant)

_SEGMENT = """
    INSERT INTO documents_lexicalsegment
        (workspace_id, collection_id, language, is_current, chunk_count, wordless_count,
         total_length, created_at)
    VALUES (%s, %s, %s::regconfig, %s, %s, %s, %s, now()) RETURNING id
"""


def index_pending(collection_id: int, *, at_least: int = 1) -> int:
    """Move the collection's pending chunks into segments, if there are `at_least` this many;
    returns how many were moved. Then merge segments where due."""
    moved = 0
    # The first check takes no lock, because storing one small text comes here too.
    while moved or _has_pending(collection_id, at_least):
        with _site_transaction():
            _lock_index(collection_id)
            if not _has_pending(collection_id, at_least):
                break
            taken = _index_batch(collection_id)
        moved += taken
        if not taken:
            break
    if moved:
        merge_segments(collection_id)
    return moved


def _has_pending(collection_id: int, at_least: int) -> bool:
    with connection.cursor() as cursor, bypass_rls():
        cursor.execute(
            "SELECT count(*) >= %s FROM (SELECT FROM documents_pendingchunk"
            " WHERE collection_id = %s LIMIT %s) AS pending",
            [at_least, collection_id, at_least],
        )
        return bool(cursor.fetchone()[0])


def _index_batch(collection_id: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_TAKE_PENDING, {"collection": collection_id, "most": SEGMENT_MAX_CHUNKS})
        ids = [index_id for (index_id,) in cursor.fetchall()]
    if not ids:
        return 0
    alive = _add_segments(collection_id, "index_id", ids)
    gone = np.setdiff1d(np.array(ids, np.int64), np.concatenate(alive) if alive else [])
    if len(gone):
        # They were removed before they were in any segment: no posting is to be passed over.
        with connection.cursor() as cursor:
            cursor.execute(_DROP_REMOVED, [collection_id, gone.tolist()])
    return len(ids)


@contextmanager
def indexed_in_transaction(collection_id: int, document_ids: Sequence[int]) -> Iterator[None]:
    """Within the block, in the caller's transaction, chunks of these documents are inserted, which
    had none. At its end they are in a segment; after the commit it is merged where that is due.

    For many chunks only, since each segment costs a search time. The caller must not have locked
    rows that others may wait for while they hold the index (`_lock_index`).
    """
    set_mode = "SELECT set_config('ragsite.index_at_once', %s, true)"
    with connection.cursor() as cursor:
        cursor.execute(set_mode, ["on"])
        yield
        cursor.execute(set_mode, ["off"])
    with _site_transaction():
        _lock_index(collection_id)
        _add_segments(collection_id, "document_id", document_ids)
    transaction.on_commit(partial(merge_segments, collection_id), robust=True)


def _add_segments(collection_id: int, column: str, ids: Sequence[int]) -> list[Ids]:
    """A segment for each language and version state of the chunks with these values of `column`;
    returns their index ids by segment."""
    segments: list[tuple[tuple[int, str, bool], list[str], dict[str, Postings]]] = []
    with bypass_rls(), psycopg.Cursor(connection.connection) as cursor:
        connection.apply_rls()  # type: ignore[attr-defined]  # of common.postgresql
        rows = cursor.stream(
            _SEARCH_VECTORS.format(column=column),
            [[*COMPOUNDING], SURE_LANGUAGE_CHARACTERS, list(ids)],
            binary=True,
        )
        for key, chunks in groupby(rows, key=lambda row: row[:3]):
            texts: list[str] = []
            segments.append((key, texts, _invert(chunks, texts)))
    for (workspace_id, language, is_current), texts, lexemes in segments:
        if any(map(MAY_COMPOUND.search, texts)):
            lexemes.update(_compound_parts(collection_id, language, texts, lexemes))
        _add_segment(workspace_id, collection_id, language, is_current, lexemes)
    return [lexemes[ALL_CHUNKS].ids for *_, lexemes in segments]


_KNOWN_LEXEMES = """
    SELECT lexeme FROM documents_lexeme WHERE collection_id = %s AND language = %s::regconfig
"""
_STEMS = """
    SELECT part, (tsvector_to_array(to_tsvector(%s::regconfig, part)))[1]
    FROM unnest(%s::text[]) AS part
"""


def _compound_parts(
    collection_id: int, language: str, texts: Sequence[str], lexemes: Mapping[str, Postings]
) -> dict[str, Postings]:
    """Postings of the parts of compounds, of chunks that do not have them as words too. `texts` are
    those of the chunks that `lexemes` lists, in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN_LEXEMES, [collection_id, language])
        splitter = Splitter(language, {lexeme for (lexeme,) in cursor.fetchall()} | lexemes.keys())
        parts = [splitter.parts(text) for text in texts]
        cursor.execute(_STEMS, [language, sorted(set().union(*parts))])
        stem_of = dict(cursor.fetchall())
    listed: defaultdict[str, list[int]] = defaultdict(list)
    for place, own in enumerate(parts):
        for stem in {stem_of[part] for part in own} - {None}:
            listed[stem].append(place)
    everything = lexemes[ALL_CHUNKS]
    found: dict[str, Postings] = {}
    for stem, places in listed.items():
        ids, lengths = everything.ids[places], everything.lengths[places]
        postings = Postings(ids, np.ones(len(ids), np.uint8), lengths)
        if stem in lexemes:
            postings = postings.without(lexemes[stem].ids)
        if len(postings):
            found[chr(PART_MARK) + stem] = postings
    return found


#: Bytes that do not begin a position of weight A, in the form in which a tsvector is sent.
_OTHER_WEIGHTS = bytes(range(0xC0))


def _invert(chunks: Iterable[tuple[Any, ...]], texts: list[str]) -> dict[str, Postings]:
    """Postings by lexeme, and under `ALL_CHUNKS` of all chunks, from rows of `_SEARCH_VECTORS`,
    whose texts are added to `texts`. Vectors are in PostgreSQL's binary format: the number of
    lexemes (4 bytes), then for each its text, a zero byte, the number of positions and the
    positions (2 bytes each, the weight in the upper two bits). In Python, because `unnest` and
    grouping take ten times as long."""
    found: defaultdict[bytes, array[int]] = defaultdict(lambda: array("q"))
    for *_, index_id, vector, forms, text in chunks:
        texts.append(text)
        count = int.from_bytes(vector[:4])
        one = index_id << 24 | 1 << 16 | min(count, 65_535)
        found[b""].append(one)
        for form in forms:
            found[(chr(FORM_MARK) + form).encode()].append(one)
        at = 4
        for _ in range(count):
            end = vector.index(0, at)
            lexeme, first = vector[at:end], end + 3
            positions = vector[end + 1] << 8 | vector[end + 2]
            at = first + 2 * positions
            if positions == 1 and vector[first] < 0xC0:
                found[lexeme].append(one)
            else:
                # A word of the context counts twice: once as a word, once as a heading (weight A).
                headings = len(vector[first:at:2].translate(None, _OTHER_WEIGHTS))
                found[lexeme].append(one + (min(positions + headings, 255) - 1 << 16))
    return {
        lexeme.decode(): unpack_entries(np.frombuffer(numbers, np.int64))
        for lexeme, numbers in found.items()
    }


def _add_segment(
    workspace_id: int,
    collection_id: int,
    language: str,
    is_current: bool,
    lexemes: dict[str, Postings],
) -> None:
    everything = lexemes[ALL_CHUNKS]
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


def merge_segments(collection_id: int, *, everything: bool = False) -> int:
    """Merge segments of the collection where many have about the same size, or many of their chunks
    were removed; with `everything` all of them. Returns how many segments were merged."""
    count = 0
    cleaned: set[tuple[str, bool]] = set()
    while True:
        with connection.cursor() as cursor, bypass_rls():
            cursor.execute(_REMOVED, [collection_id])
            removed = {(language, current): many for language, current, many in cursor.fetchall()}
            cursor.execute(_SEGMENTS, [collection_id])
            segments = cursor.fetchall()
        due: list[int] = []
        for key, group in groupby(segments, key=lambda row: (row[1], row[2])):
            sizes = [(pk, chunks) for pk, _, _, chunks in group]
            gone = 0 if key in cleaned else removed.get(key, 0)
            due = _segments_to_merge(sizes, gone, everything=everything)
            if due:
                if len(due) == len(sizes):
                    cleaned.add(key)
                break
        if not due or not _merge_into_one(collection_id, due):
            return count
        count += len(due)


def _segments_to_merge(
    segments: Sequence[tuple[int, int]], removed: int, *, everything: bool
) -> list[int]:
    """The segments, given as (id, number of chunks) in ascending size, to merge into one."""
    chunks = sum(size for _, size in segments)
    if everything:
        return [pk for pk, _ in segments] if len(segments) > 1 or removed else []
    if removed >= max(COMPACT_MIN_REMOVED, COMPACT_MIN_REMOVED_SHARE * chunks) or (
        removed and removed >= chunks
    ):
        return [pk for pk, _ in segments]
    tiers = defaultdict(list)
    for pk, size in segments:
        if size < MERGE_MAX_CHUNKS:
            tiers[int(np.log(max(size / SEGMENT_MIN_PENDING, 1)) / np.log(MERGE_FANOUT))].append(pk)
    return next((tier for _, tier in sorted(tiers.items()) if len(tier) >= MERGE_FANOUT), [])


def _merge_into_one(collection_id: int, segment_ids: Sequence[int]) -> bool:
    """Merge these segments into one without removed chunks; False if another process does."""
    with _site_transaction(), connection.cursor() as cursor:
        _lock_index(collection_id)
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
        blocks = _fetch_rows(
            "SELECT lexeme, base, data FROM documents_posting WHERE segment_id = ANY(%s)"
            " ORDER BY lexeme, base",
            [list(segment_ids)],
        )
        for lexeme, parts in groupby(blocks, key=lambda row: row[0]):
            together = merged([unpack(base, data) for _, base, data in parts])
            alive = together.without(removed)
            if lexeme == ALL_CHUNKS:
                dead = np.setdiff1d(together.ids, alive.ids)
            if len(alive):
                lexemes[lexeme] = alive
        cursor.execute(
            "DELETE FROM documents_lexicalsegment WHERE id = ANY(%s)", [list(segment_ids)]
        )
        if len(dead):
            cursor.execute(_DROP_REMOVED, [collection_id, dead.tolist()])
        if ALL_CHUNKS in lexemes:
            _add_segment(workspace_id, collection_id, language, is_current, lexemes)
        if len(dead) and is_current:
            _drop_lexemes(collection_id)
    return True


def removed_ids(collection_id: int) -> Ids:
    """Index ids without a chunk, ascending."""
    return fetch_ids(
        "SELECT array_agg(index_id ORDER BY index_id) FROM documents_removedchunk"
        " WHERE collection_id = %s",
        collection_id,
    )


# --- forgetting ----------------------------------------------------------------------------------

# Blocks that may hold nothing else: those with no more postings than there are dead ids. OFFSET 0:
# a lookup for each word and segment; a join may read all words of a segment for each.
_BLOCKS_OF_WORDS = """
    SELECT posting.segment_id, posting.lexeme, posting.base, posting.data
    FROM (SELECT DISTINCT chunk.collection_id, word.lexeme
          FROM documents_chunk AS chunk,
               ragsite_postings(language, context, text, search_vector) AS word
          WHERE chunk.id = ANY(%s) AND word.lexeme <> '') AS word
    JOIN documents_lexicalsegment AS segment USING (collection_id)
    CROSS JOIN LATERAL (
        SELECT * FROM documents_posting
        WHERE segment_id = segment.id AND lexeme = word.lexeme COLLATE "C" OFFSET 0
    ) AS posting
    WHERE octet_length(posting.data) <= 5 * %s
"""

# Of parts of compounds, blocks of the chunks themselves: an id has its low two bytes there.
_BLOCKS_OF_PARTS = f"""
    SELECT posting.segment_id, posting.lexeme, posting.base, posting.data
    FROM documents_lexicalsegment AS segment
    JOIN documents_posting AS posting ON posting.segment_id = segment.id
    WHERE segment.collection_id = %(collection)s
      AND {is_part("posting.lexeme")}
      AND posting.base = ANY(%(bases)s) AND octet_length(posting.data) <= 5 * %(dead)s
      AND (octet_length(posting.data) > 5 OR substring(posting.data FOR 2) = ANY(%(lows)s))
"""  # noqa: S608 (a constant)

# Likewise of pending chunks, of rows in which all chunks are dead. An array: a join may split the
# texts into words anew for each pending row, which took minutes for some statistics.
_DROP_PENDING_WORDS = """
    DELETE FROM documents_pendingposting AS posting
    WHERE posting.collection_id = %(collection)s AND posting.lexeme = ANY(ARRAY(
        SELECT word.lexeme COLLATE "C"
        FROM documents_chunk AS chunk,
             ragsite_postings(language, context, text, search_vector) AS word
        WHERE chunk.id = ANY(%(chunks)s) AND word.lexeme <> ''
          AND chunk.index_id = ANY(ARRAY(
              SELECT index_id FROM documents_pendingchunk WHERE collection_id = %(collection)s))
        GROUP BY 1))
      AND NOT EXISTS (SELECT FROM unnest(posting.entries) AS entry
                      WHERE entry >> 24 <> ALL(%(dead)s))
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


def forget_words(chunks: Any) -> None:
    """Remove words that only these chunks (a queryset) contain from the index, in the transaction
    that is about to delete them or change their texts: no word of a deleted text stays in any
    table. A chunk that then keeps its text would stay forgotten.

    Words of other chunks stay; postings of removed chunks are skipped there.
    """
    by_collection: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for pk, collection_id, index_id in chunks.values_list("id", "collection_id", "index_id"):
        by_collection[collection_id].append((pk, index_id))
    for collection_id, rows in sorted(by_collection.items()):
        with _site_transaction(), connection.cursor() as cursor:
            cursor.execute(_LOCK_INDEX, [collection_id])
            dying = np.array([index_id for _, index_id in rows], np.int64)
            dead = np.union1d(dying, removed_ids(collection_id))
            cursor.execute(
                _DROP_PENDING_WORDS,
                {
                    "collection": collection_id,
                    "chunks": [pk for pk, _ in rows],
                    "dead": dead.tolist(),
                },
            )
            parts_of = {
                "collection": collection_id,
                "bases": np.unique(dying >> BLOCK_BITS).tolist(),
                "lows": [low.tobytes() for low in (dying & (BLOCK - 1)).astype("<u2")],
                "dead": len(dead),
            }
            gone = [
                (segment_id, lexeme, base)
                for segment_id, lexeme, base, data in (
                    *_fetch_rows(_BLOCKS_OF_WORDS, [[pk for pk, _ in rows], len(dead)]),
                    *_fetch_rows(_BLOCKS_OF_PARTS, parts_of),
                )
                if not len(unpack(base, data).without(dead))
            ]
            if gone:
                cursor.execute(_DROP_BLOCKS, [list(column) for column in zip(*gone, strict=True)])
                _drop_lexemes(collection_id, sorted({lexeme for _, lexeme, _ in gone}))


def _drop_lexemes(collection_id: int, lexemes: Sequence[str] | None = None) -> None:
    """Delete these lexemes of the collection, or any, from the vocabulary if no segment contains
    them."""
    with connection.cursor() as cursor:
        cursor.execute(
            _DROP_LEXEMES,
            {"collection": collection_id, "lexemes": None if lexemes is None else list(lexemes)},
        )


# --- building anew -------------------------------------------------------------------------------


def rebuild_lexical_index(collection_id: int) -> int:
    """Rebuild the collection's index from its chunks; returns how many it contains. Searches use
    the old one until the commit."""
    for tries_left in range(LOCK_TRIES - 1, -1, -1):
        try:
            outermost = not connection.in_atomic_block
            with _site_transaction(), connection.cursor() as cursor:
                if outermost:
                    # Chunks added or removed meanwhile are noted by their own transactions.
                    cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                _lock_index(collection_id)
                for table in ("lexicalsegment", "pendingchunk", "removedchunk", "lexeme"):
                    cursor.execute(
                        f"DELETE FROM documents_{table} WHERE collection_id = %s",  # noqa: S608
                        [collection_id],
                    )
                cursor.execute(_MARK_ALL_PENDING, {"collection": collection_id})
                count = 0
                while moved := _index_batch(collection_id):
                    count += moved
            break
        except OperationalError as error:
            # Somebody else wrote the index between this one's snapshot and its lock.
            is_overtaken = isinstance(error.__cause__, SerializationFailure)
            if not is_overtaken or not tries_left or connection.in_atomic_block:
                raise
    merge_segments(collection_id)
    return count


_MARK_ALL_PENDING = """
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM documents_chunk
    WHERE collection_id = %(collection)s
"""


def index_forms() -> None:
    """Add forms of words and parts of compounds to segments that a release without them wrote: for
    a migration. A collection at a time; interrupted, it may run again."""
    index_all_pending()
    with connection.cursor() as cursor, bypass_rls():
        cursor.execute("SELECT DISTINCT collection_id FROM documents_lexicalsegment ORDER BY 1")
        collection_ids = [pk for (pk,) in cursor.fetchall()]
    for collection_id in collection_ids:
        rebuild_lexical_index(collection_id)


def index_all_pending() -> int:
    """`index_pending` for every collection; returns how many chunks were moved. A collection that
    fails does not stop the others and is tried again next time."""
    with connection.cursor() as cursor, bypass_rls():
        cursor.execute(
            "SELECT collection_id FROM documents_pendingchunk"
            " UNION SELECT collection_id FROM documents_removedchunk ORDER BY 1"
        )
        collection_ids = [pk for (pk,) in cursor.fetchall()]
    moved = 0
    for collection_id in collection_ids:
        try:
            count = index_pending(collection_id)
            if not count:  # else they are merged already, where that is due
                merge_segments(collection_id)
            moved += count
        except Exception:
            if connection.in_atomic_block:
                raise
            logger.exception("the lexical index of collection %s was not updated", collection_id)
    return moved


# --- statements ----------------------------------------------------------------------------------


@contextmanager
def _site_transaction() -> Iterator[None]:
    """A transaction without row-level security, because the index belongs to the site."""
    with bypass_rls(), transaction.atomic():
        connection.apply_rls()  # type: ignore[attr-defined]  # of common.postgresql
        yield


_LOCK_INDEX = "SELECT pg_advisory_xact_lock(hashtextextended('index', %s))"


def _lock_index(collection_id: int) -> None:
    """Advisory lock against deleting the collection and writing its index; until the end of the
    transaction, taken before any row."""
    share_collection_locks([collection_id])
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_INDEX, [collection_id])


def _fetch_rows(statement: str, parameters: Any) -> list[tuple[Any, ...]]:
    """Rows in PostgreSQL's binary format; integer arrays as numpy arrays."""
    with bypass_rls():
        return fetch_rows(connection, statement, parameters)


def fetch_ids(statement: str, collection_id: int) -> Ids:
    """The single array that a statement about a collection returns."""
    found = _fetch_rows(statement, [collection_id])[0][0]
    ids: Ids = np.zeros(0, np.int64) if found is None else found
    return ids
