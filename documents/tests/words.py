"""What the lexical index says of the words of a collection."""

from collections import Counter

from django.db import connection

from common.bm25 import unpack
from documents import lexical_index
from documents.lexical_search import find_terms
from documents.models import Chunk, Collection, LexicalSegment, Posting

_PENDING = """
    SELECT chunk.language::text, lexeme, count(*)
    FROM documents_pendingchunk AS added
    JOIN documents_chunk AS chunk USING (index_id),
         unnest(tsvector_to_array(chunk.search_vector)) AS lexeme
    WHERE added.collection_id = %s AND chunk.is_current
    GROUP BY 1, 2
"""


def chunk_counts(collection: Collection) -> dict[tuple[str, str], int]:
    """In how many chunks of current versions each word is, by language and lexeme: those that are
    in a segment and those that are in none yet."""
    counts: Counter[tuple[str, str]] = Counter()
    removed = lexical_index.removed_ids(collection.pk)
    for segment in LexicalSegment.objects.filter(collection=collection, is_current=True):
        # Neither the list of all chunks nor forms of words.
        rows = Posting.objects.filter(segment_id=segment.pk, lexeme__gte="\x03")
        for lexeme, base, data in rows.values_list("lexeme", "base", "data"):
            held = unpack(base, bytes(data)).without(removed)
            counts[segment.language, lexeme] += len(held)
    with connection.cursor() as cursor:
        cursor.execute(_PENDING, [collection.pk])
        for language, lexeme, count in cursor.fetchall():
            counts[language, lexeme] += count
    return dict(+counts)


def counted_chunks(collection: Collection) -> dict[str, int]:
    """Of how many chunks scores are reckoned, by language."""
    found = find_terms(collections=[collection.pk], text="")
    return {language: each.documents for language, each in found.statistics.items()}


def scores(collection: Collection, text: str, *, superseded: bool = False) -> dict[int, float]:
    """BM25 by chunk id, as searches see it."""
    found = find_terms(collections=[collection.pk], text=text, superseded=superseded).score()
    chunks = dict(Chunk.objects.filter(collection=collection).values_list("index_id", "id"))
    ids, values = found.best(1000)
    return dict(zip((chunks[int(each)] for each in ids), values.tolist(), strict=True))
