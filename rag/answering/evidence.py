"""Database reads for an answer: passages of search hits, evidence for answerability, and
the similarity of sentences to a question. Begin with `gather_evidence`.
"""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.db import connection
from django.urls import reverse
from django.utils.functional import lazy

from documents.embedders import embed_question, embedder_for, scale_of
from documents.lexical_search import find_terms
from documents.location import PAGE_LABEL
from documents.models import Chunk, EmbeddingSpace
from inference.interfaces import InferenceError
from rag.answering.answerability import Evidence, QuestionTerm, question_coverage
from rag.answering.extractive import SimilarityFunction
from rag.events import Passage
from search.query import QueryError, parse_query
from search.results import Hit, Scope, SearchResult

_COVERAGE_SQL = (Path(__file__).parent / "coverage.sql").read_text()


def passages_from_hits(hits: Iterable[Hit]) -> list[Passage]:
    """Convert hits to passages, numbered from 1."""
    return [
        Passage(
            number=number,
            chunk_id=hit.chunk_id,
            document_id=hit.document_id,
            document_key=hit.document_key,
            version=hit.version,
            collection_slug=hit.collection_slug,
            title=hit.title,
            heading_path=hit.heading_path,
            page=hit.page,
            text=hit.text,
            start=hit.start,
            end=hit.end,
            # lazy: resolving the first URL of a process imports every view
            url=lazy(passage_url, str)(hit.collection_slug, hit.document_id, hit.chunk_id),
            language=hit.language,
            rank=hit.rank,
            similarity=hit.similarity,
            lexical=hit.lexical,
            fused=hit.fused,
            rerank=hit.rerank,
            media_type=hit.media_type,
            page_label=str(hit.metadata.get(PAGE_LABEL, "")),
        )
        for number, hit in enumerate(hits, 1)
    ]


def passage_url(collection_slug: str, document_id: int, chunk_id: int) -> str:
    """The page of a document, scrolled to one of its passages."""
    path = reverse("document", args=[collection_slug, document_id])
    return f"{path}?chunk={chunk_id}#passage"


#: Term coverage is computed on this many of the best passages: one if there are similarities, three
#: if words alone must decide.
COVERAGE_PASSAGES = 1
COVERAGE_PASSAGES_LEXICAL = 3


def gather_evidence(result: SearchResult, passages: Sequence[Passage], *, scope: Scope) -> Evidence:
    """The input of `judge_answerability`; `passages` are those of `result`, best first. Passages
    without text count as none."""
    passages = [passage for passage in passages if passage.text.strip()]
    if not passages:
        return Evidence(passages=0)
    nearness, background = _calibrated_similarity(result, passages)
    best = passages[: COVERAGE_PASSAGES_LEXICAL if nearness is None else COVERAGE_PASSAGES]
    ids = [passage.chunk_id for passage in best]
    try:  # the text without query operators
        text = parse_query(result.suggestion if result.is_corrected else result.query).text
    except QueryError:
        text = ""
    coverage, terms = question_coverage(_question_terms(text, ids, scope), ids)
    return Evidence(
        passages=len(passages),
        coverage=coverage,
        terms=terms,
        nearness=nearness,
        background=background,
    )


def _calibrated_similarity(
    result: SearchResult, passages: Sequence[Passage]
) -> tuple[float | None, float | None]:
    """Calibrated similarity of the nearest passage, and the baseline similarity of its space."""
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


def _question_terms(text: str, chunk_ids: Sequence[int], scope: Scope) -> list[QuestionTerm]:
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
        cursor.execute(_COVERAGE_SQL, parameters)
        return [
            QuestionTerm(
                language,
                found.statistics[language].documents,
                counts[language, lexeme],
                frozenset(holders),
            )
            for language, lexeme, holders in cursor.fetchall()
        ]


logger = logging.getLogger(__name__)


def question_similarity(question: str, passages: Sequence[Passage]) -> SimilarityFunction | None:
    """A function that compares texts with the question; None if the passages are in several spaces.
    Queries the database now; the function it returns only calls the model, and returns None if that
    fails."""
    ids = [passage.chunk_id for passage in passages]
    spaces = list(
        EmbeddingSpace.objects.filter(pk__in=Chunk.objects.filter(pk__in=ids).values("space"))[:2]
    )
    if len(spaces) != 1:
        return None
    (space,) = spaces

    def similarities(texts: Sequence[str]) -> list[float] | None:
        # No time limit, so that the same question quotes the same sentences on a busy machine too;
        # the caller bounds how many texts are compared.
        try:
            query_vector = embed_question(space, question)
            found: list[float] = (
                embedder_for(space).embed_documents(list(texts)) @ query_vector
            ).tolist()
        except InferenceError as error:
            logger.warning("the embedding model failed, sentences are chosen by words: %s", error)
            return None
        return found

    return similarities
