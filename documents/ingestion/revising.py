"""What people changed in a document, put into what its source says: before each loading."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from documents.chunkers import TokenCounter
from documents.embedders import embedder_for
from documents.ingestion.patching import Change, find_change, joined, owner_of, rewritten
from documents.ingestion.preparing import (
    PreparedChunk,
    PreparedDocument,
    chunk_digest,
    context_limit,
    contextual_title,
)
from documents.models import ChunkEdit, Collection, Document
from documents.models.chunk import embedding_text
from documents.parsers import content_sha256

State = ChunkEdit.State


@dataclass(frozen=True, slots=True)
class Revision:
    """What is to be kept of a document: edits in the order in which they were made, and what was
    set of it. `source_id` is the document that has them, an older version of it perhaps."""

    source_id: int
    edits: Sequence[ChunkEdit] = ()
    corrections: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revised:
    """A prepared document as it is to be loaded, and what became of each edit."""

    document: PreparedDocument
    states: Mapping[int, str] = field(default_factory=dict)


def revisions_of(documents: Iterable[Document]) -> dict[int, Revision]:
    """By document; none for the many that nobody changed. A version on its way keeps what the
    current one has."""
    wanted = {document.pk: document for document in documents}
    sources = _sources(wanted)
    ids = set(sources.values())
    edits: dict[int, list[ChunkEdit]] = defaultdict(list)
    for edit in ChunkEdit.objects.filter(document__in=ids, state__in=_OPEN).order_by("pk"):
        edits[edit.document_id].append(edit)
    rows = Document.objects.filter(pk__in=ids).exclude(corrections={})
    corrections = dict(rows.values_list("pk", "corrections"))
    return {
        pk: Revision(source, edits.get(source, []), corrections.get(source, {}))
        for pk, source in sources.items()
        if source in edits or source in corrections
    }


#: A conflict may be none any more: the source may say again what it said.
_OPEN = (State.APPLIED, State.CONFLICT)


def _sources(documents: Mapping[int, Document]) -> dict[int, int]:
    waiting = [row for row in documents.values() if not row.is_current]
    current: dict[tuple[int, str], int] = {}
    if waiting:
        rows = Document.objects.filter(
            collection__in={row.collection_id for row in waiting},
            key__in=[row.key for row in waiting],
            is_current=True,
        )
        current = {(row.collection_id, row.key): row.pk for row in rows}
    return {
        pk: current.get((row.collection_id, row.key), pk) if not row.is_current else pk
        for pk, row in documents.items()
    }


def revise(prepared: PreparedDocument, revision: Revision, *, collection: Collection) -> Revised:
    """What a source says, with what people changed."""
    counter = embedder_for(collection.space).token_counter()
    corrected = corrected_document(prepared, revision.corrections, counter)
    chunks = list(corrected.chunks)
    states: dict[int, str] = {}
    for edit in revision.edits:
        found = find_change(joined(chunks), edit.before, edit.after, near=edit.start)
        changed = None if found is None else _patched(chunks, found, counter)
        states[edit.pk] = State.CONFLICT if changed is None else State.APPLIED
        if found is not None and found.start == found.end and not found.text:
            states[edit.pk] = State.CLOSED  # the source says so itself by now
        chunks = changed if changed is not None else chunks
    if chunks == list(corrected.chunks):
        return Revised(corrected, states)
    digest = content_sha256(joined(chunks))
    return Revised(replace(corrected, chunks=tuple(chunks), content_sha256=digest), states)


def _patched(
    chunks: Sequence[PreparedChunk], change: Change, counter: TokenCounter
) -> list[PreparedChunk] | None:
    """The chunks with a change; None where the model could not read what it makes."""
    owner = owner_of(chunks, change)
    if owner is None:
        return None

    def fits(index: int, text: str) -> bool:
        return can_be_read(chunks[index].context, text, counter, before=chunks[index].text)

    extents = rewritten(chunks, change, owner=owner, fits=fits)
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


def can_be_read(context: str, text: str, counter: TokenCounter, *, before: str = "") -> bool:
    """Whether the model reads all of a passage; one that was too long already may stay so."""
    tokens = counter.count(embedding_text(context, text))
    return tokens <= counter.max_tokens or tokens <= counter.count(embedding_text(context, before))


# --- what was set of the document ----------------------------------------------------------------


def corrected_document(
    prepared: PreparedDocument, corrections: Mapping[str, Any], counter: TokenCounter
) -> PreparedDocument:
    """With the title and metadata that people set; the title stands in each chunk's context."""
    if not corrections:
        return prepared
    title = str(corrections.get("title") or prepared.title)
    chunks = prepared.chunks
    if title != prepared.title:
        chunks = tuple(
            replace(chunk, context=context, content_sha256=chunk_digest(context, chunk.text))
            for chunk in chunks
            for context in [
                context_under(
                    title, chunk.context, chunk.heading_path, counter, before=prepared.title
                )
            ]
        )
    metadata = corrected_metadata(prepared.metadata, corrections)
    return replace(prepared, title=title, metadata=metadata, chunks=chunks)


def corrected_metadata(
    metadata: Mapping[str, Any], corrections: Mapping[str, Any]
) -> dict[str, Any]:
    """What a source tells of itself, but for what people set or took away."""
    without = set(corrections.get("without", ()))
    told = {name: value for name, value in metadata.items() if name not in without}
    return {**told, **corrections.get("metadata", {})}


def context_under(
    title: str, context: str, path: Sequence[str], counter: TokenCounter, *, before: str
) -> str:
    """A chunk's context under another title; one that its author wrote stays."""
    limit = context_limit(counter)
    if context == contextual_title(before, path, counter, limit):
        return contextual_title(title, path, counter, limit)
    if before and context.startswith(before):
        return title + context[len(before) :]
    return context


# --- afterwards ----------------------------------------------------------------------------------


def settle(revisions: Mapping[int, Revision], revised: Mapping[int, Revised]) -> None:
    """Note in the loading transaction what became of the edits; a new version gets its own. Of a
    document that is not `revised`, because a program wrote all of it, nothing is kept."""
    for pk, revision in revisions.items():
        states = revised[pk].states if pk in revised else {}
        if revision.source_id == pk:
            _note(revision.edits, states)
        else:
            copy_edits(revision.edits, document_id=pk, states=states)
        kept = dict(revision.corrections) if pk in revised else {}
        Document.objects.filter(pk=pk).exclude(corrections=kept).update(corrections=kept)


def _note(edits: Sequence[ChunkEdit], states: Mapping[int, str]) -> None:
    for edit in edits:
        state = states.get(edit.pk, State.CONFLICT)
        if state != edit.state:
            ChunkEdit.objects.filter(pk=edit.pk).update(state=state, settled_at=timezone.now())


def copy_edits(
    edits: Iterable[ChunkEdit], *, document_id: int, states: Mapping[int, str] | None = None
) -> None:
    """The same edits of another document that says the same: by whom and when they were made."""
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
    """Those that a new text of the document is to keep."""
    return ChunkEdit.objects.filter(document=document_id, state__in=_OPEN).order_by("pk")
