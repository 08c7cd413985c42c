"""Edits of passages by people: only passages that change are embedded anew, and an edit can be
undone. Begin with `edit_chunk`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from numpy.typing import NDArray

from accounts.audit import Action
from common.errors import Conflict, EmbedderUnavailable, InvalidInput, NotFound
from common.leases import retry_on_deadlock
from common.stored_messages import translated_message
from documents import lexical_index
from documents.embedders import embedder_for
from documents.ingestion import listeners
from documents.ingestion.concurrency import share_collection_locks
from documents.ingestion.edits import fits_model
from documents.ingestion.preparation import chunk_digest
from documents.ingestion.text_changes import (
    PassageExtent,
    TextChange,
    apply_change,
    change_between,
    find_change,
    join_passages,
    owner_index,
)
from documents.models import Chunk, ChunkEdit, Collection, Document
from documents.models.chunk import embedding_text
from documents.services.audit import record
from inference.interfaces import EmptyText, InferenceError, InvalidVector
from inference.vectors import check_vectors
from reading.chunkers.base import TokenCounter
from reading.parsers import content_sha256, normalise_text

#: Attempts when others change the same document concurrently.
TRIES = 5
MAX_PASSAGE_CHARACTERS = 100_000
#: Fields of every passage that planning a change needs.
_PLANNED_FIELDS = (
    "id",
    "ordinal",
    "start",
    "end",
    "text",
    "context",
    "token_count",
    "content_sha256",
)

Vectors = Mapping[int, NDArray[np.float32]]


class StaleText(Conflict):
    """The passage has changed since the caller read it."""

    code = "stale"


@dataclass(frozen=True, slots=True)
class EditResult:
    """The result of an edit: the passage as it is now, how many passages were embedded again
    because they overlap the change, and how many were removed because nothing of their own was
    left."""

    chunk: Chunk
    embedded: int
    removed: int
    edit: ChunkEdit | None = None


@dataclass(frozen=True, slots=True)
class _EditPlan:
    """A change of a document, computed on its passages as they were read."""

    chunks: Sequence[Chunk]
    extents: Sequence[PassageExtent | None]
    owner: int
    change: TextChange

    @property
    def changed_passages(self) -> list[tuple[Chunk, PassageExtent]]:
        """Passages with a new text, in their order."""
        pairs = zip(self.chunks, self.extents, strict=True)
        return [(chunk, extent) for chunk, extent in pairs if extent and extent.text != chunk.text]

    @property
    def removed(self) -> list[int]:
        pairs = zip(self.chunks, self.extents, strict=True)
        return [chunk.pk for chunk, extent in pairs if extent is None]


#: From the current passages the change, and the index of the passage that will contain it.
ChangeRequest = Callable[[Sequence[Chunk]], tuple[TextChange, int]]


def edit_chunk(*, chunk: Chunk, text: str, user: Any = None, expected: str = "") -> EditResult:
    """Replace a passage's text, and the changed part in passages that overlap it.

    `expected` is the `content_sha256` that the caller has read; by default that of `chunk`. White
    space at the ends stays. Raises InvalidInput, StaleText if the passage has changed meanwhile,
    Conflict for a version that is not current, and EmbedderUnavailable.
    """
    seen = expected or chunk.content_sha256
    # The new text between the white space at the passage's ends.
    inner = normalise_text(text).strip()
    if not chunk.text.strip():
        raise InvalidInput(
            gettext(
                "This passage has a vector and no text: bring it again with what it should be."
            ),
            field="text",
        )
    if not inner:
        raise InvalidInput(gettext("A passage needs a text. Or delete its document."), field="text")
    if len(inner) > MAX_PASSAGE_CHARACTERS:
        raise InvalidInput(
            gettext("A passage may have {limit} characters, not {length}.").format(
                limit=number_format(MAX_PASSAGE_CHARACTERS, force_grouping=True),
                length=number_format(len(inner), force_grouping=True),
            ),
            field="text",
        )
    old = chunk.text
    lead = old[: len(old) - len(old.lstrip())]
    wanted_text = lead + inner + old[len(old.rstrip()) :]
    document = current_document(chunk.document_id)

    def make_change(chunks: Sequence[Chunk]) -> tuple[TextChange, int]:
        place = next((at for at, each in enumerate(chunks) if each.pk == chunk.pk), None)
        if place is None:
            raise NotFound(
                gettext("The passage is gone: its document was ingested again. Reload it.")
            )
        there = chunks[place]
        if there.content_sha256 != seen:
            raise StaleText(
                gettext(
                    "Somebody changed this passage meanwhile. Reload it, and change what it"
                    " says now."
                )
            )
        return change_between(there.text, wanted_text, start=there.start), place

    if wanted_text == chunk.text and seen == chunk.content_sha256:
        return EditResult(chunk, 0, 0)
    return _apply_edit(document, make_change, finish=partial(_save_edit, document, user))


def undo_edit(*, edit: ChunkEdit, user: Any = None) -> EditResult:
    """Restore the passage's text from before the edit. Raises Conflict if it was changed again: the
    later edit must be undone first."""
    document = current_document(edit.document_id)

    def make_change(chunks: Sequence[Chunk]) -> tuple[TextChange, int]:
        own = next((at for at, chunk in enumerate(chunks) if chunk.pk == edit.chunk), None)
        near = edit.start if own is None else chunks[own].start
        change = find_change(join_passages(chunks), edit.after, edit.before, near=near)
        owner = None
        if change is not None:
            owner = owner_index(chunks, change)
            # The edited passage, if it still contains the whole change.
            if own is not None and near <= change.start and change.end <= chunks[own].end:
                owner = own
        if change is None or owner is None:
            raise Conflict(
                gettext(
                    "The passage was changed again since. Undo the later change first, or edit it."
                )
            )
        return change, owner

    def finish(plan: _EditPlan) -> None:
        held = ChunkEdit.objects.select_for_update().filter(
            pk=edit.pk, state=ChunkEdit.State.APPLIED
        )
        if not held:
            raise Conflict(gettext("This change is undone already, or does not apply any more."))
        _settle_edit(held[0], ChunkEdit.State.UNDONE, user)

    return _apply_edit(document, make_change, finish=finish)


def dismiss_edit(*, edit: ChunkEdit, user: Any = None) -> None:
    """Close an edit that no longer applies to its source. Raises Conflict if it is not in
    conflict."""
    with transaction.atomic():
        held = ChunkEdit.objects.select_for_update().filter(
            pk=edit.pk, state=ChunkEdit.State.CONFLICT
        )
        if not held:
            raise Conflict(gettext("Only a change that could not be kept can be dismissed."))
        _settle_edit(held[0], ChunkEdit.State.CLOSED, user)


def _settle_edit(edit: ChunkEdit, state: str, user: Any) -> None:
    edit.state = state
    edit.settled_at = timezone.now()
    edit.settled_by = _saved_user(user)
    edit.save(update_fields=["state", "settled_at", "settled_by"])


def _saved_user(user: Any) -> Any:
    return user if getattr(user, "is_authenticated", False) else None


def current_document(document_id: int) -> Document:
    """The document; raises NotFound if it was deleted, Conflict if it is superseded."""
    document = Document.objects.select_related("collection__space").filter(pk=document_id).first()
    if document is None:
        raise NotFound(gettext("The document was deleted meanwhile."))
    if not document.is_current:
        raise Conflict(gettext("This is a superseded version. Change the current one."))
    return document


# --- the change itself ---------------------------------------------------------------------------


def _apply_edit(
    document: Document, make_change: ChangeRequest, *, finish: Callable[[_EditPlan], Any]
) -> EditResult:
    """The model is called outside the transaction: if the document changed meanwhile, it is tried
    again."""
    for _ in range(TRIES):
        plan = _plan_edit(document, make_change)
        texts = {
            chunk.pk: embedding_text(chunk.context, extent.text)
            for chunk, extent in plan.changed_passages
        }
        vectors = embed_chunk_texts(document.collection, texts)
        store = partial(_store_edit, document, plan, vectors, finish)
        if (edited := retry_on_deadlock(store)) is not None:
            return edited
        document = current_document(document.pk)
    raise Conflict(
        gettext("Others change the same document again and again. Try again in a moment.")
    )


def _plan_edit(document: Document, make_change: ChangeRequest) -> _EditPlan:
    chunks = list(
        Chunk.objects.filter(document=document).only(*_PLANNED_FIELDS).order_by("ordinal")
    )
    change, owner = make_change(chunks)
    counter = collection_token_counter(document.collection)

    def fits(index: int, text: str) -> bool:
        return fits_model(chunks[index].context, text, counter, before=chunks[index].text)

    extents = apply_change(chunks, change, owner=owner, fits=fits)
    held = extents[owner]
    assert held is not None
    if not held.text.strip():
        raise InvalidInput(gettext("A passage needs a text. Or delete its document."), field="text")
    if not fits(owner, held.text):
        used = counter.count(embedding_text(chunks[owner].context, held.text))
        raise InvalidInput(
            gettext(
                "With its title and headings the passage would have {used} tokens; the"
                " model reads {limit} at once, and the rest would not be found. Shorten"
                " it."
            ).format(used=used, limit=counter.max_tokens),
            field="text",
        )
    return _EditPlan(chunks, extents, owner, change)


def collection_token_counter(collection: Collection) -> TokenCounter:
    """The token counter of the collection's model; raises EmbedderUnavailable."""
    try:
        return embedder_for(collection.space).token_counter()
    except InferenceError as error:
        raise _unavailable(error) from error


def _unavailable(error: InferenceError) -> EmbedderUnavailable:
    outcome = gettext("Nothing was changed.")
    return EmbedderUnavailable(f"{translated_message(str(error))} {outcome}")


def embed_chunk_texts(collection: Collection, texts: Mapping[int, str]) -> Vectors:
    """Vectors of texts in the collection's space, by chunk id; none where it has no vectors. Raises
    InvalidInput, EmbedderUnavailable."""
    if not texts or not collection.has_vectors:
        return {}
    space = collection.space
    try:
        array = embedder_for(space).embed_documents(list(texts.values()))
        checked = check_vectors(array, dimensions=space.dimensions)
    except (InvalidVector, EmptyText) as error:
        raise InvalidInput(
            gettext("The model has no vector for this text: {error}").format(
                error=translated_message(str(error))
            ),
            field="text",
        ) from error
    except InferenceError as error:
        raise _unavailable(error) from error
    return dict(zip(texts, checked, strict=True))


_WRITE_CHUNK = """
    UPDATE documents_chunk
    SET text = %s, token_count = %s, start = %s, "end" = %s, content_sha256 = %s, space_id = %s,
        embedding = %s
    WHERE id = %s
"""


@transaction.atomic
def _store_edit(
    document: Document, plan: _EditPlan, vectors: Vectors, finish: Callable[[_EditPlan], Any]
) -> EditResult | None:
    """None if the document, or where its vectors belong, has changed since the plan was made."""
    share_collection_locks([document.collection_id])
    held = Document.objects.select_for_update(no_key=True).filter(pk=document.pk, is_current=True)
    collection = document.collection
    spaces = Collection.objects.filter(
        pk=collection.pk, space=collection.space_id, vectors=collection.vectors
    )
    names = ("pk", "ordinal", "start", "content_sha256")
    now = Chunk.objects.filter(document=document).order_by("ordinal").values_list(*names)
    planned = [tuple(getattr(chunk, name) for name in names) for chunk in plan.chunks]
    if not held or not spaces.exists() or list(now) != planned:
        return None
    finish(plan)
    touched = plan.changed_passages
    ids = [chunk.pk for chunk, _ in touched]
    before = Chunk.objects.filter(pk__in=[*ids, *plan.removed])
    lexical_index.forget_words(before)
    listeners.rewritten(Chunk.objects.filter(pk__in=ids))
    if plan.removed:
        listeners.remove_chunks(Chunk.objects.filter(pk__in=plan.removed))
    counter = collection_token_counter(document.collection)
    rows: list[Any] = [
        (
            extent.text,
            counter.count(extent.text),
            extent.start,
            extent.end,
            chunk_digest(chunk.context, extent.text),
            document.collection.space_id,
            vectors.get(chunk.pk),
            chunk.pk,
        )
        for chunk, extent in touched
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE_CHUNK, rows)
    _shift_following(plan)
    chunks = list(
        Chunk.objects.filter(document=document).only(*_PLANNED_FIELDS).order_by("ordinal")
    )
    Document.objects.filter(pk=document.pk).update(
        chunk_count=len(chunks),
        token_count=sum(chunk.token_count for chunk in chunks),
        content_sha256=content_sha256(join_passages(chunks)),
        updated_at=timezone.now(),
    )
    listeners.loaded([document.pk])
    chunk = Chunk.objects.defer("embedding", "search_vector").get(pk=plan.chunks[plan.owner].pk)
    record(Action.CHANGED, chunk, fields=["text"])
    edit = ChunkEdit.objects.filter(document=document, chunk=chunk.pk).first()
    return EditResult(chunk, embedded=len(ids), removed=len(plan.removed), edit=edit)


def _shift_following(plan: _EditPlan) -> None:
    """Shift the offsets of passages after the change, by one statement."""
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


def _save_edit(document: Document, user: Any, plan: _EditPlan) -> None:
    """Save the edit: the passage's text before and after."""
    chunk, extent = plan.chunks[plan.owner], plan.extents[plan.owner]
    assert extent is not None
    ChunkEdit.objects.create(
        workspace_id=document.workspace_id,
        document=document,
        chunk=chunk.pk,
        start=chunk.start,
        before=chunk.text,
        after=extent.text,
        user=_saved_user(user),
    )
