"""Which words of a hit's text the query means, found by PostgreSQL's own stemming."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from common.search_vector import IN_NAME_SQL, split_names
from search.query import Query
from search.snippets import parse_marked

#: Private-use characters that no parser keeps in a text of its own.
START, STOP = "\ue000", "\ue001"

# `<` and `>` become spaces of the same length, because ts_headline drops what looks like a tag
# and would shift every offset behind it.
_SQL = """
    SELECT chunk.id,
           ts_headline(chunk.language,
                       translate(regexp_replace(chunk.text, %(in_name)s, ' ', 'g'),
                                 %(plain)s, %(blank)s),
                       meant.query,
                       format('HighlightAll=true, StartSel=%%s, StopSel=%%s',
                              %(start)s::text, %(stop)s::text))
    FROM documents_chunk AS chunk,
         LATERAL (SELECT (SELECT string_agg(quoted, ' | ')::tsquery
                          FROM (SELECT '''' || replace(replace(word, '\\', '\\\\'), '''', '''''')
                                       || '''' AS quoted
                                FROM unnest(tsvector_to_array(
                                         to_tsvector(chunk.language, %(text)s))) AS word
                                UNION ALL
                                SELECT to_tsquery(chunk.language, prefix || ':*')::text
                                FROM unnest(%(prefixes)s::text[]) AS prefix) AS words
                          WHERE quoted <> '') AS query) AS meant
    WHERE chunk.id = ANY(%(ids)s) AND meant.query IS NOT NULL
"""


def highlights(query: Query, chunk_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """(start, end) offsets into each chunk's text of the words that the query means."""
    parameters: dict[str, Any] = {
        "text": split_names(query.text),
        "in_name": IN_NAME_SQL,
        "prefixes": list(query.prefixes),
        "ids": list(chunk_ids),
        "start": START,
        "stop": STOP,
        "plain": "<>" + START + STOP,
        "blank": "    ",
    }
    with connection.cursor() as cursor:
        cursor.execute(_SQL, parameters)
        return {
            chunk_id: parse_marked(marked, start=START, stop=STOP)
            for chunk_id, marked in cursor.fetchall()
        }
