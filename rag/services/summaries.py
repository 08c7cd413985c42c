"""Summaries of a document, or of the documents that a filter leaves: quoted at once, or written by
a chat model in the background, and kept. Begin with `document_text_of`, `scope_text_of` and
`get_summary`.

A summary is found by the SHA-256 of the passages that it was made from, and only who may read all
of them can name it: rights are checked by what is read before, not by the row.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import IntegrityError, connection, transaction
from numpy.typing import NDArray

from common.errors import InvalidInput, NotFound
from documents.models import Chunk, Document
from inference.chat_models import chat_model
from inference.interfaces import InferenceError
from memory.injection import estimated_tokens
from rag.answering.central_sentences import (
    PASSAGES_PER_SENTENCE,
    central_passages,
    central_sentences,
)
from rag.answering.extractive import Quote
from rag.context import RagContext
from rag.errors import NoChatModel
from rag.events import Citation, Passage
from rag.models import Summary
from rag.services.conversations import lock_documents
from rag.tools.document_tools import passage_from_chunk
from search.results import Scope
from search.retrieval.statements import scope_conditions

#: Sentences of an extractive summary, by kind.
SENTENCES: Mapping[str, int] = {Summary.Kind.ABOUT: 4, Summary.Kind.SUMMARY: 7}
#: Passages that are considered; of a longer text every second, third … by its id.
MAX_PASSAGES = 20_000
#: Passages whose vectors are compared with each other: their similarities take 16 MB.
MAX_COMPARED = 2_000

_PASSAGES_SQL = """
SELECT chunk.id, chunk.document_id, chunk.space_id, chunk.content_sha256
FROM documents_chunk AS chunk
WHERE {condition} AND chunk.id %% %(step)s = 0
ORDER BY chunk.document_id, chunk.ordinal"""
_COUNT_SQL = "SELECT count(*) FROM documents_chunk AS chunk WHERE {condition}"


@dataclass(frozen=True, slots=True)
class TextToSummarize:
    """The passages of a text in order: (chunk, document, embedding space) ids of those that are
    considered. `fingerprint` names exactly this text. `document` is the one document that it is
    of."""

    workspace_id: int
    passages: Sequence[tuple[int, int, int]]
    passage_count: int
    fingerprint: str
    document: Document | None = None

    @property
    def document_ids(self) -> list[int]:
        """Documents whose text it is; a link and the document that it links to are two."""
        own = {self.document.pk} if self.document else set()
        return sorted(own | {document for _, document, _ in self.passages})


def document_text_of(document: Document) -> TextToSummarize:
    """The text of a document that the caller may read, in the version that it is."""
    condition = "chunk.document_id = %(document)s"
    return _read(
        condition, {"document": document.text_id}, document.workspace_id, document=document
    )


def scope_text_of(scope: Scope) -> TextToSummarize:
    """All passages of a search's scope: what its filters leave of what the user may read."""
    condition, parameters = scope_conditions(scope)
    return _read(condition, parameters, scope.workspace_id)


def find_document(context: RagContext, pk: int) -> Document:
    """The document, in any version, if the caller may read it. Raises NotFound."""
    context.require("read")
    documents = Document.objects.filter(workspace=context.workspace, pk=pk)
    if context.user is not None:
        documents = documents.visible_to(context.user)
    document = documents.select_related("collection").first()
    if document is None:
        raise NotFound("There is no such document. It may have been deleted.")
    return document


def _read(
    condition: str, parameters: Mapping[str, Any], workspace_id: int, **fields: Any
) -> TextToSummarize:
    document: Document | None = fields.get("document")
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_SQL.format(condition=condition), parameters)
        (count,) = cursor.fetchone()
        step = -(-count // MAX_PASSAGES) or 1
        cursor.execute(_PASSAGES_SQL.format(condition=condition), {**parameters, "step": step})
        rows = cursor.fetchall()
    digest = hashlib.sha256(f"{document.pk if document else ''}/{count}".encode())
    for pk, _, _, sha256 in rows:
        digest.update(f" {pk}:{sha256}".encode())
    passages = [(pk, of, space) for pk, of, space, _ in rows]
    return TextToSummarize(workspace_id, passages, count, digest.hexdigest(), **fields)


def select_passages(text: TextToSummarize, most: int) -> list[Passage]:
    """At most `most` passages that together are like the whole text, in its order, numbered from
    1. By the vectors of the embedding space that most passages are in; evenly spread where there
    are none."""
    rows = list(text.passages)
    if len(rows) > most:
        rows = rows[:: -(-len(rows) // max(most, MAX_COMPARED))]
        spaces = [space for _, _, space in rows]
        usual = max(set(spaces), key=spaces.count)
        vectors = _unit_vectors([pk for pk, _, space in rows if space == usual])
        compared = [row for row in rows if row[0] in vectors] or rows
        if vectors:
            stacked = np.stack([vectors[pk] for pk, _, _ in compared])
            rows = [compared[place] for place in central_passages(stacked, most)]
        else:
            rows = [compared[place * len(compared) // most] for place in range(most)]
    return read_passages([pk for pk, _, _ in rows], document=text.document)


def read_passages(chunk_ids: Sequence[int], *, document: Document | None = None) -> list[Passage]:
    """Passages of these chunks in their order, numbered from 1, as passages of `document` where
    that is given; those that are gone are left out."""
    chunks = {
        chunk.pk: chunk
        for chunk in Chunk.objects.filter(pk__in=chunk_ids)
        .select_related("document__collection")
        .defer("embedding", "search_vector")
    }
    found = [chunks[pk] for pk in chunk_ids if pk in chunks]
    return [
        passage_from_chunk(document or chunk.document, chunk, number=number)
        for number, chunk in enumerate(found, 1)
    ]


def _unit_vectors(chunk_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    rows = Chunk.objects.filter(pk__in=chunk_ids, embedding__isnull=False)
    found = {}
    for pk, embedding in rows.values_list("pk", "embedding"):
        vector = np.asarray(embedding, dtype=np.float32)
        length = float(np.linalg.norm(vector))
        if length > 0:
            found[pk] = vector / length
    return found


def get_summary(text: TextToSummarize, kind: str) -> Summary:
    """The kept summary of exactly this text: a chat model's, also one that is being written, else
    sentences of the text, which are chosen now if they are not kept yet. Raises InvalidInput where
    there is no text."""
    kept = find_summaries(text, kind)
    written = [row for row in kept if row.model]
    if written:
        return max(written, key=lambda row: row.updated_at)
    return kept[0] if kept else _keep_quotes(text, kind)


def find_summaries(text: TextToSummarize, kind: str) -> list[Summary]:
    """The kept summaries of this text, those of models among them."""
    _check(text, kind)
    return list(
        Summary.objects.filter(workspace=text.workspace_id, fingerprint=text.fingerprint, kind=kind)
    )


def quote_sentences(text: TextToSummarize, kind: str) -> list[Quote]:
    """The most central sentences of the text, in its order."""
    _check(text, kind)
    most = SENTENCES[kind]
    return central_sentences(select_passages(text, most * PASSAGES_PER_SENTENCE), most)


def _check(text: TextToSummarize, kind: str) -> None:
    if kind not in SENTENCES:
        raise InvalidInput(
            f"There is no kind of summary “{kind}”. Use {', '.join(SENTENCES)}.", field="kind"
        )
    if not text.passages:
        raise InvalidInput(
            "There is no text to summarise: nothing is here, or it has not been read yet."
        )


def _keep_quotes(text: TextToSummarize, kind: str) -> Summary:
    quotes = quote_sentences(text, kind)
    parts, citations, length = [], [], 0
    for quote in quotes:
        sentence = f"“{' '.join(quote.text.split())}{' …' if quote.part.cut else ''}” "
        number = quote.passage.number
        at = length + len(sentence)
        cited = Citation(quote.passage, at, quote.start, quote.end, quote.text)
        citations.append(dict(cited.data()))
        parts.append(f"{sentence}[{number}]\n\n")
        length += len(parts[-1])
    row = _new_row(text, kind)
    row.text, row.citations = "".join(parts).rstrip(), citations
    # The sentences are of the passages that are most like all: the whole text was compared.
    row.chunks = [pk for pk, _, _ in text.passages][:MAX_COMPARED]
    return _insert(row)


def _new_row(text: TextToSummarize, kind: str, **fields: Any) -> Summary:
    return Summary(
        workspace_id=text.workspace_id,
        fingerprint=text.fingerprint,
        kind=kind,
        documents=text.document_ids,
        passage_count=text.passage_count,
        **fields,
    )


def _insert(row: Summary) -> Summary:
    """Store the row, unless a document has been deleted meanwhile: then it is not kept. Returns
    the row of whoever was faster."""
    try:
        with transaction.atomic():
            if len(lock_documents(row.documents)) == len(row.documents):
                row.save()
    except IntegrityError:
        return Summary.objects.get(
            workspace=row.workspace_id,
            fingerprint=row.fingerprint,
            kind=row.kind,
            model=row.model,
        )
    return row


def create_written_summary(
    text: TextToSummarize, kind: str, *, model: str = "", max_tokens: int
) -> Summary:
    """A row for a chat model to write, or the one that is there; one that failed is begun anew. Of
    a text with more than `max_tokens` the most central passages are read. Raises NoChatModel and
    InvalidInput."""
    _check(text, kind)
    try:
        chat = chat_model(model)
    except InferenceError as error:
        raise InvalidInput(str(error), field="model") from error
    if chat is None:
        raise NoChatModel("A written summary")
    name = model or chat.model_name
    kept = {row.model: row for row in find_summaries(text, kind)}
    if (row := kept.get(name)) is not None:
        if row.state != Summary.State.FAILED:
            return row
        row.delete()
    sizes = Chunk.objects.filter(pk__in=[pk for pk, _, _ in text.passages[:MAX_COMPARED]])
    tokens = list(sizes.values_list("token_count", flat=True))
    usual = max(1.0, sum(tokens) / max(1, len(tokens)))
    passages = select_passages(text, max(1, round(max_tokens / usual)))
    # Token counts of chunks are the embedder's: in the order of the text no more than fits.
    chosen, room = [], max_tokens
    for passage in passages:
        room -= estimated_tokens(passage.text)
        if room < 0 and chosen:
            break
        chosen.append(passage.chunk_id)
    return _insert(_new_row(text, kind, model=name, state=Summary.State.WAITING, chunks=chosen))


def cancel_summary(text: TextToSummarize, kind: str) -> int:
    """Stop chat models that write a summary of this text; returns how many. Their rows go: a
    worker that has one ends within seconds."""
    rows = Summary.objects.filter(
        workspace=text.workspace_id,
        fingerprint=text.fingerprint,
        kind=kind,
        state__in=[Summary.State.WAITING, Summary.State.RUNNING],
    )
    return rows.delete()[0]
