"""“Did you mean”: words of a query that stand nowhere, and words like them that do."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from common.fence import unfenced
from common.replicas import read_connection
from common.spaceless import is_spaceless
from documents.lexical_search import chunks_with
from search.query import Query
from search.results import Scope
from search.retrieval.scope import scope_conditions
from search.retrieval.statement import load_sql

#: A shorter word is like too many others, and a longer query than so many words is no typing error.
LEAST_LETTERS = 4
MOST_WORDS = 24
#: So many chunks with a lexeme are looked up for one that is in scope.
MOST_LOOKED_UP = 10_000
#: Lexemes that are looked at for each word, and how like a word as it is written must be.
MOST_SIMILAR = 5
LIKENESS = 0.7

_WORD = re.compile(rf"[^\W\d_]{{{LEAST_LETTERS},}}")
_MARK = "\ue000"

# The first chunk in scope that has the lexeme, and the word that it has it for: a suggestion says
# nothing that the searcher could not find.
_AS_WRITTEN = """
    SELECT ts_headline(chunk.language, ragsite_words(chunk.context || ' ' || chunk.text),
                       %(lexeme)s::tsquery, %(marks)s)
    FROM documents_chunk AS chunk
    WHERE chunk.index_id = ANY(%(chunks)s) AND {scope}
    LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class _Similar:
    word: str
    language: str
    lexeme: str


def suggest(raw: str, query: Query, scope: Scope) -> str:
    """`raw` with its misspelt words replaced by ones that stand in the scope; empty without any.

    A word is misspelt where no passage of the collections holds it and one in scope holds a word
    much like it.
    """
    words = list(
        dict.fromkeys(word.lower() for word in _WORD.findall(query.text) if not is_spaceless(word))
    )
    if not words or len(words) > MOST_WORDS:
        return ""
    mended: dict[str, str] = {}
    for word, similar in groupby(_similar(words, scope), key=lambda each: each.word):
        written = next(_written_like(word, similar, scope), None)
        if written is not None:
            mended[word] = written
    return _replaced(raw, mended) if mended else ""


def _similar(words: list[str], scope: Scope) -> Iterator[_Similar]:
    # Of the collections it names. A policy would keep it from the index of trigrams.
    with unfenced(), read_connection().cursor() as cursor:
        cursor.execute(
            load_sql("similar_words"),
            {"collections": list(scope.collection_ids), "words": words, "most": MOST_SIMILAR},
        )
        return iter([_Similar(*row) for row in cursor.fetchall()])


def _written_like(word: str, similar: Iterator[_Similar], scope: Scope) -> Iterator[str]:
    """Words of passages in scope that are much like `word`, the likest lexeme first."""
    conditions, parameters = scope_conditions(scope)
    for each in similar:
        quoted = each.lexeme.replace("\\", "\\\\").replace("'", "''")
        chunks = chunks_with(each.lexeme, language=each.language, collections=scope.collection_ids)
        with read_connection().cursor() as cursor:
            cursor.execute(
                _AS_WRITTEN.format(scope=conditions),
                {
                    **parameters,
                    "lexeme": f"'{quoted}'",
                    "chunks": chunks[:MOST_LOOKED_UP].tolist(),
                    "marks": f"HighlightAll=true, StartSel={_MARK}, StopSel={_MARK}",
                },
            )
            row = cursor.fetchone()
        marked = row[0].split(_MARK) if row else []
        if len(marked) > 1 and SequenceMatcher(None, marked[1].lower(), word).ratio() >= LIKENESS:
            yield marked[1].lower()


def _replaced(raw: str, mended: Mapping[str, str]) -> str:
    def mend(found: re.Match[str]) -> str:
        word = found[0]
        better = mended.get(word.lower())
        if better is None:
            return word
        return better.capitalize() if word[0].isupper() else better

    return _WORD.sub(mend, raw)
