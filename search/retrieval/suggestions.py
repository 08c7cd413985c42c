"""Spelling suggestions: query words that occur nowhere, replaced by similar words that
do. Begin with `suggest`.
"""

import re
from difflib import SequenceMatcher

from common.replicas import read_connection
from common.rls import bypass_rls
from common.text import has_unspaced_script
from documents.lexical_search import chunks_with
from search.query import Query
from search.results import Scope
from search.retrieval.statements import load_sql, scope_conditions

#: Shorter words resemble too many others; longer queries are no typing error.
MIN_WORD_CHARACTERS = 4
MAX_QUERY_WORDS = 24
#: Chunks with a lexeme that are checked for being in scope.
MAX_LOOKED_UP = 10_000
#: Similar lexemes checked per word, and the least similarity of a suggested word.
MAX_SIMILAR_LEXEMES = 5
MIN_SPELLING_SIMILARITY = 0.7

_WORD = re.compile(rf"[^\W\d_]{{{MIN_WORD_CHARACTERS},}}")
_MARK = "\ue000"

# The first chunk in scope that has the lexeme, and the word that it has it for: a suggestion says
# nothing that the searcher could not find.
_WORD_IN_SCOPE_SQL = """
    SELECT ts_headline(chunk.language, ragsite_words(chunk.context || ' ' || chunk.text),
                       %(lexeme)s::tsquery, %(marks)s)
    FROM documents_chunk AS chunk
    WHERE chunk.index_id = ANY(%(chunks)s) AND {scope}
    LIMIT 1
"""


def suggest(raw: str, query: Query, scope: Scope) -> str:
    """`raw` with misspelt words replaced by similar ones that occur in scope; empty without any.

    A word is misspelt if no passage of the collections has it and one in scope has a similar
    word.
    """
    words = list(
        dict.fromkeys(
            word.lower() for word in _WORD.findall(query.text) if not has_unspaced_script(word)
        )
    )
    if not words or len(words) > MAX_QUERY_WORDS:
        return ""
    # Of the collections it names. A policy would keep it from the index of trigrams.
    with bypass_rls(), read_connection().cursor() as cursor:
        cursor.execute(
            load_sql("similar_words"),
            {
                "collections": list(scope.collection_ids),
                "words": words,
                "most": MAX_SIMILAR_LEXEMES,
            },
        )
        lexemes: list[tuple[str, str, str]] = cursor.fetchall()
    mended: dict[str, str] = {}
    conditions, parameters = scope_conditions(scope)
    for word, language, lexeme in lexemes:  # of each word the most similar first
        if word in mended:
            continue
        quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
        chunks = chunks_with(lexeme, language=language, collections=scope.collection_ids)
        with read_connection().cursor() as cursor:
            cursor.execute(
                _WORD_IN_SCOPE_SQL.format(scope=conditions),
                {
                    **parameters,
                    "lexeme": f"'{quoted}'",
                    "chunks": chunks[:MAX_LOOKED_UP].tolist(),
                    "marks": f"HighlightAll=true, StartSel={_MARK}, StopSel={_MARK}",
                },
            )
            row = cursor.fetchone()
        marked = row[0].split(_MARK) if row else []
        similar = marked[1].lower() if len(marked) > 1 else ""
        if SequenceMatcher(None, similar, word).ratio() >= MIN_SPELLING_SIMILARITY:
            mended[word] = similar

    def mend(found: re.Match[str]) -> str:
        better = mended.get(found[0].lower(), found[0])
        return better.capitalize() if better != found[0] and found[0][0].isupper() else better

    return _WORD.sub(mend, raw) if mended else ""
