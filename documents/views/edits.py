"""Pages where people edit passages and documents."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from common.errors import NotFound, RagsiteError
from common.web import errors_as_messages, errors_in_form, login_required_page
from documents.diff import diff_texts
from documents.forms import DocumentChangeForm, PassageForm
from documents.models import Chunk, ChunkEdit, Document
from documents.services import (
    UNSET,
    dismiss_edit,
    document_text,
    edit_chunk,
    undo_edit,
    update_document,
)
from documents.views.documents import find_document, find_editable_document

MAX_EDITS = 100


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def passage(request: HttpRequest, slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Edit the text of a passage."""
    document = find_editable_document(request, slug, pk)
    rows = Chunk.objects.filter(document=document.text_id).defer("embedding", "search_vector")
    chunk = rows.filter(pk=chunk_pk).first()
    if chunk is None:
        raise NotFound(
            "This passage is no longer there: the document has changed since. Open the document and"
            " choose another."
        )
    form = PassageForm(
        request.POST or None, initial={"text": chunk.text, "expected": chunk.content_sha256}
    )
    if request.method == "POST" and form.is_valid():
        with errors_in_form(form, "text"):
            edited = edit_chunk(chunk=chunk, user=request.user, **form.cleaned_data)
            messages.success(request, _saved_message(edited.embedded))
            return redirect(_passage_url(document, chunk.pk))
    # Number of aliases of this document, which change with it.
    context = {
        "document": document,
        "collection": document.collection,
        "chunk": chunk,
        "form": form,
        "back_url": _passage_url(document, chunk.pk),
        "sharing": Document.objects.filter(duplicate_of=document.text_id, chunk_count=0).count(),
    }
    status = 400 if form.errors else 200
    return render(request, "documents/passage_edit.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Change the title, metadata and access list of the document."""
    document = find_editable_document(request, slug, pk)
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
@login_required_page
def edits(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Edits of the document's passages, newest first."""
    document = find_document(request, slug, pk)
    rows = ChunkEdit.objects.filter(document=document.text_id).select_related("user", "settled_by")
    chunks = document_text(document).chunks
    context = {
        "document": document,
        "collection": document.collection,
        "edits": [
            {
                "edit": edit,
                "blocks": diff_texts(edit.before, edit.after),
                # The passage with the edit now: by id, else by its text.
                "chunk": next((chunk for chunk in chunks if chunk.pk == edit.chunk), None)
                or next((chunk for chunk in chunks if edit.after in chunk.text), None),
            }
            for edit in rows[:MAX_EDITS]
        ],
    }
    return render(request, "documents/document_edits.html", context)


@require_POST
@login_required_page
def undo(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
    """Restore the passage's text from before the edit."""
    document = find_editable_document(request, slug, pk)
    edit = get_object_or_404(ChunkEdit, pk=edit_pk, document=document.text_id)
    with errors_as_messages(request):
        edited = undo_edit(edit=edit, user=request.user)
        messages.success(request, f"Undone. {_saved_message(edited.embedded)}")
        return redirect(_passage_url(document, edited.chunk.pk))
    return redirect("document_edits", slug=slug, pk=pk)


@require_POST
@login_required_page
def dismiss(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
    """Close an edit that could not be reapplied."""
    document = find_editable_document(request, slug, pk)
    edit = get_object_or_404(ChunkEdit, pk=edit_pk, document=document.text_id)
    with errors_as_messages(request):
        dismiss_edit(edit=edit, user=request.user)
    return redirect("document_edits", slug=slug, pk=pk)


def _passage_url(document: Document, chunk_pk: int) -> str:
    address = reverse("document", args=[document.collection.slug, document.pk])
    return f"{address}?chunk={chunk_pk}#passage"


def _saved_message(embedded: int) -> str:
    if not embedded:
        return "Nothing changed."
    if embedded == 1:
        return "The passage is found by its new words from now on. No other was touched."
    others = embedded - 1
    return (
        f"The passage is found by its new words from now on, with {others}"
        f" neighbour{'s' if others > 1 else ''} that share{'' if others > 1 else 's'} them."
    )
