"""Vectors for prepared chunks: known ones are taken over, the others embedded."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from documents.ingestion.preparing import PreparedDocument
from inference.base import Embedder
from inference.vectors import check_vectors

Vectors = dict[str, NDArray[np.float32]]

#: Texts that one of several threads asks the model for at a time.
SLICE_TEXTS = 64


# A version on its way takes those of the current one over.
_KNOWN = """
    WITH source (document_id, chunks_of) AS (
        SELECT id, id FROM unnest(%(ids)s::bigint[]) AS id
        UNION ALL
        SELECT waiting.id, current.id FROM documents_document AS waiting
        JOIN documents_document AS current USING (collection_id, key)
        WHERE waiting.id = ANY(%(ids)s) AND NOT waiting.is_current AND current.is_current
    )
    SELECT source.document_id, chunk.content_sha256
    FROM source JOIN documents_chunk AS chunk ON chunk.document_id = source.chunks_of
    WHERE chunk.embedding IS NOT NULL
"""


def known_hashes(document_ids: Sequence[int]) -> set[tuple[int, str]]:
    """(document, content hash) of the chunks that have a vector already.

    In whatever space: those that are not in their collection's are being re-embedded.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"ids": list(document_ids)})
        return set(cursor.fetchall())


def embed_new(
    documents: Sequence[tuple[int, PreparedDocument]],
    *,
    embedder: Embedder,
    concurrency: int = 1,
) -> Vectors:
    """Vectors by content hash for every chunk whose text is new to its document.

    Raises inference.base.InferenceError.
    """
    return embed_texts(new_texts(documents), embedder=embedder, concurrency=concurrency)


def new_texts(documents: Sequence[tuple[int, PreparedDocument]]) -> dict[str, str]:
    """What the model must read, by content hash: the chunks whose text is new to their document."""
    known = known_hashes([document_id for document_id, _ in documents])
    return {
        chunk.content_sha256: chunk.embedding_text
        for document_id, document in documents
        for chunk in document.chunks
        if (document_id, chunk.content_sha256) not in known
    }


def embed_texts(texts: dict[str, str], *, embedder: Embedder, concurrency: int = 1) -> Vectors:
    """Vectors under the keys of `texts`, which go to the model in batches across documents,
    `concurrency` of them at a time. Uses no database. Raises inference.base.InferenceError.
    """
    if not texts:
        return {}
    array = _embedded(embedder, list(texts.values()), concurrency)
    checked = check_vectors(array, dimensions=embedder.dimensions)
    return dict(zip(texts, checked, strict=True))


def _embedded(embedder: Embedder, texts: list[str], concurrency: int) -> NDArray[np.float32]:
    slices = [texts[start : start + SLICE_TEXTS] for start in range(0, len(texts), SLICE_TEXTS)]
    if concurrency == 1 or len(slices) == 1:
        return embedder.embed_documents(texts)
    with ThreadPoolExecutor(min(concurrency, len(slices))) as threads:
        return np.concatenate(list(threads.map(embedder.embed_documents, slices)))
