"""Edits by people, reapplied to every new text of a document before it is loaded. Begin with
`apply_pending_edits`."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from documents.embedders import embedder_for
from documents.ingestion.preparation import (
    PreparedChunk,
    PreparedDocument,
    chunk_context,
    chunk_digest,
    max_context_tokens,
)
from documents.ingestion.text_changes import (
    TextChange,
    apply_change,
    find_change,
    join_passages,
    owner_index,
)
from documents.models import ChunkEdit, Collection, Document
from documents.models.chunk import embedding_text
from reading.chunkers.base import TokenCounter
from reading.parsers import content_sha256

State = ChunkEdit.State


@dataclass(frozen=True, slots=True)
class PendingEdits:
    """People's edits of a document in the order in which they were made, and its corrected fields.
    `source_id` is the document that has them, perhaps an older version."""

    source_id: int
    edits: Sequence[ChunkEdit] = ()
    corrections: Mapping[str, Any] = field(default_factory=dict)


def load_pending_edits(documents: Iterable[Document]) -> dict[int, PendingEdits]:
    """Pending edits by document; documents without edits are left out. A waiting version takes
    those of the current one."""
    wanted = {document.pk: document for document in documents}
    waiting = [row for row in wanted.values() if not row.is_current]
    current: dict[tuple[int, str], int] = {}
    if waiting:
        now_current = Document.objects.filter(
            collection__in={row.collection_id for row in waiting},
            key__in=[row.key for row in waiting],
            is_current=True,
        )
        current = {(row.collection_id, row.key): row.pk for row in now_current}
    sources = {
        pk: current.get((row.collection_id, row.key), pk) if not row.is_current else pk
        for pk, row in wanted.items()
    }
    ids = set(sources.values())
    edits: dict[int, list[ChunkEdit]] = defaultdict(list)
    for edit in ChunkEdit.objects.filter(document__in=ids, state__in=_OPEN_STATES).order_by("pk"):
        edits[edit.document_id].append(edit)
    rows = Document.objects.filter(pk__in=ids).exclude(corrections={})
    corrections = dict(rows.values_list("pk", "corrections"))
    return {
        pk: PendingEdits(source, edits.get(source, []), corrections.get(source, {}))
        for pk, source in sources.items()
        if source in edits or source in corrections
    }


#: A conflict may be resolved: the source may contain the former text again.
_OPEN_STATES = (State.APPLIED, State.CONFLICT)


def apply_pending_edits(
    prepared: PreparedDocument, revision: PendingEdits, *, collection: Collection
) -> tuple[PreparedDocument, dict[int, str]]:
    """The prepared document with people's edits and corrections, and the new state of each edit."""
    counter = embedder_for(collection.space).token_counter()
    corrected = with_corrections(prepared, revision.corrections, counter)
    chunks = list(corrected.chunks)
    states: dict[int, str] = {}
    for edit in revision.edits:
        found = find_change(join_passages(chunks), edit.before, edit.after, near=edit.start)
        changed = None if found is None else _apply_to_chunks(chunks, found, counter)
        states[edit.pk] = State.CONFLICT if changed is None else State.APPLIED
        if found is not None and found.start == found.end and not found.text:
            states[edit.pk] = State.CLOSED  # the source contains it by now
        chunks = changed if changed is not None else chunks
    if chunks == list(corrected.chunks):
        return corrected, states
    digest = content_sha256(join_passages(chunks))
    return replace(corrected, chunks=tuple(chunks), content_sha256=digest), states


def _apply_to_chunks(
    chunks: Sequence[PreparedChunk], change: TextChange, counter: TokenCounter
) -> list[PreparedChunk] | None:
    """The chunks with a change; None if the result exceeds the model's context."""
    owner = owner_index(chunks, change)
    if owner is None:
        return None

    def fits(index: int, text: str) -> bool:
        return fits_model(chunks[index].context, text, counter, before=chunks[index].text)

    extents = apply_change(chunks, change, owner=owner, fits=fits)
    there = [(chunk, extent) for chunk, extent in zip(chunks, extents, strict=True) if extent]
    held = extents[owner]
    if held is None or not held.text.strip() or not fits(owner, held.text):
        return None
    return [
        replace(chunk, ordinal=ordinal, start=extent.start, end=extent.end)
        if chunk.text == extent.text
        else replace(
            chunk,
            ordinal=ordinal,
            start=extent.start,
            end=extent.end,
            text=extent.text,
            token_count=counter.count(extent.text),
            content_sha256=chunk_digest(chunk.context, extent.text),
        )
        for ordinal, (chunk, extent) in enumerate(there)
    ]


def fits_model(context: str, text: str, counter: TokenCounter, *, before: str = "") -> bool:
    """Whether the model reads all of a passage; one that was too long already may stay so."""
    tokens = counter.count(embedding_text(context, text))
    return tokens <= counter.max_tokens or tokens <= counter.count(embedding_text(context, before))


# --- what was set of the document ----------------------------------------------------------------


def with_corrections(
    prepared: PreparedDocument, corrections: Mapping[str, Any], counter: TokenCounter
) -> PreparedDocument:
    """With the title and metadata that people set; the title is part of each chunk's context."""
    if not corrections:
        return prepared
    title = str(corrections.get("title") or prepared.title)
    chunks = prepared.chunks
    if title != prepared.title:
        chunks = tuple(
            replace(chunk, context=context, content_sha256=chunk_digest(context, chunk.text))
            for chunk in chunks
            for context in [
                context_with_title(
                    title, chunk.context, chunk.heading_path, counter, before=prepared.title
                )
            ]
        )
    removed = set(corrections.get("without", ()))
    kept = {name: value for name, value in prepared.metadata.items() if name not in removed}
    metadata = {**kept, **corrections.get("metadata", {})}
    return replace(prepared, title=title, metadata=metadata, chunks=chunks)


def context_with_title(
    title: str, context: str, path: Sequence[str], counter: TokenCounter, *, before: str
) -> str:
    """A chunk's context with another title; a context written by its author stays."""
    limit = max_context_tokens(counter)
    if context == chunk_context(before, path, counter, limit):
        return chunk_context(title, path, counter, limit)
    if before and context.startswith(before):
        return title + context[len(before) :]
    return context


# --- afterwards ----------------------------------------------------------------------------------


def settle_edits(
    revisions: Mapping[int, PendingEdits], states: Mapping[int, Mapping[int, str]]
) -> None:
    """Save in the loading transaction the new `states` of the edits, by document and edit; a new
    version gets copies. Edits of a document that is not in `states`, because a program replaced it,
    are dropped."""
    for pk, revision in revisions.items():
        own = states.get(pk, {})
        if revision.source_id == pk:
            for edit in revision.edits:
                state = own.get(edit.pk, State.CONFLICT)
                if state != edit.state:
                    ChunkEdit.objects.filter(pk=edit.pk).update(
                        state=state, settled_at=timezone.now()
                    )
        else:
            copy_edits(revision.edits, document_id=pk, states=own)
        kept = dict(revision.corrections) if pk in states else {}
        Document.objects.filter(pk=pk).exclude(corrections=kept).update(corrections=kept)


def copy_edits(
    edits: Iterable[ChunkEdit], *, document_id: int, states: Mapping[int, str] | None = None
) -> None:
    """Copy the edits to another document with the same text, with their users and times."""
    for edit in edits:
        made_at = edit.created_at
        copy = ChunkEdit.objects.create(
            workspace_id=edit.workspace_id,
            document_id=document_id,
            chunk=edit.chunk,
            start=edit.start,
            before=edit.before,
            after=edit.after,
            state=edit.state if states is None else states.get(edit.pk, State.CONFLICT),
            user_id=edit.user_id,
        )
        ChunkEdit.objects.filter(pk=copy.pk).update(created_at=made_at)


def open_edits(document_id: int) -> "QuerySet[ChunkEdit]":
    """Edits to reapply to a new text of the document."""
    return ChunkEdit.objects.filter(document=document_id, state__in=_OPEN_STATES).order_by("pk")
