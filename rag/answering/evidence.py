"""What there is to judge an answer by: how near the passages are, and which words they hold."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from django.db import connection

from documents.calibration import scale_of
from documents.lexical_search import find_terms
from documents.models import Chunk, EmbeddingSpace
from rag.answering.coverage import Term, coverage
from rag.answering.refusal import Evidence
from rag.passage import Passage
from search.query import QueryError, parse_query
from search.results import Scope, SearchResult

#: Words are looked for in so many of the best passages: with a model's judgement the first must
#: hold them, by words alone one of three.
LOOKED_AT = 1
LOOKED_AT_BY_WORDS = 3


def gather(result: SearchResult, passages: Sequence[Passage], *, scope: Scope) -> Evidence:
    """What `refusal.judge` asks for; `passages` are those of `result`, best first. Vectors without
    a text answer nothing."""
    passages = [passage for passage in passages if passage.text.strip()]
    if not passages:
        return Evidence(passages=0)
    nearness, background = _nearness(result, passages)
    best = passages[: LOOKED_AT_BY_WORDS if nearness is None else LOOKED_AT]
    ids = [passage.chunk_id for passage in best]
    covered = coverage(_terms(_said(result), ids, scope), ids)
    return Evidence(
        passages=len(passages),
        coverage=covered.share,
        terms=covered.terms,
        nearness=nearness,
        background=background,
    )


def _said(result: SearchResult) -> str:
    """What was searched for, without operators."""
    try:
        return parse_query(result.suggestion if result.is_corrected else result.query).text
    except QueryError:
        return ""


def _nearness(
    result: SearchResult, passages: Sequence[Passage]
) -> tuple[float | None, float | None]:
    """How near the nearest passage is on its model's scale, and just any passage of its space."""
    ids = [passage.chunk_id for passage in passages if passage.similarity is not None]
    of_chunk = dict(Chunk.objects.filter(pk__in=ids).values_list("pk", "space_id"))
    spaces = EmbeddingSpace.objects.in_bulk(set(of_chunk.values()) & set(result.backgrounds))
    scales = {pk: scale for pk, space in spaces.items() if (scale := scale_of(space))}
    found = [
        (scales[space].nearness(passage.similarity), space)
        for passage in passages
        if passage.similarity is not None
        and (space := of_chunk.get(passage.chunk_id)) is not None
        and space in scales
    ]
    if not found:
        return None, None
    nearest, space = max(found)
    return nearest, scales[space].nearness(result.backgrounds[space])


def _terms(text: str, chunk_ids: Sequence[int], scope: Scope) -> list[Term]:
    found = find_terms(collections=scope.collection_ids, text=text)
    counts = {
        (language, lexeme): count
        for language, lexemes in found.document_frequencies().items()
        for lexeme, count in lexemes.items()
    }
    parameters: dict[str, Any] = {
        "languages": [language for language, _ in counts],
        "lexemes": [lexeme for _, lexeme in counts],
        "chunks": list(chunk_ids),
    }
    with connection.cursor() as cursor:
        cursor.execute(_sql(), parameters)
        return [
            Term(
                language,
                found.statistics[language].documents,
                counts[language, lexeme],
                frozenset(holders),
            )
            for language, lexeme, holders in cursor.fetchall()
        ]


@cache
def _sql() -> str:
    return (Path(__file__).parent / "coverage.sql").read_text()
