"""Passages and documents changed by people, in pages."""

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.services import require_editor
from common.errors import NotFound, RagsiteError
from common.web import page
from documents.differences import Block, differences
from documents.forms_editing import DocumentChangeForm, PassageForm
from documents.models import Chunk, ChunkEdit, Document
from documents.services import (
    UNSET,
    dismiss_edit,
    document_text,
    edit_chunk,
    undo_edit,
    update_document,
)
from documents.views.finding import find_document

EDITS = 100


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """An edit with what it changed, and the passage that has them now, if one does."""

    edit: ChunkEdit
    blocks: list[Block]
    chunk: Chunk | None


@require_http_methods(["GET", "HEAD", "POST"])
@page
def passage(request: HttpRequest, slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Change what a passage says."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    chunk = _chunk(document, chunk_pk)
    form = PassageForm(
        request.POST or None, initial={"text": chunk.text, "expected": chunk.content_sha256}
    )
    if request.method == "POST" and form.is_valid():
        try:
            edited = edit_chunk(chunk=chunk, user=request.user, **form.cleaned_data)
        except RagsiteError as error:
            form.add_error("text", str(error))
        else:
            messages.success(request, _said(edited.embedded))
            return redirect(_passage_url(document, chunk.pk))
    context = {
        "document": document,
        "collection": document.collection,
        "chunk": chunk,
        "form": form,
        "back_url": _passage_url(document, chunk.pk),
        "sharing": _sharing(document),
    }
    status = 400 if form.errors else 200
    return render(request, "documents/passage_edit.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def describe(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change title, metadata and who may see the document."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    form = DocumentChangeForm(request.POST or None, document=document)
    if request.method == "POST" and form.is_valid():
        try:
            update_document(
                document=document,
                title=form.cleaned_data["title"],
                metadata=form.cleaned_data["metadata"],
                access=form.cleaned_data["access"] if form.has_access else UNSET,
                user=request.user,
            )
        except RagsiteError as error:
            form.add_error(form.field_of(error), str(error))
        else:
            messages.success(request, "Saved. Searches find it so from now on.")
            return redirect("document", slug=slug, pk=pk)
    context = {"document": document, "collection": document.collection, "form": form}
    status = 400 if form.errors else 200
    return render(request, "documents/document_change.html", context, status=status)


@require_safe
@page
def edits(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What people changed in the document, newest first."""
    document = find_document(request, slug, pk)
    rows = ChunkEdit.objects.filter(document=document.text_id).select_related("user", "settled_by")
    whole = document_text(document)
    context = {
        "document": document,
        "collection": document.collection,
        "edits": [
            ShownEdit(edit, differences(edit.before, edit.after), _place(edit, whole.chunks))
            for edit in rows[:EDITS]
        ],
    }
    return render(request, "documents/document_edits.html", context)


@require_POST
@page
def undo(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
    """Make the passage say what it said before."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    edit = get_object_or_404(ChunkEdit, pk=edit_pk, document=document.text_id)
    try:
        edited = undo_edit(edit=edit, user=request.user)
    except RagsiteError as error:
        messages.error(request, str(error))
        return redirect("document_edits", slug=slug, pk=pk)
    messages.success(request, f"Undone. {_said(edited.embedded)}")
    return redirect(_passage_url(document, edited.chunk.pk))


@require_POST
@page
def dismiss(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
    """Leave a change that could not be kept."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    edit = get_object_or_404(ChunkEdit, pk=edit_pk, document=document.text_id)
    try:
        dismiss_edit(edit=edit, user=request.user)
    except RagsiteError as error:
        messages.error(request, str(error))
    return redirect("document_edits", slug=slug, pk=pk)


def _chunk(document: Document, pk: int) -> Chunk:
    rows = Chunk.objects.filter(document=document.text_id).defer("embedding", "search_vector")
    chunk = rows.filter(pk=pk).first()
    if chunk is None:
        raise NotFound(
            "This passage is no longer there: the document has changed since. Open the document and"
            " choose another."
        )
    return chunk


def _sharing(document: Document) -> int:
    """Documents that are stored once with this one, and change with it."""
    return Document.objects.filter(duplicate_of=document.text_id, chunk_count=0).count()


def _passage_url(document: Document, chunk_pk: int) -> str:
    address = reverse("document", args=[document.collection.slug, document.pk])
    return f"{address}?chunk={chunk_pk}#passage"


def _said(embedded: int) -> str:
    if not embedded:
        return "Nothing changed."
    if embedded == 1:
        return "The passage is found by its new words from now on. No other was touched."
    others = embedded - 1
    return (
        f"The passage is found by its new words from now on, with {others}"
        f" neighbour{'s' if others > 1 else ''} that share{'' if others > 1 else 's'} them."
    )


def _place(edit: ChunkEdit, chunks: list[Chunk]) -> Chunk | None:
    """The passage that an edit is in now: by its number, else by its words."""
    known = next((chunk for chunk in chunks if chunk.pk == edit.chunk), None)
    return known or next((chunk for chunk in chunks if edit.after in chunk.text), None)
