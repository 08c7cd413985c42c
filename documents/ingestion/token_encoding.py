"""Tokens of passages that are searchable already, encoded by workers when nothing waits to be
embedded. Begin with `encode_batch`; `documents/late_interaction.py` reads them.

Rows are the truth: `Document.tokens_model` names the model that has read all of a document's
passages, and is empty after each change of them; a row of a passage is claimed for a lease before
its model runs. So no message is needed, no passage is encoded by two workers, and one that kills
its worker is given up after MAX_ATTEMPTS.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from common.leases import retry_on_deadlock
from documents.ingestion.jobs import lease_duration
from documents.languages import FALLBACK, configuration
from documents.late_interaction import (
    ALIAS,
    MAX_ATTEMPTS,
    OFFSET_DTYPE,
    ComparedPassage,
    PassageTokens,
    encode_passages,
    encoder_languages,
    has_token_encoder,
)
from documents.models import Chunk, ChunkTokens, Document, StagedDocument
from inference.interfaces import BackendUnavailable, InferenceError, TokenEncoder
from inference.model_languages import EVERY
from inference.model_registry import token_encoders
from reading.sections import heading_line

logger = logging.getLogger(__name__)

#: Passages of a batch: one or two seconds of a model on two cores.
BATCH_PASSAGES = 16
#: Documents that a batch is taken from; those whose passages all have their tokens are ticked off.
BATCH_DOCUMENTS = 128


def is_embedding_waiting() -> bool:
    """Whether documents wait to become searchable."""
    return StagedDocument.objects.exists()


def unread_documents(model_name: str) -> QuerySet[Document]:
    """Current documents with passages that the model has not all read."""
    return Document.objects.filter(
        # not `<>`, which no index finds
        Q(tokens_model__lt=model_name) | Q(tokens_model__gt=model_name),
        is_current=True,
        status=Document.Status.READY,
        chunk_count__gt=0,
        collection__vectors=True,
    )


def has_work() -> bool:
    """Whether a batch would find documents. Loads no model."""
    if not has_token_encoder() or is_embedding_waiting():
        return False
    try:
        return unread_documents(token_encoders[ALIAS].model_name).exists()
    except InferenceError as error:
        logger.warning("passages wait for their token encoder: %s", error)
        return False


def encode_batch() -> int | None:
    """Encode a batch of the newest documents; returns how many passages got their tokens. None
    where there is nothing to do, other workers do it, or the model does not answer.
    """
    if not has_work():
        return None
    encoder = token_encoders[ALIAS]
    languages = encoder_languages(encoder.model_name)
    configurations = {configuration(code) for code in languages - {EVERY}} - {FALLBACK}
    is_for_all = not languages or EVERY in languages
    query = {
        "model": encoder.model_name,
        "codes": None if is_for_all else sorted(languages),
        "configurations": sorted(configurations),
        "fallback": FALLBACK,
        "attempts": MAX_ATTEMPTS,
    }
    documents = list(
        unread_documents(encoder.model_name)
        .order_by("-pk")
        .values_list("pk", "updated_at")[:BATCH_DOCUMENTS]
    )
    ids = [pk for pk, _ in documents]
    token, claimed = _claim(ids, query, is_retry=False, limit=BATCH_PASSAGES)
    if not claimed:
        token, claimed = _claim(ids, query, is_retry=True, limit=1)
    try:
        _encode(encoder, claimed, token)
    except BackendUnavailable as error:
        logger.warning("passages wait for their token encoder: %s", error)
        ChunkTokens.objects.filter(token=token).delete()
        return None
    marked = retry_on_deadlock(lambda: _mark_read(documents, query))
    return len(claimed) if claimed or marked else None


#: Passages that the model was made for. `simple` is the configuration of unknown languages, and of
#: those that PostgreSQL has none for: there the document's language decides.
_IS_READ = """
    chunk.is_current AND (%(codes)s::text[] IS NULL
        OR chunk.language::text = ANY(%(configurations)s::text[])
        OR chunk.language::text = %(fallback)s AND (document.language = ''
            OR split_part(lower(document.language), '-', 1) = ANY(%(codes)s::text[])))
"""
_IS_STALE = """
    (tokens.model <> %(model)s OR tokens.content_sha256 <> chunk.content_sha256)
"""
_IS_LOST = "(tokens.leased_until < now() AND tokens.attempts < %(attempts)s)"
_CLAIM = """
    WITH chosen AS (
        SELECT chunk.id, chunk.workspace_id, chunk.content_sha256
        FROM documents_document AS document
        JOIN documents_chunk AS chunk ON chunk.document_id = document.id
        LEFT JOIN documents_chunktokens AS tokens ON tokens.chunk_id = chunk.id
        WHERE document.id = ANY(%(documents)s) AND {is_read} AND {is_wanted}
        ORDER BY document.id DESC, chunk.ordinal LIMIT %(limit)s
        -- one that is being deleted has no row to refer to
        FOR KEY SHARE OF chunk SKIP LOCKED
    )
    INSERT INTO documents_chunktokens AS tokens (chunk_id, workspace_id, model, content_sha256,
        bits, starts, ends, attempts, token, leased_until)
    SELECT chunk.id, chunk.workspace_id, %(model)s, chunk.content_sha256, '', '', '', 1, %(token)s,
        now() + make_interval(secs => %(lease)s)
    FROM chosen AS chunk ORDER BY chunk.id
    ON CONFLICT (chunk_id) DO UPDATE
    SET model = excluded.model, content_sha256 = excluded.content_sha256, bits = '', starts = '',
        ends = '', token = excluded.token, leased_until = excluded.leased_until,
        attempts = CASE WHEN tokens.model = excluded.model
            AND tokens.content_sha256 = excluded.content_sha256 THEN tokens.attempts + 1 ELSE 1 END
    -- another worker may have claimed it meanwhile
    WHERE tokens.model <> excluded.model OR tokens.content_sha256 <> excluded.content_sha256
       OR tokens.leased_until < now()
    RETURNING chunk_id
"""
_CLAIM_NEW = _CLAIM.format(is_read=_IS_READ, is_wanted=f"(tokens.chunk_id IS NULL OR {_IS_STALE})")
_CLAIM_LOST = _CLAIM.format(is_read=_IS_READ, is_wanted=_IS_LOST)


@transaction.atomic
def _claim(
    document_ids: Sequence[int], query: Mapping[str, Any], *, is_retry: bool, limit: int
) -> tuple[UUID, list[int]]:
    """Passages of these documents, claimed under the token: new and changed ones, or with
    `is_retry` those whose worker died."""
    token = uuid4()
    with connection.cursor() as cursor:
        cursor.execute(
            _CLAIM_LOST if is_retry else _CLAIM_NEW,
            {
                **query,
                "documents": list(document_ids),
                "limit": limit,
                "token": token,
                "lease": lease_duration().total_seconds(),
            },
        )
        return token, sorted(pk for (pk,) in cursor.fetchall())


def _encode(encoder: TokenEncoder, chunk_ids: Sequence[int], token: UUID) -> None:
    """Encode claimed passages. One that the model refuses gets no tokens, and harms no other.
    Raises BackendUnavailable."""
    fields = ("pk", "text", "heading_path", "content_sha256", "document__title")
    chunks = Chunk.objects.filter(pk__in=chunk_ids).order_by("pk").values_list(*fields)
    digests = {}
    passages = []
    for pk, text, heading_path, digest, title in chunks:
        digests[pk] = digest
        passages.append(ComparedPassage(pk, heading_line(title, heading_path), text))
    for passage, tokens in zip(passages, _encoded(encoder, passages), strict=True):
        values: dict[str, Any] = {}
        if tokens is not None:
            values["bits"] = tokens.bits.tobytes()
            values["starts"] = tokens.starts.astype(OFFSET_DTYPE).tobytes()
            values["ends"] = tokens.ends.astype(OFFSET_DTYPE).tobytes()
        ChunkTokens.objects.filter(pk=passage.chunk_id, token=token).update(
            **values,
            content_sha256=digests[passage.chunk_id],
            token=None,
            leased_until=None,
        )


def _encoded(
    encoder: TokenEncoder, passages: Sequence[ComparedPassage]
) -> list[PassageTokens | None]:
    if not passages:
        return []
    try:
        return [*encode_passages(encoder, passages)]
    except BackendUnavailable:
        raise
    except InferenceError as error:
        if len(passages) == 1:
            logger.warning("passage %d gets no tokens: %s", passages[0].chunk_id, error)
            return [None]
    return [tokens for each in passages for tokens in _encoded(encoder, [each])]


# What was changed after the documents were listed has another `updated_at` by now.
_MARK_READ = f"""
    WITH listed AS (
        SELECT document.id FROM documents_document AS document
        JOIN unnest(%(documents)s::bigint[], %(updated)s::timestamptz[]) AS seen (id, updated_at)
            ON seen.id = document.id AND seen.updated_at = document.updated_at
        WHERE NOT EXISTS (
            SELECT FROM documents_chunk AS chunk
            LEFT JOIN documents_chunktokens AS tokens ON tokens.chunk_id = chunk.id
            WHERE chunk.document_id = document.id AND {_IS_READ}
              AND (tokens.chunk_id IS NULL OR {_IS_STALE} OR tokens.leased_until > now()
                   OR {_IS_LOST}))
        ORDER BY document.id FOR NO KEY UPDATE OF document SKIP LOCKED
    )
    UPDATE documents_document AS document SET tokens_model = %(model)s
    FROM listed WHERE document.id = listed.id
"""  # noqa: S608 (constants)


def _mark_read(documents: Sequence[tuple[int, datetime]], query: Mapping[str, Any]) -> int:
    """Mark those of the documents whose passages all have their tokens, or are given up; returns
    how many."""
    ids, updated = zip(*documents, strict=True) if documents else ((), ())
    with connection.cursor() as cursor:
        cursor.execute(_MARK_READ, {**query, "documents": list(ids), "updated": list(updated)})
        return int(cursor.rowcount)
