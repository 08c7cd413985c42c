"""What an answer needs of database and model: its passages, the evidence that they answer, and
their sentences that do. Begin with `find_passages`.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from django.db import connection
from django.urls import reverse
from django.utils.functional import lazy

from common.sql import release_connection
from documents import late_interaction
from documents.embedders import compare_sentences, embed_question, embed_titles, scale_of
from documents.lexical_search import find_terms
from documents.models import Chunk, EmbeddingSpace
from documents.question_language import question_language
from inference.interfaces import InferenceError
from inference.model_languages import EVERY
from rag.answering.answer_types import AnswerKind, wanted_kind
from rag.answering.answerability import (
    FOREIGN_COVERAGE,
    Evidence,
    QuestionTerm,
    judge_confidence,
    missing_names,
    question_coverage,
    with_quotation,
    without_question_words,
)
from rag.answering.extractive import ExtractiveAnswer, extract_answer, quote_sections
from rag.answering.passage_ranking import favour_tables, rank_passages
from rag.answering.reader import Reader, find_reader
from rag.answering.section_ranking import (
    READING_WEIGHT,
    USUAL_READING,
    RankedSection,
    by_best_section,
    rank_sections,
    read_sections,
)
from rag.answering.tables import answering_rows, find_extreme
from rag.events import Passage
from reading.location import PAGE_LABEL
from reading.sections import TokenMatches
from search.query import QueryError, parse_query
from search.results import Hit, Mode, Scope, SearchResult
from search.services import search

logger = logging.getLogger(__name__)

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


#: Hits of which the passages of an answer are chosen: of questions in other words than the
#: documents it takes so many to have the right one among them.
CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """The `passages` for an answer, best first, out of the hits of `result`, and what they say
    about whether there is an answer. `sections` are those of the passages that an answer is chosen
    from, best first; empty where neither a token encoder nor a reranker knows the language.
    `reader` is that reranker, None where none does."""

    result: SearchResult
    passages: list[Passage]
    evidence: Evidence
    sections: tuple[RankedSection, ...] = ()
    reader: Reader | None = None


def find_passages(
    query: str, *, scope: Scope, k: int, mode: Mode = "hybrid", **options: Any
) -> FoundPassages:
    """Search for `query` and choose the `k` passages that suit an answer best. `options` are those
    of `search.services.search`. Where a reranker is set up it reads sections of the passages here,
    and not whole ones in the search, unless a score of it is demanded (`min_rerank`)."""
    query_language = question_language(query)
    reader = find_reader(scope, query_language=query_language, wanted=options.get("rerank"))
    if options.get("min_rerank") is None:
        options["rerank"] = False
    result = search(query, scope=scope, mode=mode, k=max(k, CANDIDATES), snippets=False, **options)
    passages = passages_from_hits(result.hits)
    terms = _question_terms(result, passages, scope)
    is_foreign = [passage.is_foreign_to(query_language) for passage in passages]
    coverage = [
        max(
            question_coverage(terms, [passage.chunk_id])[0],
            FOREIGN_COVERAGE if foreign else 0.0,
        )
        for passage, foreign in zip(passages, is_foreign, strict=True)
    ]
    space = _main_space(passages)
    nearness, titles = _nearness(_searched_text(result), passages, space)
    kind = wanted_kind(query, language=query_language)
    rows = answering_rows(query, passages, kind)
    sections: list[RankedSection] = []
    if reader is not None or late_interaction.knows(query_language):
        own = [at for at, each in enumerate(passages) if _is_compared(each, query_language, reader)]
        sections = rank_sections(
            [passages[at] for at in own],
            _compare_tokens(query, [passages[at] for at in own]),
            nearness=[nearness[at] for at in own] if nearness else None,
            title_nearness=[titles[at] for at in own] if titles else None,
            answering_rows=rows,
            kind=kind,
        )
        if reader is not None:
            release_connection()  # the model may be slow
            sections = read_sections(sections, lambda texts: reader.read(query, texts))
    passages = rank_passages(
        passages,
        coverage=coverage,
        nearness=nearness,
        title_nearness=titles,
        is_foreign=is_foreign if space is not None and EVERY in space.languages else (),
    )
    passages = by_best_section(favour_tables(passages, rows), sections)[:k]
    numbered = {
        each.chunk_id: replace(each, number=number) for number, each in enumerate(passages, 1)
    }
    passages = list(numbered.values())
    sections = sections_of(passages, sections)
    evidence = _evidence(result, passages, terms)
    if sections:
        is_extreme = bool(rows) and find_extreme(query) is not None
        evidence = _with_sections(evidence, sections, kind, is_extreme=is_extreme)
    return FoundPassages(result, passages, evidence, tuple(sections), reader)


def sections_of(
    passages: Sequence[Passage], sections: Iterable[RankedSection]
) -> list[RankedSection]:
    """Those of the `sections` that are in `passages`, with the passages as they are numbered."""
    by_chunk = {passage.chunk_id: passage for passage in passages}
    return [
        replace(section, passage=by_chunk[section.passage.chunk_id])
        for section in sections
        if section.passage.chunk_id in by_chunk
    ]


def _is_compared(passage: Passage, query_language: str, reader: Reader | None) -> bool:
    """Whether a model that compares sections knows the passage's language, which is not foreign to
    the question."""
    is_known = reader.knows(passage.language) if reader else True
    return bool(passage.text.strip()) and is_known and not passage.is_foreign_to(query_language)


def _compare_tokens(query: str, passages: Sequence[Passage]) -> dict[int, TokenMatches]:
    compared = [
        late_interaction.ComparedPassage(passage.chunk_id, passage.heading, passage.text)
        for passage in passages
    ]
    return (late_interaction.compare_passages(query, compared) if compared else None) or {}


def _with_sections(
    evidence: Evidence,
    sections: Sequence[RankedSection],
    kind: AnswerKind | None,
    *,
    is_extreme: bool,
) -> Evidence:
    """The evidence with that of the best section."""
    best, *others = sections
    unread = READING_WEIGHT * USUAL_READING if best.reading is None else 0.0
    return replace(
        evidence,
        section_score=best.score + unread,
        section_lead=best.score - others[0].score if others else best.score,
        nearness=best.nearness,
        lacks_kind=kind is not None and not best.holds(kind),
        is_extreme=is_extreme,
    )


def _evidence(
    result: SearchResult, passages: Sequence[Passage], terms: Sequence[QuestionTerm]
) -> Evidence:
    passages = [passage for passage in passages if passage.text.strip()]
    if not passages:
        return Evidence(passages=0)
    nearness, background, space = _calibrated_similarity(result, passages)
    best = passages[: COVERAGE_PASSAGES_LEXICAL if nearness is None else COVERAGE_PASSAGES]
    coverage, count = question_coverage(terms, [passage.chunk_id for passage in best])
    is_foreign = passages[0].is_foreign_to(question_language(result.query))
    return Evidence(
        passages=len(passages),
        coverage=coverage,
        terms=count,
        nearness=nearness,
        background=background,
        # Names are told by their capitals, which languages use in different ways.
        missing_names=0.0 if is_foreign else missing_names(result.query, passages[0]),
        is_foreign=is_foreign,
        is_multilingual=space is not None and EVERY in space.languages,
    )


def _searched_text(result: SearchResult) -> str:
    """What was searched for, with spelling corrected and without query operators."""
    try:
        return parse_query(result.suggestion if result.is_corrected else result.query).text
    except QueryError:
        return ""


def _calibrated_similarity(
    result: SearchResult, passages: Sequence[Passage]
) -> tuple[float | None, float | None, EmbeddingSpace | None]:
    """Calibrated similarity of the nearest passage, the baseline similarity of its space, and the
    space; None where no model could tell."""
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
        return None, None, None
    nearest, space = max(found)
    return nearest, scales[space].nearness(result.backgrounds[space]), spaces[space]


def _question_terms(
    result: SearchResult, passages: Sequence[Passage], scope: Scope
) -> list[QuestionTerm]:
    """The terms of what was searched for, each with the passages that contain it."""
    text = without_question_words(_searched_text(result))
    found = find_terms(collections=scope.collection_ids, text=text)
    counts = {
        (language, lexeme): count
        for language, lexemes in found.document_frequencies().items()
        for lexeme, count in lexemes.items()
    }
    parameters: dict[str, Any] = {
        "languages": [language for language, _ in counts],
        "lexemes": [lexeme for _, lexeme in counts],
        "chunks": [passage.chunk_id for passage in passages],
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


def _nearness(
    question: str, passages: Sequence[Passage], space: EmbeddingSpace | None
) -> tuple[list[float] | None, list[float] | None]:
    """The calibrated similarities of the passages and of their titles to the question; None if no
    model can tell."""
    scale = scale_of(space) if space and question else None
    if space is None or scale is None:
        return None, None
    nearness = [
        0.0 if passage.similarity is None else scale.nearness(passage.similarity)
        for passage in passages
    ]
    titles = list(dict.fromkeys(passage.title for passage in passages))
    try:
        similarities = embed_titles(space, titles) @ embed_question(space, question)
    except InferenceError as error:
        logger.warning("the embedding model failed, titles are not compared: %s", error)
        return nearness, None
    of_title = dict(zip(titles, scale.nearness(similarities.astype(np.float64)), strict=True))
    return nearness, [float(of_title[passage.title]) for passage in passages]


def _main_space(passages: Sequence[Passage]) -> EmbeddingSpace | None:
    """The embedding space that most of the passages are in; its model can compare all of them, as
    their texts are embedded anew. None if there are no passages."""
    ids = [passage.chunk_id for passage in passages]
    counted = Counter(Chunk.objects.filter(pk__in=ids).values_list("space_id", flat=True))
    return EmbeddingSpace.objects.get(pk=counted.most_common(1)[0][0]) if counted else None


def quote_passages(
    question: str,
    passages: Sequence[Passage],
    found: FoundPassages,
    *,
    language: str,
    query_language: str,
) -> tuple[ExtractiveAnswer, Evidence]:
    """The sentences of `passages`, those of `found` as they are numbered, that answer, quoted, and
    the evidence with that of the best one; `language` and `query_language` as in `extract_answer`.
    Those of the sections are quoted; where these are not sure to answer, and where there are none,
    the embedding model compares sentences of the others. Releases the database before a model is
    asked.
    """
    space = _main_space(passages)
    sections = sections_of(passages, found.sections)
    release_connection()

    def similar(texts: Sequence[str]) -> list[float] | None:
        # No time limit, so that the same question quotes the same sentences on a busy machine too;
        # the caller bounds how many texts are compared.
        try:
            compared = compare_sentences(space, question, texts) if space else None
        except InferenceError as error:
            logger.warning("the embedding model failed, sentences are chosen by words: %s", error)
            return None
        return None if compared is None else compared.tolist()

    def compared(
        passages: Sequence[Passage], evidence: Evidence
    ) -> tuple[ExtractiveAnswer, Evidence]:
        quoted = extract_answer(
            question, passages, similar=similar, language=language, query_language=query_language
        )
        return quoted, with_quotation(evidence, quoted, query_language=query_language)

    evidence = found.evidence
    if not sections:
        return compared(passages, evidence)
    reader = found.reader
    confidence = judge_confidence(evidence)
    others = [passage for passage in passages if not _is_compared(passage, query_language, reader)]
    if confidence != "high" and others and evidence.is_multilingual:
        unread = replace(evidence, section_score=None, is_second=bool(query_language))
        second, found_second = compared(others, unread)
        second_confidence = judge_confidence(found_second)
        if second_confidence == "high" or confidence == "none":
            return second, found_second
    quoted = quote_sections(
        question,
        sections,
        confidence=confidence,
        read=(lambda texts: reader.read(question, texts)) if reader else None,
        answering_rows=answering_rows(
            question, passages, wanted_kind(question, language=query_language)
        ),
        language=language,
        query_language=query_language,
    )
    return quoted, evidence
