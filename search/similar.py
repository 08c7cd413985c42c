"""What is like a document or a passage: by the vectors that are stored, and by its rarest words."""

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
from inference.base import InferenceError
from search.query import Query
from search.ranking import Ranked, RankingOptions, fused_hits
from search.results import Scope
from search.retrieval.arms import Retrieved, retrieve
from search.retrieval.facts import scope_facts
from search.telling_words import telling_words
from search.told import told

MOST_SIMILAR = 50
#: So many passages are compared more closely.
DEPTH = 200
#: Of what words and meaning count for; a passage has many words, and few of them are its subject.
WEIGHTS = {"lexical": 0.25, "vector": 0.75}
#: Passages less close than this, on the scale where 0 is as close as any, have nothing in common
#: with it but the language. In ragsite's own documentation the best eight have 0.5 to 0.8.
LEAST_CLOSENESS = 0.3
#: So much of a text is asked about where another model has to read it.
READ_CHARACTERS = 2000
SHOWN_CHARACTERS = 300

Vectors = dict[int, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Similar:
    """A passage that is like what was asked about; of a document the one that is most like it.

    `text` is its beginning. `similarity` is the cosine, -1..1; None for vectors of other models
    that do not answer. `relevance` 0..1 is its score over the best's, for a bar. Of documents each
    is there once.
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
def similar_documents(document: Document, *, scope: Scope, k: int = 10) -> tuple[Similar, ...]:
    """The `k` documents in `scope` that are most like `document`, best first; fewer where no
    others have anything in common with it.

    Never the document itself, another version of it, or one with the same text. `scope` must be one
    of the document's workspace. Raises InvalidInput for a `k` that cannot be.
    """
    _check(k)
    chunks = Chunk.objects.filter(document=document.text_id)
    first = chunks.order_by("ordinal").values_list("context", "text").first()
    if first is None:
        return ()
    subject = _Subject(
        vectors=_mean_vectors(document.text_id),
        words=telling_words(document.text_id),
        opening="\n".join(first),
        same_text={document.content_sha256} - {""},
    )
    listed = _found(subject, scope=replace(scope, but=_same_thing(document)))
    best: dict[int, _Scored] = {}
    for each in listed:
        best.setdefault(each.ranked.candidate.document_id, each)
    return _shown(list(best.values()), subject, k=k, by_document=True)


@reads_from_replica
def similar_passages(chunk: Chunk, *, scope: Scope, k: int = 10) -> tuple[Similar, ...]:
    """The `k` passages in `scope` that are most like `chunk`, best first, of other documents than
    its own, whatever their version, and none with its very text. As `similar_documents` else."""
    _check(k)
    vector = Chunk.objects.filter(pk=chunk.pk, embedding__isnull=False).values_list(
        "space_id", "embedding"
    )
    subject = _Subject(
        vectors={space: np.asarray(of, dtype=np.float32) for space, of in vector},
        words=telling_words(chunk.document_id, chunk_id=chunk.pk),
        opening=f"{chunk.context}\n{chunk.text}",
        same_text={chunk.content_sha256},
    )
    listed = _found(subject, scope=replace(scope, but=_same_thing(chunk.document)))
    return _shown(listed, subject, k=k, by_document=False)


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is asked about: its vectors by id of their space, its words, and how it begins."""

    vectors: Vectors
    words: Sequence[str]
    opening: str
    same_text: set[str]


@dataclass(frozen=True, slots=True)
class _Scored:
    ranked: Ranked
    relevance: float


def _check(k: int) -> None:
    if not 1 <= k <= MOST_SIMILAR:
        raise InvalidInput(f"k may be 1 to {MOST_SIMILAR}.", field="k")


def _same_thing(document: Document) -> tuple[int, ...]:
    """The document, its other versions, and all that are known to have the same bytes."""
    versions = document.versions.values("pk")
    bytes_of = {document.pk, document.text_id}
    same = Document.objects.filter(
        Q(pk__in=versions)
        | Q(pk__in=bytes_of)
        | Q(duplicate_of__in=versions)
        | Q(duplicate_of__in=bytes_of)
    )
    return tuple(same.order_by("pk").values_list("pk", flat=True))


def _mean_vectors(document_id: int) -> Vectors:
    """The middle of a document's passages, in each space that has some: one, or two while it is
    embedded anew."""
    with read_connection().cursor() as cursor:
        cursor.execute(
            "SELECT space_id, avg(embedding) FROM documents_chunk"
            " WHERE document_id = %s AND embedding IS NOT NULL GROUP BY space_id",
            [document_id],
        )
        return {space: mean.to_numpy() for space, mean in cursor.fetchall()}


def _found(subject: _Subject, *, scope: Scope) -> list[_Scored]:
    vectors = _in_all_spaces(subject, scope)
    if not subject.words and not vectors:
        return []
    retrieved = retrieve(
        Query(text=" ".join(subject.words)),
        scope=scope,
        mode="hybrid" if subject.words else "vector",
        depth=DEPTH,
        vectors=vectors,
    )
    return _ranked(Query(text=" ".join(subject.words)), retrieved)


def _ranked(query: Query, retrieved: Retrieved) -> list[_Scored]:
    options = RankingOptions(method="score", depth=DEPTH, k=DEPTH, evidence=False)
    hits = [
        hit
        for hit in fused_hits(query, retrieved, WEIGHTS, options)
        if hit.candidate.closeness is None or hit.candidate.closeness >= LEAST_CLOSENESS
    ]
    best = max((hit.score for hit in hits), default=0.0)
    return [_Scored(hit, hit.score / best if best > 0 else 0.0) for hit in hits]


def _in_all_spaces(subject: _Subject, scope: Scope) -> Vectors:
    """Its vectors; in spaces where it has none, that of its beginning, as far as models answer."""
    vectors: Vectors = {}
    for space in scope_facts(scope).spaces:
        if space.pk in subject.vectors:
            vectors[space.pk] = subject.vectors[space.pk]
            continue
        try:
            vectors[space.pk] = embed_question(space, subject.opening[:READ_CHARACTERS])
        except InferenceError:
            continue
    return vectors


def _shown(
    listed: Sequence[_Scored], subject: _Subject, *, k: int, by_document: bool
) -> tuple[Similar, ...]:
    """Each text once, and not the subject's."""
    chunks = (
        Chunk.objects.select_related("document", "collection")
        .defer("embedding", "search_vector")
        .in_bulk([each.ranked.candidate.chunk_id for each in listed[: 3 * k]])
    )
    of = told(chunk.document_id for chunk in chunks.values())
    seen = set(subject.same_text)
    shown: list[Similar] = []
    for each in listed:
        chunk = chunks.get(each.ranked.candidate.chunk_id)
        if chunk is None or chunk.document_id not in of:
            continue
        text = chunk.document.content_sha256 if by_document else chunk.content_sha256
        if text not in seen:
            shown.append(_similar(chunk, each, dated=of[chunk.document_id].dated))
        seen |= {text} - {""}
    return tuple(shown[:k])


def _similar(chunk: Chunk, scored: _Scored, *, dated: str) -> Similar:
    document, collection = chunk.document, chunk.collection
    return Similar(
        chunk_id=chunk.pk,
        ordinal=chunk.ordinal,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        start=chunk.start,
        end=chunk.end,
        text=_opening(chunk.text),
        document_id=document.pk,
        document_key=document.key,
        version=document.version,
        is_current=document.is_current,
        title=document.shown_title,
        source=document.source,
        url=document.url,
        media_type=chunk.media_type,
        language=document.language,
        collection_slug=collection.slug,
        collection_name=collection.name,
        updated_at=document.updated_at,
        dated=dated,
        similarity=scored.ranked.candidate.similarity,
        relevance=round(scored.relevance, 4),
    )


def _opening(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= SHOWN_CHARACTERS:
        return line
    return line[:SHOWN_CHARACTERS].rpartition(" ")[0].rstrip(",;:") + "…"
