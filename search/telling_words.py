"""The words of a text that tell most of what it is about."""

from common.replicas import read_connection

#: More would find what any text has.
MOST_WORDS = 12
#: So much of a long document is looked at.
READ_CHARACTERS = 20_000

#: Words with the lexemes they are found by. One that only stands in this text finds no other; one
#: that stands in every third passage says nothing.
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
        SELECT collection_id, language, word, times,
               (tsvector_to_array(to_tsvector(language, word)))[1] AS lexeme
        FROM word
    )
    SELECT min(word)
    FROM lexeme
    JOIN documents_lexemefrequency AS frequency USING (collection_id, language, lexeme)
    JOIN documents_lexicalstatistics AS whole USING (collection_id, language)
    WHERE frequency.chunk_count > 1 AND 3 * frequency.chunk_count <= greatest(whole.chunk_count, 9)
    GROUP BY lexeme, frequency.chunk_count, whole.chunk_count
    ORDER BY ln(1 + sum(times)) * ln(whole.chunk_count::float8 / frequency.chunk_count) DESC, lexeme
    LIMIT %(most)s
"""


def telling_words(document_id: int, *, chunk_id: int | None = None) -> list[str]:
    """Words of the document, or of one passage of it, the most telling first: those that stand in
    it often and in few others."""
    parameters = {
        "document": document_id,
        "chunk": chunk_id,
        "read": READ_CHARACTERS,
        "most": MOST_WORDS,
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL, parameters)
        return [word for (word,) in cursor.fetchall()]
