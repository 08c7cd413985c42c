"""Pages of one document: read, compare versions, download, delete, and edit its passages and
itself."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import NotFound, RagsiteError
from common.text import parse_integer
from common.web import (
    CSP_FILES,
    CSP_HEADER,
    errors_as_messages,
    errors_in_form,
    login_required_page,
)
from documents.document_html import render_document
from documents.forms import DocumentChangeForm, PassageForm
from documents.models import Chunk, ChunkEdit, Document
from documents.page_images import WIDTHS, PageUnavailable, image_response
from documents.page_reader import PageView, page_view
from documents.reader import (
    diff_texts,
    normalize_levels,
    page_at,
    passages_around,
    sections_of,
    split_pages,
)
from documents.services import (
    UNSET,
    delete_document,
    dismiss_edit,
    document_text,
    edit_chunk,
    get_collection,
    original_response,
    text_file,
    undo_edit,
    update_document,
)
from documents.services.changes import (
    Change,
    find_changes,
    in_order,
    other_document,
    places_of,
)
from documents.services.deletion import parts_by_name

#: Files of a mail or archive that its page lists.
LISTED_PARTS = 50


def find_document(request: HttpRequest, slug: str, pk: int) -> Document:
    """The document of a URL, if the visitor may see it; raises NotFound."""
    collection = get_collection(workspace=request_workspace(request), slug=slug)
    document = (
        Document.objects.visible_to(request.user)
        .select_related("collection__space", "workspace", "duplicate_of")
        .filter(collection=collection, pk=pk)
        .first()
    )
    if document is None:
        raise NotFound(
            gettext(
                "There is no such document in “{collection}”. It may have been deleted: look for"
                " it in the collection, or search again."
            ).format(collection=collection)
        )
    return document


def find_editable_document(request: HttpRequest, slug: str, pk: int) -> Document:
    """The same for visitors who may change it; raises Forbidden for others."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    return document


#: In which a browser may ask for a page; the least is a thumbnail's.
PAGE_WIDTHS = WIDTHS[1:]
#: Words that a search found, to be marked.
MAX_WORDS = 20


@require_safe
@login_required_page
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The text, with the passage `?chunk=ID` marked; `?part=N` of a long one. Beside it the real
    page, `?page_number=N`, with the passage or `?quote=START-END` of it marked."""
    document = find_document(request, slug, pk)
    whole = document_text(document)
    asked = request.GET.get("chunk", "")
    passage = next((chunk for chunk in whole.chunks if str(chunk.pk) == asked), None)
    parts = split_pages(len(whole.text), [chunk.start for chunk in whole.chunks])
    number = request.GET.get("part", "")
    quotation = _quotation(request, passage)
    page = page_view(
        document,
        whole.chunks,
        whole.text,
        page_number=parse_integer(request.GET.get("page_number", "")) or None,
        passage=passage,
        quotation=quotation,
        found=frozenset(request.GET.get("words", "").lower().split()[:MAX_WORDS]),
    )
    if passage is not None:
        part = page_at(parts, passage.start)
    elif page is not None and "page_number" in request.GET and not number:
        on_page = (chunk.start for chunk in whole.chunks if (chunk.page or 1) >= page.number)
        part = page_at(parts, next(on_page, 0))
    else:
        part = parts[min(max(parse_integer(number) or 1, 1), len(parts)) - 1]
    rendered = render_document(
        document,
        whole.text[part.start : part.end],
        passage=(passage.start - part.start, passage.end - part.start) if passage else None,
        quotation=(quotation[0] - part.start, quotation[1] - part.start) if quotation else None,
    )
    # Query parameters of the search that led here, without the document's own.
    params = request.GET.copy()
    for own in ("chunk", "part", "words", "page_number", "quote", "view"):
        params.pop(own, None)
    search = params.urlencode()
    turning = request.GET.copy()
    for own in ("page_number", "part", "view"):
        turning.pop(own, None)
    view = request.GET.get("view", "")
    visible = Document.objects.visible_to(request.user)
    same = visible.filter(collection=document.collection_id, key=document.key)
    versions = [row for row in same.order_by("version") if row.has_text]
    # A mail or archive and what was taken out of it lead to each other.
    declared = document.declared
    names = declared.get("parts") or []
    by_state = ChunkEdit.objects.filter(document=document.text_id).order_by().values_list("state")
    edits = dict(by_state.annotate(number=Count("pk")))
    context = {
        "document": document,
        "collection": document.collection,
        "text": rendered.html,
        "outline": normalize_levels(rendered.outline),
        "sections": [] if rendered.outline else sections_of(whole.chunks, part),
        "passages": passages_around(whole.chunks, passage, part),
        "passage_gone": bool(asked) and passage is None,
        "part": part,
        "versions": versions if len(versions) > 1 else [],
        "edits": {**edits, "total": sum(edits.values())},
        # The first document with the same bytes, if the user may see it.
        "original": visible.filter(pk=document.duplicate_of_id).first()
        if document.duplicate_of_id
        else None,
        "container": visible.filter(
            collection=document.collection_id, key=declared["part_of"], is_current=True
        ).first()
        if declared.get("part_of")
        else None,
        "contained": parts_by_name(
            document.collection_id, document.key, names[:LISTED_PARTS], among=visible
        ),
        "unlisted": max(0, len(names) - LISTED_PARTS),
        "back_url": f"{reverse('search')}?{search}" if request.GET.get("q") else "",
        "query_string": search,
        "page": page,
        "page_query": turning.urlencode(),
        "page_fields": [(name, value) for name in turning for value in turning.getlist(name)],
        "image_url": reverse("document_page_image", args=[slug, pk, page.number]) if page else "",
        "marking": passage is not None,
        # What narrow windows show first; wide ones show both.
        "view": view if view in {"page", "text"} else _default_view(page, passage),
        "widths": PAGE_WIDTHS,
    }
    return render(request, "documents/document.html", context)


def _default_view(page: PageView | None, passage: Chunk | None) -> str:
    return "page" if page and not page.problem and (page.marks or not passage) else "text"


def _quotation(request: HttpRequest, passage: Chunk | None) -> tuple[int, int] | None:
    """The offsets of `?quote=START-END`, within the passage."""
    start, _, end = request.GET.get("quote", "").partition("-")
    if not passage or not (start.isascii() and start.isdigit() and end.isascii() and end.isdigit()):
        return None
    quotation = max(int(start[:9]), passage.start), min(int(end[:9]), passage.end)
    return quotation if quotation[0] < quotation[1] else None


@require_safe
@login_required_page
def page_image(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponseBase:
    """Page `number` of the document as an image of about `?width=` pixels."""
    document = find_document(request, slug, pk)
    try:
        return image_response(request, document, number, request.GET.get("width", ""))
    except PageUnavailable:
        answer = render(request, "documents/no_page.svg", content_type="image/svg+xml")
        answer.headers["Cache-Control"] = "private, no-store"
        answer.headers[CSP_HEADER] = CSP_FILES
        return answer


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what will be deleted, which is all versions; delete on POST."""
    document = find_editable_document(request, slug, pk)
    if request.method == "POST":
        delete_document(document=document)
        messages.success(request, gettext("“{document}” is deleted.").format(document=document))
        return redirect("collection", slug=slug)
    versions = document.versions
    context = {
        "document": document,
        "collection": document.collection,
        "version_count": versions.count(),
        "passage_count": versions.aggregate(number=Sum("chunk_count"))["number"],
    }
    return render(request, "documents/document_delete.html", context)


#: Changes listed above the texts.
MAX_CHANGES = 30


def _change_view(
    change: Change, old: Document, new: Document, places: Mapping[int, str]
) -> dict[str, Any]:
    """A change with links to its passages in both versions."""
    sources = []
    for document, side in ((old, change.before), (new, change.after)):
        if side is None or side.chunk is None:
            continue
        path = reverse("document", args=[document.collection.slug, document.pk])
        end = side.start + len(side.text)
        sources.append(
            {
                "document": document,
                "url": f"{path}?chunk={side.chunk.pk}&quote={side.start}-{end}#passage",
                "place": " › ".join(side.chunk.heading_path[-1:]),
                "location": places.get(side.chunk.pk, ""),
            }
        )
    one = change.after or change.before
    return {
        "kind": change.kind,
        "values": change.values,
        "text": one.text if one else "",
        "sources": sources,
    }


@require_safe
@login_required_page
def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What changed between this version and `?with=ID`, another version or another document; by
    default the previous version."""
    document = find_document(request, slug, pk)
    asked = request.GET.get("with", "")
    other_id = parse_integer(asked)
    if asked and other_id is None:
        raise NotFound(gettext("There is no other version to compare this one with."))
    other = other_document(document, other_id, user=request.user)
    find_document(request, other.collection.slug, other.pk)
    there = [row for row in document.versions if row.has_text]
    old, new = in_order(document, other)
    changes = find_changes(old, new)
    shown = changes[:MAX_CHANGES]
    places = places_of(shown)
    before: dict[str, object] = {"title": old.title, **old.metadata}
    after: dict[str, object] = {"title": new.title, **new.metadata}
    context = {
        "document": document,
        "collection": document.collection,
        "old": old,
        "new": new,
        "versions": there,
        "is_version": old.key == new.key and old.collection_id == new.collection_id,
        "changes": [_change_view(change, old, new, places) for change in shown],
        "change_counts": Counter(change.kind for change in changes),
        "unlisted": len(changes) - len(shown),
        "blocks": diff_texts(document_text(old).text, document_text(new).text),
        "fields": [
            (name, before.get(name), after.get(name))
            for name in before | after
            if before.get(name) != after.get(name)
        ],
    }
    return render(request, "documents/document_compare.html", context)


@require_safe
@login_required_page
def download(request: HttpRequest, slug: str, pk: int) -> FileResponse:
    """The uploaded file, byte for byte."""
    return original_response(find_document(request, slug, pk))


@require_safe
@login_required_page
def download_text(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The text as stored, with people's edits."""
    name, text = text_file(find_document(request, slug, pk))
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer.headers["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


MAX_EDITS = 100


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def edit_passage(request: HttpRequest, slug: str, pk: int, chunk_pk: int) -> HttpResponse:
    """Edit the text of a passage."""
    document = find_editable_document(request, slug, pk)
    rows = Chunk.objects.filter(document=document.text_id).defer("embedding", "search_vector")
    chunk = rows.filter(pk=chunk_pk).first()
    if chunk is None:
        raise NotFound(
            gettext(
                "This passage is no longer there: the document has changed since. Open the"
                " document and"
                " choose another."
            )
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
def change_document(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
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
            messages.success(request, gettext("Saved. Searches find it so from now on."))
            return redirect("document", slug=slug, pk=pk)
    context = {"document": document, "collection": document.collection, "form": form}
    status = 400 if form.errors else 200
    return render(request, "documents/document_change.html", context, status=status)


@require_safe
@login_required_page
def edit_list(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
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
def undo_passage_edit(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
    """Restore the passage's text from before the edit."""
    document = find_editable_document(request, slug, pk)
    edit = get_object_or_404(ChunkEdit, pk=edit_pk, document=document.text_id)
    with errors_as_messages(request):
        edited = undo_edit(edit=edit, user=request.user)
        messages.success(
            request, gettext("Undone. {embedded}").format(embedded=_saved_message(edited.embedded))
        )
        return redirect(_passage_url(document, edited.chunk.pk))
    return redirect("document_edits", slug=slug, pk=pk)


@require_POST
@login_required_page
def dismiss_passage_edit(request: HttpRequest, slug: str, pk: int, edit_pk: int) -> HttpResponse:
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
        return gettext("Nothing changed.")
    if embedded == 1:
        return gettext("The passage is found by its new words from now on. No other was touched.")
    others = embedded - 1
    return ngettext(
        "The passage is now found by its new words, with {number} neighbor that shares them.",
        "The passage is now found by its new words, with {number} neighbors that share them.",
        others,
    ).format(number=others)
