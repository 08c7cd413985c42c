"""Summaries that are kept: quoted at once, or written by a chat model in the background. Begin with
`get_summary`; `rag.tools.summaries` reads what they are made from.

A summary is found by the SHA-256 of the passages that it was made from, and only who may read all
of them can name it: rights are checked by what is read before, not by the row.
"""

from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.stored_messages import translated_message
from documents.models import Chunk
from inference.chat_models import chat_model
from inference.interfaces import InferenceError
from memory.injection import estimated_tokens
from model_servers.token_limits import require_tokens
from rag.answering.central_sentences import quoted_pieces
from rag.errors import NoChatModel
from rag.events import Citation
from rag.models import Summary
from rag.services.conversations import lock_documents
from rag.tools.summaries import (
    MAX_COMPARED,
    TextToSummarize,
    check_kind,
    quote_sentences,
    select_passages,
)


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
    check_kind(text, kind)
    return list(
        Summary.objects.filter(workspace=text.workspace_id, fingerprint=text.fingerprint, kind=kind)
    )


def _keep_quotes(text: TextToSummarize, kind: str) -> Summary:
    pieces = quoted_pieces(quote_sentences(text, kind))
    row = _new_row(text, kind)
    row.text = "".join(piece for piece in pieces if isinstance(piece, str))
    row.citations = [dict(piece.data()) for piece in pieces if isinstance(piece, Citation)]
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
    text: TextToSummarize, kind: str, *, user: Any = None, model: str = "", max_tokens: int
) -> Summary:
    """A row for a chat model to write, or the one that is there; one that failed is begun anew. Of
    a text with more than `max_tokens` the most central passages are read. Raises NoChatModel,
    InvalidInput, and TooManyRequests where the tokens of the workspace or the user are used up."""
    check_kind(text, kind)
    try:
        chat = chat_model(model, workspace_id=text.workspace_id)
    except InferenceError as error:
        raise InvalidInput(translated_message(str(error)), field="model") from error
    if chat is None:
        raise NoChatModel(gettext("A written summary"))
    name = model or chat.model_name
    kept = {row.model: row for row in find_summaries(text, kind)}
    row = kept.get(name)
    if row is not None and row.state != Summary.State.FAILED:
        return row
    require_tokens(workspace_id=text.workspace_id, user_id=user and user.pk)
    if row is not None:
        row.delete()
    sizes = Chunk.objects.filter(pk__in=[pk for pk, _, _ in text.passages[:MAX_COMPARED]])
    tokens = list(sizes.values_list("token_count", flat=True))
    usual = max(1.0, sum(tokens) / max(1, len(tokens)))
    passages = select_passages(text, max(1, round(max_tokens / usual)))
    # Token counts of chunks are the embedder's: in the order of the text no more than fits.
    chosen: list[int] = []
    room = max_tokens
    for passage in passages:
        room -= estimated_tokens(passage.text)
        if room < 0 and chosen:
            break
        chosen.append(passage.chunk_id)
    waiting = {"user": user, "state": Summary.State.WAITING, "chunks": chosen}
    return _insert(_new_row(text, kind, model=name, **waiting))


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
