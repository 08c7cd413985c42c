"""Passages changed by people: only what changes is embedded anew, and it can be undone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from numpy.typing import NDArray

from accounts.history import Action, Kind, note_change
from common.deadlocks import despite_deadlocks
from common.errors import Conflict, InvalidInput, NotFound, RagsiteError
from documents import lexical_index
from documents.chunkers import TokenCounter
from documents.embedders import embedder_for
from documents.ingestion import listeners
from documents.ingestion.locks import share_collections
from documents.ingestion.patching import (
    Change,
    Extent,
    change_between,
    find_change,
    joined,
    owner_of,
    rewritten,
)
from documents.ingestion.preparing import chunk_digest
from documents.ingestion.revising import can_be_read
from documents.models import Chunk, ChunkEdit, Collection, Document
from documents.models.chunk import embedding_text
from documents.parsers import content_sha256, normalise_text
from inference.base import EmptyText, InferenceError, InvalidVector
from inference.vectors import check_vectors

#: Others who change the same document at the same time, a few times, is bad luck.
TRIES = 5
MAX_CHARACTERS = 100_000
#: What the plan of a change must know of every passage.
_FIELDS = ("id", "ordinal", "start", "end", "text", "context", "token_count", "content_sha256")

Vectors = Mapping[int, NDArray[np.float32]]


class ModelAway(RagsiteError):
    """What makes vectors does not work just now."""

    code = "embedder_unavailable"
    status = 503


class StaleText(Conflict):
    """The passage is not the one any more that the caller has seen."""

    code = "stale"


@dataclass(frozen=True, slots=True)
class Edited:
    """What a change did: the passage as it is now, how many passages were embedded anew because
    they share what changed, and how many had nothing of their own left."""

    chunk: Chunk
    embedded: int
    removed: int
    edit: ChunkEdit | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A change of a document, worked out on its passages as they were read."""

    collection: Collection
    chunks: Sequence[Chunk]
    extents: Sequence[Extent | None]
    owner: int
    change: Change

    @property
    def touched(self) -> list[tuple[Chunk, Extent]]:
        """Passages with another text, in their order."""
        pairs = zip(self.chunks, self.extents, strict=True)
        return [(chunk, extent) for chunk, extent in pairs if extent and extent.text != chunk.text]

    @property
    def removed(self) -> list[int]:
        pairs = zip(self.chunks, self.extents, strict=True)
        return [chunk.pk for chunk, extent in pairs if extent is None]


#: What is to change, by the passages as they are now: the change, and which passage holds it.
Wanted = Callable[[Sequence[Chunk]], tuple[Change, int]]


def edit_chunk(*, chunk: Chunk, text: str, user: Any = None, expected: str = "") -> Edited:
    """Make a passage say `text`, and all passages that share what changes.

    `expected` is the `content_sha256` that the caller has seen; by default that of `chunk`. White
    space at the ends stays as it is. Raises InvalidInput, StaleText where the passage says
    something else by now, Conflict for a version that is not current, and ModelAway.
    """
    seen = expected or chunk.content_sha256
    wanted_text = _checked(chunk, text)
    document = current_document(chunk.document_id)

    def wanted(chunks: Sequence[Chunk]) -> tuple[Change, int]:
        place = next((at for at, each in enumerate(chunks) if each.pk == chunk.pk), None)
        if place is None:
            raise NotFound("The passage is gone: its document was ingested again. Reload it.")
        there = chunks[place]
        if there.content_sha256 != seen:
            raise StaleText(
                "Somebody changed this passage meanwhile. Reload it, and change what it says now."
            )
        return change_between(there.text, wanted_text, start=there.start), place

    if wanted_text == chunk.text and seen == chunk.content_sha256:
        return Edited(chunk, 0, 0)
    return _edit(document, wanted, finish=partial(_keep, document, user))


def undo_edit(*, edit: ChunkEdit, user: Any = None) -> Edited:
    """Make the passage say again what it said before. Raises Conflict where it says something else
    by now: then a later change is to be undone first."""
    document = current_document(edit.document_id)

    def wanted(chunks: Sequence[Chunk]) -> tuple[Change, int]:
        change = find_change(joined(chunks), edit.after, edit.before, near=_near(edit, chunks))
        owner = None if change is None else _owner(edit, chunks, change)
        if change is None or owner is None:
            raise Conflict(
                "The passage was changed again since. Undo the later change first, or edit it."
            )
        return change, owner

    def finish(plan: _Plan) -> None:
        held = ChunkEdit.objects.select_for_update().filter(
            pk=edit.pk, state=ChunkEdit.State.APPLIED
        )
        if not held:
            raise Conflict("This change is undone already, or does not apply any more.")
        _settle(held[0], ChunkEdit.State.UNDONE, user)

    return _edit(document, wanted, finish=finish)


def dismiss_edit(*, edit: ChunkEdit, user: Any = None) -> None:
    """Leave a change that does not fit its source any more for good. Raises Conflict for one that
    is no conflict."""
    with transaction.atomic():
        held = ChunkEdit.objects.select_for_update().filter(
            pk=edit.pk, state=ChunkEdit.State.CONFLICT
        )
        if not held:
            raise Conflict("Only a change that could not be kept can be dismissed.")
        _settle(held[0], ChunkEdit.State.CLOSED, user)


def _settle(edit: ChunkEdit, state: str, user: Any) -> None:
    edit.state = state
    edit.settled_at = timezone.now()
    edit.settled_by = _person(user)
    edit.save(update_fields=["state", "settled_at", "settled_by"])


def _person(user: Any) -> Any:
    return user if getattr(user, "is_authenticated", False) else None


def current_document(document_id: int) -> Document:
    """The document; raises NotFound where it is gone, Conflict where it is superseded."""
    document = Document.objects.select_related("collection__space").filter(pk=document_id).first()
    if document is None:
        raise NotFound("The document was deleted meanwhile.")
    if not document.is_current:
        raise Conflict("This is a superseded version. Change the current one.")
    return document


def _checked(chunk: Chunk, text: str) -> str:
    """The new text between the white space that the passage has at its ends."""
    inner = normalise_text(text).strip()
    if not chunk.text.strip():
        raise InvalidInput(
            "This passage has a vector and no text: bring it again with what it should be.",
            field="text",
        )
    if not inner:
        raise InvalidInput("A passage needs a text. Or delete its document.", field="text")
    if len(inner) > MAX_CHARACTERS:
        raise InvalidInput(
            f"A passage may have {MAX_CHARACTERS:,} characters, not {len(inner):,}.", field="text"
        )
    old = chunk.text
    lead = old[: len(old) - len(old.lstrip())]
    return lead + inner + old[len(old.rstrip()) :]


def _near(edit: ChunkEdit, chunks: Sequence[Chunk]) -> int:
    return next((chunk.start for chunk in chunks if chunk.pk == edit.chunk), edit.start)


def _owner(edit: ChunkEdit, chunks: Sequence[Chunk], change: Change) -> int | None:
    """The passage that was changed, if it has all of it still."""
    for place, chunk in enumerate(chunks):
        if chunk.pk == edit.chunk and chunk.start <= change.start and change.end <= chunk.end:
            return place
    return owner_of(chunks, change)


# --- the change itself ---------------------------------------------------------------------------


def _edit(document: Document, wanted: Wanted, *, finish: Callable[[_Plan], Any]) -> Edited:
    """The model is asked outside the transaction: if the document changed meanwhile, once more."""
    for _ in range(TRIES):
        plan = _plan(document, wanted)
        vectors = _embed(plan)
        store = partial(_store, document, plan, vectors, finish)
        if (edited := despite_deadlocks(store)) is not None:
            return edited
        document = current_document(document.pk)
    raise Conflict("Others change the same document again and again. Try again in a moment.")


def _plan(document: Document, wanted: Wanted) -> _Plan:
    chunks = list(Chunk.objects.filter(document=document).only(*_FIELDS).order_by("ordinal"))
    change, owner = wanted(chunks)
    counter = token_counter(document.collection)

    def fits(index: int, text: str) -> bool:
        return can_be_read(chunks[index].context, text, counter, before=chunks[index].text)

    extents = rewritten(chunks, change, owner=owner, fits=fits)
    held = extents[owner]
    assert held is not None
    if not held.text.strip():
        raise InvalidInput("A passage needs a text. Or delete its document.", field="text")
    if not fits(owner, held.text):
        used = counter.count(embedding_text(chunks[owner].context, held.text))
        raise InvalidInput(
            f"With its title and headings the passage would have {used} tokens; the model reads"
            f" {counter.max_tokens} at once, and the rest would not be found. Shorten it.",
            field="text",
        )
    return _Plan(document.collection, chunks, extents, owner, change)


def token_counter(collection: Collection) -> TokenCounter:
    """How the collection's model counts; raises ModelAway."""
    try:
        return embedder_for(collection.space).token_counter()
    except InferenceError as error:
        raise _away(error) from error


def _away(error: InferenceError) -> ModelAway:
    return ModelAway(f"{error} Nothing was changed.")


def _embed(plan: _Plan) -> Vectors:
    texts = {chunk.pk: embedding_text(chunk.context, extent.text) for chunk, extent in plan.touched}
    return embedded(plan.collection, texts)


def embedded(collection: Collection, texts: Mapping[int, str]) -> Vectors:
    """The vectors of texts in the collection's space, by chunk. Raises InvalidInput, ModelAway."""
    if not texts:
        return {}
    space = collection.space
    try:
        array = embedder_for(space).embed_documents(list(texts.values()))
        checked = check_vectors(array, dimensions=space.dimensions)
    except (InvalidVector, EmptyText) as error:
        raise InvalidInput(
            f"The model has no vector for this text: {error}", field="text"
        ) from error
    except InferenceError as error:
        raise _away(error) from error
    return dict(zip(texts, checked, strict=True))


_WRITE = """
    UPDATE documents_chunk
    SET text = %s, token_count = %s, start = %s, "end" = %s, content_sha256 = %s, space_id = %s,
        embedding = %s
    WHERE id = %s
"""


@transaction.atomic
def _store(
    document: Document, plan: _Plan, vectors: Vectors, finish: Callable[[_Plan], Any]
) -> Edited | None:
    """None where the document, or the collection's space, is not what the plan was made for."""
    share_collections([document.collection_id])
    held = Document.objects.select_for_update(no_key=True).filter(pk=document.pk, is_current=True)
    if not held or not _is_as_planned(plan):
        return None
    finish(plan)
    touched = plan.touched
    ids = [chunk.pk for chunk, _ in touched]
    before = Chunk.objects.filter(pk__in=[*ids, *plan.removed])
    lexical_index.forget(before)
    listeners.rewritten(Chunk.objects.filter(pk__in=ids))
    if plan.removed:
        listeners.remove_chunks(Chunk.objects.filter(pk__in=plan.removed))
    _write(plan, vectors)
    _move(plan)
    _count(document, plan)
    listeners.loaded([document.pk])
    chunk = Chunk.objects.defer("embedding", "search_vector").get(pk=plan.chunks[plan.owner].pk)
    note_change(
        action=Action.CHANGED,
        kind=Kind.CHUNK,
        workspace_id=document.workspace_id,
        thing=chunk.pk,
        collection_id=document.collection_id,
        document_id=document.pk,
        fields=["text"],
    )
    edit = ChunkEdit.objects.filter(document=document, chunk=chunk.pk).first()
    return Edited(chunk, embedded=len(ids), removed=len(plan.removed), edit=edit)


def _is_as_planned(plan: _Plan) -> bool:
    collection = plan.collection
    if not Collection.objects.filter(pk=collection.pk, space=collection.space_id).exists():
        return False
    document_id = plan.chunks[0].document_id
    now = Chunk.objects.filter(document=document_id).order_by("ordinal")
    return list(now.values_list("pk", "ordinal", "start", "content_sha256")) == [
        (chunk.pk, chunk.ordinal, chunk.start, chunk.content_sha256) for chunk in plan.chunks
    ]


def _write(plan: _Plan, vectors: Vectors) -> None:
    counter = token_counter(plan.collection)
    rows: list[Any] = [
        (
            extent.text,
            counter.count(extent.text),
            extent.start,
            extent.end,
            chunk_digest(chunk.context, extent.text),
            plan.collection.space_id,
            vectors[chunk.pk],
            chunk.pk,
        )
        for chunk, extent in plan.touched
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE, rows)


def _move(plan: _Plan) -> None:
    """What lies behind the change moves with it, all by one statement."""
    moved = [
        chunk.pk
        for chunk, extent in zip(plan.chunks, plan.extents, strict=True)
        if extent and extent.text == chunk.text and extent.start != chunk.start
    ]
    if moved:
        growth = plan.change.growth
        Chunk.objects.filter(pk__in=moved).update(start=F("start") + growth, end=F("end") + growth)
    for number, ordinal in enumerate(
        chunk.ordinal
        for chunk, extent in zip(plan.chunks, plan.extents, strict=True)
        if extent is None
    ):
        behind = Chunk.objects.filter(
            document=plan.chunks[0].document_id, ordinal__gt=ordinal - number
        )
        behind.update(ordinal=F("ordinal") - 1)


def _count(document: Document, plan: _Plan) -> None:
    chunks = list(Chunk.objects.filter(document=document).only(*_FIELDS).order_by("ordinal"))
    Document.objects.filter(pk=document.pk).update(
        chunk_count=len(chunks),
        token_count=sum(chunk.token_count for chunk in chunks),
        content_sha256=content_sha256(joined(chunks)),
        updated_at=timezone.now(),
    )


def _keep(document: Document, user: Any, plan: _Plan) -> None:
    """The edit's row: the passage before and after."""
    chunk, extent = plan.chunks[plan.owner], plan.extents[plan.owner]
    assert extent is not None
    ChunkEdit.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        chunk=chunk.pk,
        start=chunk.start,
        before=chunk.text,
        after=extent.text,
        user=_person(user),
    )
