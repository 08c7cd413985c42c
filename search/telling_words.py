"""The words of a text that tell most of what it is about."""

from common.replicas import read_connection

#: More would find what any text has.
MOST_WORDS = 12
#: So much of a long document is looked at.
READ_CHARACTERS = 20_000

#: Words with the lexemes they are found by. A term that occurs in no other chunk cannot find
#: similar ones; one that is in every third says nothing. Chunks just removed may be counted.
_SQL = """
    WITH chunk AS (
        SELECT collection_id, language,
               left(string_agg(context || ' ' || text, ' '), %(read)s) AS text
        FROM documents_chunk
        WHERE document_id = %(document)s AND (%(chunk)s::bigint IS NULL OR id = %(chunk)s)
        GROUP BY collection_id, language
    ), word AS (
        SELECT collection_id, language, lower(match[1]) AS word, count(*) AS times
        FROM chunk, regexp_matches(text, '[[:alpha:]]{3,40}', 'g') AS match
        GROUP BY 1, 2, 3
    ), lexeme AS (
        SELECT collection_id, language, min(word) AS word, sum(times) AS times, lexeme COLLATE "C"
            AS lexeme
        FROM (SELECT collection_id, language, word, times,
                     (tsvector_to_array(to_tsvector(language, word)))[1] AS lexeme
              FROM word) AS stemmed
        WHERE lexeme IS NOT NULL
        GROUP BY collection_id, language, stemmed.lexeme
    ), pending AS MATERIALIZED (
        SELECT chunk.collection_id, chunk.language, chunk.search_vector
        FROM documents_pendingchunk AS added
        JOIN documents_chunk AS chunk ON chunk.index_id = added.index_id
        WHERE added.collection_id IN (SELECT collection_id FROM chunk) AND chunk.is_current
    ), pending_word AS MATERIALIZED (
        SELECT collection_id, language, word COLLATE "C" AS lexeme, count(*) AS chunks
        FROM pending, unnest(tsvector_to_array(search_vector)) AS word
        GROUP BY 1, 2, 3
    ), frequency AS (
        SELECT lexeme.*,
               coalesce((SELECT sum(octet_length(posting.data) / 5)
                         FROM documents_lexicalsegment AS segment
                         JOIN documents_posting AS posting
                           ON posting.segment_id = segment.id AND posting.lexeme = lexeme.lexeme
                         WHERE segment.collection_id = lexeme.collection_id
                           AND segment.language = lexeme.language AND segment.is_current), 0)
               + coalesce(pending_word.chunks, 0) AS chunks
        FROM lexeme LEFT JOIN pending_word USING (collection_id, language, lexeme)
    ), whole AS (
        SELECT collection_id, language, sum(chunks) AS all_chunks
        FROM (SELECT collection_id, language, chunk_count AS chunks
              FROM documents_lexicalsegment WHERE is_current
                AND collection_id IN (SELECT collection_id FROM chunk)
              UNION ALL SELECT collection_id, language, 1 FROM pending) AS counted
        GROUP BY collection_id, language
    )
    SELECT word
    FROM frequency JOIN whole USING (collection_id, language)
    WHERE chunks > 1 AND 3 * chunks <= greatest(all_chunks, 9)
    ORDER BY ln(1 + times) * ln(all_chunks::float8 / chunks) DESC, lexeme
    LIMIT %(most)s
"""


def telling_words(document_id: int, *, chunk_id: int | None = None) -> list[str]:
    """Words of the document, or of one passage of it, the most telling first: those that it has
    often and few others have."""
    parameters = {
        "document": document_id,
        "chunk": chunk_id,
        "read": READ_CHARACTERS,
        "most": MOST_WORDS,
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL, parameters)
        return [word for (word,) in cursor.fetchall()]
