"""Which words of a hit's text the query means, found by PostgreSQL's own stemming.

Scripts without spaces between words are blanked out for it, and looked at by `shared_runs`.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

from common.replicas import read_connection
from common.search_vector import IN_NAME_SQL
from common.spaceless import LETTERS, MARKS, is_spaceless
from search.query import Query
from search.shared_runs import shared_runs
from search.snippets import parse_marked

#: Private-use characters that no parser keeps in a text of its own.
START, STOP = "\ue000", "\ue001"

#: Full-width letters and digits, with the usual ones.
_WIDE = "".join(map(chr, (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))))
_USUAL = unicodedata.normalize("NFKC", _WIDE)

# `<` and `>` become spaces of the same length, because ts_headline drops what looks like a tag
# and would shift every offset behind it. `translate` is slow with many characters. Without
# OFFSET each query would be put together twice.
_SQL = """
    SELECT chunk.id,
           ts_headline(chunk.language,
                       translate(regexp_replace(spaced.text, %(in_name)s, ' ', 'g'),
                                 %(plain)s, %(blank)s),
                       meant.query,
                       format('HighlightAll=true, StartSel=%%s, StopSel=%%s',
                              %(start)s::text, %(stop)s::text)),
           CASE WHEN %(spaceless)s THEN chunk.text ELSE '' END
    FROM documents_chunk AS chunk,
         LATERAL (SELECT regexp_replace(
                             CASE WHEN chunk.text ~ %(any_wide)s
                                  THEN translate(chunk.text, %(wide)s, %(usual)s)
                                  ELSE chunk.text END,
                             %(letters)s, ' ', 'g') AS text) AS spaced,
         LATERAL (SELECT (SELECT string_agg(quoted, ' | ')::tsquery
                          FROM (SELECT '''' || replace(replace(word, '\\', '\\\\'), '''', '''''')
                                       || '''' AS quoted
                                FROM unnest(tsvector_to_array(to_tsvector(
                                         chunk.language, ragsite_words(%(text)s)))) AS word
                                UNION ALL
                                SELECT to_tsquery(chunk.language, prefix || ':*')::text
                                FROM unnest(%(prefixes)s::text[]) AS prefix) AS words
                          WHERE quoted <> '') AS query OFFSET 0) AS meant
    WHERE chunk.id = ANY(%(ids)s) AND meant.query IS NOT NULL
"""


def highlights(query: Query, chunk_ids: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """(start, end) offsets into each chunk's text of the words that the query means."""
    parameters: dict[str, Any] = {
        "text": query.text,
        "in_name": IN_NAME_SQL,
        "spaceless": is_spaceless(query.text),
        "letters": f"[{LETTERS}{MARKS}]",
        "any_wide": f"[{_WIDE}]",
        "wide": _WIDE,
        "usual": _USUAL,
        "prefixes": list(query.prefixes),
        "ids": list(chunk_ids),
        "start": START,
        "stop": STOP,
        "plain": "<>" + START + STOP,
        "blank": "    ",
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL, parameters)
        return {
            chunk_id: sorted(
                [*parse_marked(marked, start=START, stop=STOP), *shared_runs(query.text, text)]
            )
            for chunk_id, marked, text in cursor.fetchall()
        }
