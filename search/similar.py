"""Documents or passages similar to a given one, by stored vectors and by its highest-weighted
terms. Begin with `similar_documents`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.replicas import read_connection, reads_from_replica
from documents.embedders import embed_question
from documents.models import Chunk, Document
from inference.interfaces import InferenceError
from search.query import Query
from search.ranking import RankedHit, RankingOptions, fused_hits
from search.results import Scope, load_document_info
from search.retrieval.arms import retrieve
from search.retrieval.scope_facts import read_scope_facts

#: More keywords would match any text.
MAX_KEYWORDS = 12
#: Characters of a long document that are read.
MAX_KEYWORD_SOURCE_CHARACTERS = 20_000

#: Words with the lexemes they are found by. A term that occurs in no other chunk cannot find
#: similar ones; one that is in every third says nothing. Chunks just removed may be counted.
_KEYWORDS_SQL = """
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


def top_keywords(document_id: int, *, chunk_id: int | None = None) -> list[str]:
    """Keywords of the document, or of one passage, by tf-idf: frequent in it, rare elsewhere."""
    parameters = {
        "document": document_id,
        "chunk": chunk_id,
        "read": MAX_KEYWORD_SOURCE_CHARACTERS,
        "most": MAX_KEYWORDS,
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_KEYWORDS_SQL, parameters)
        return [word for (word,) in cursor.fetchall()]


MAX_SIMILAR = 50
#: Candidates per arm.
DEPTH = 200
#: Arm weights: of the many words of a passage, few are its subject.
WEIGHTS = {"lexical": 0.25, "vector": 0.75}
#: Least normalised similarity (0 is unrelated): below it, only the language is shared. In
#: ragsite's own documentation the best eight have 0.5 to 0.8.
MIN_SIMILARITY = 0.3
#: Characters of a text that another space's model embeds.
MAX_EMBEDDED_CHARACTERS = 2000
MAX_TEXT_CHARACTERS = 300

Vectors = dict[int, NDArray[np.float32]]
#: A hit with its relevance, 0..1.
Scored = tuple[RankedHit, float]


@dataclass(frozen=True, slots=True)
class SimilarPassage:
    """A passage similar to the one asked about; of a document its most similar one.

    `text` is its beginning. `similarity` is the cosine, -1..1; None for vectors of models that
    do not work. `relevance` 0..1 is its score over the best score.
    """

    chunk_id: int
    ordinal: int
    heading_path: tuple[str, ...]
    page: int | None
    start: int
    end: int
    text: str
    document_id: int
    document_key: str
    version: int
    is_current: bool
    title: str
    source: str
    url: str
    media_type: str
    language: str
    collection_slug: str
    collection_name: str
    updated_at: datetime
    dated: str
    similarity: float | None
    relevance: float


@reads_from_replica
def similar_documents(
    document: Document, *, scope: Scope, k: int = 10
) -> tuple[SimilarPassage, ...]:
    """The `k` documents in `scope` most similar to `document`, best first; fewer where others have
    nothing in common with it.

    Never the document, another version of it, or one with the same text. `scope` must be in the
    document's workspace. Raises InvalidInput for an invalid `k`.
    """
    _check_count(k)
    chunks = Chunk.objects.filter(document=document.text_id)
    first = chunks.order_by("ordinal").values_list("context", "text").first()
    if first is None:
        return ()
    with read_connection().cursor() as cursor:
        # One mean vector for each space: there are two during re-embedding.
        cursor.execute(
            "SELECT space_id, avg(embedding) FROM documents_chunk"
            " WHERE document_id = %s AND embedding IS NOT NULL GROUP BY space_id",
            [document.text_id],
        )
        vectors = {space: mean.to_numpy() for space, mean in cursor.fetchall()}
    subject = _Subject(
        vectors=vectors,
        words=top_keywords(document.text_id),
        opening="\n".join(first),
        same_text={document.content_sha256} - {""},
    )
    listed = _retrieve(
        subject, scope=replace(scope, excluded_document_ids=_same_documents(document))
    )
    best: dict[int, Scored] = {}
    for each in listed:
        best.setdefault(each[0].candidate.document_id, each)
    return _without_duplicates(list(best.values()), subject, k=k, by_document=True)


@reads_from_replica
def similar_passages(chunk: Chunk, *, scope: Scope, k: int = 10) -> tuple[SimilarPassage, ...]:
    """The `k` passages in `scope` most similar to `chunk`, best first, of other documents and with
    other text. Otherwise like `similar_documents`.
    """
    _check_count(k)
    vector = Chunk.objects.filter(pk=chunk.pk, embedding__isnull=False).values_list(
        "space_id", "embedding"
    )
    subject = _Subject(
        vectors={space: np.asarray(of, dtype=np.float32) for space, of in vector},
        words=top_keywords(chunk.document_id, chunk_id=chunk.pk),
        opening=f"{chunk.context}\n{chunk.text}",
        same_text={chunk.content_sha256},
    )
    listed = _retrieve(
        subject, scope=replace(scope, excluded_document_ids=_same_documents(chunk.document))
    )
    return _without_duplicates(listed, subject, k=k, by_document=False)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The passage or document asked about: vectors by space id, keywords, opening text."""

    vectors: Vectors
    words: Sequence[str]
    opening: str
    same_text: set[str]


def _check_count(k: int) -> None:
    if not 1 <= k <= MAX_SIMILAR:
        raise InvalidInput(f"k may be 1 to {MAX_SIMILAR}.", field="k")


def _same_documents(document: Document) -> tuple[int, ...]:
    """Ids of the document, its versions, and known duplicates."""
    versions = document.versions.values("pk")
    bytes_of = {document.pk, document.text_id}
    same = Document.objects.filter(
        Q(pk__in=versions)
        | Q(pk__in=bytes_of)
        | Q(duplicate_of__in=versions)
        | Q(duplicate_of__in=bytes_of)
    )
    return tuple(same.order_by("pk").values_list("pk", flat=True))


def _retrieve(subject: _Subject, *, scope: Scope) -> list[Scored]:
    # Its vectors; in other spaces its embedded opening, if the model works.
    vectors: Vectors = {}
    for space in read_scope_facts(scope).spaces:
        if space.pk in subject.vectors:
            vectors[space.pk] = subject.vectors[space.pk]
            continue
        try:
            vectors[space.pk] = embed_question(space, subject.opening[:MAX_EMBEDDED_CHARACTERS])
        except InferenceError:
            continue
    if not subject.words and not vectors:
        return []
    retrieved = retrieve(
        Query(text=" ".join(subject.words)),
        scope=scope,
        mode="hybrid" if subject.words else "vector",
        depth=DEPTH,
        vectors=vectors,
    )
    query = Query(text=" ".join(subject.words))
    options = RankingOptions(method="score", depth=DEPTH, k=DEPTH, evidence=False)
    hits = [
        hit
        for hit in fused_hits(query, retrieved, WEIGHTS, options)
        if hit.candidate.closeness is None or hit.candidate.closeness >= MIN_SIMILARITY
    ]
    best = max((hit.score for hit in hits), default=0.0)
    return [(hit, hit.score / best if best > 0 else 0.0) for hit in hits]


def _without_duplicates(
    listed: Sequence[Scored], subject: _Subject, *, k: int, by_document: bool
) -> tuple[SimilarPassage, ...]:
    """Without duplicates of a text, nor of the subject's."""
    chunks = (
        Chunk.objects.select_related("document", "collection")
        .defer("embedding", "search_vector")
        .in_bulk([hit.candidate.chunk_id for hit, _ in listed[: 3 * k]])
    )
    of = load_document_info(chunk.document_id for chunk in chunks.values())
    seen = set(subject.same_text)
    shown: list[SimilarPassage] = []
    for hit, relevance in listed:
        chunk = chunks.get(hit.candidate.chunk_id)
        if chunk is None or chunk.document_id not in of:
            continue
        text = chunk.document.content_sha256 if by_document else chunk.content_sha256
        if text not in seen:
            dated = of[chunk.document_id].dated
            shown.append(_similar_passage(chunk, hit, relevance=relevance, dated=dated))
        seen |= {text} - {""}
    return tuple(shown[:k])


def _similar_passage(
    chunk: Chunk, hit: RankedHit, *, relevance: float, dated: str
) -> SimilarPassage:
    document, collection = chunk.document, chunk.collection
    line = " ".join(chunk.text.split())
    if len(line) > MAX_TEXT_CHARACTERS:
        line = line[:MAX_TEXT_CHARACTERS].rpartition(" ")[0].rstrip(",;:") + "…"
    return SimilarPassage(
        chunk_id=chunk.pk,
        ordinal=chunk.ordinal,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        start=chunk.start,
        end=chunk.end,
        text=line,
        document_id=document.pk,
        document_key=document.key,
        version=document.version,
        is_current=document.is_current,
        title=document.display_title,
        source=document.source,
        url=document.url,
        media_type=chunk.media_type,
        language=document.language,
        collection_slug=collection.slug,
        collection_name=collection.name,
        updated_at=document.updated_at,
        dated=dated,
        similarity=hit.candidate.similarity,
        relevance=round(relevance, 4),
    )
