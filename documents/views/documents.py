"""Pages of one document: read, compare versions, download, delete."""

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods, require_safe

from accounts.current_workspace import request_workspace
from accounts.services import require_editor
from common.errors import NotFound
from common.web import login_required_page
from documents.diff import diff_texts
from documents.document_html import render_document
from documents.models import ChunkEdit, Document
from documents.reader_pages import (
    normalize_levels,
    page_at,
    passages_around,
    sections_of,
    split_pages,
)
from documents.services import (
    delete_document,
    document_text,
    get_collection,
    original_response,
    text_file,
)


def find_document(request: HttpRequest, slug: str, pk: int) -> Document:
    """The document of a URL, if the visitor may see it; raises NotFound."""
    collection = get_collection(workspace=request_workspace(request), slug=slug)
    document = (
        Document.objects.visible_to(request.user)
        .select_related("collection__space", "workspace")
        .filter(collection=collection, pk=pk)
        .first()
    )
    if document is None:
        raise NotFound(
            f"There is no such document in “{collection}”. It may have been deleted:"
            " look for it in the collection, or search again."
        )
    return document


def find_editable_document(request: HttpRequest, slug: str, pk: int) -> Document:
    """The same for visitors who may change it; raises Forbidden for others."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
    return document


@require_safe
@login_required_page
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The text, with the passage `?chunk=ID` marked; `?part=N` of a long one."""
    document = find_document(request, slug, pk)
    whole = document_text(document)
    asked = request.GET.get("chunk", "")
    passage = next((chunk for chunk in whole.chunks if str(chunk.pk) == asked), None)
    parts = split_pages(len(whole.text), [chunk.start for chunk in whole.chunks])
    number = request.GET.get("part", "")
    if passage is not None:
        part = page_at(parts, passage.start)
    else:
        is_number = number.isascii() and number.isdigit() and len(number) < 9
        part = parts[min(max(int(number) if is_number else 1, 1), len(parts)) - 1]
    rendered = render_document(
        document,
        whole.text[part.start : part.end],
        passage=(passage.start - part.start, passage.end - part.start) if passage else None,
    )
    # Query parameters of the search that led here, without the document's own.
    params = request.GET.copy()
    for own in ("chunk", "part", "words"):
        params.pop(own, None)
    search = params.urlencode()
    visible = Document.objects.visible_to(request.user)
    same = visible.filter(collection=document.collection_id, key=document.key)
    versions = [row for row in same.order_by("version") if row.has_text]
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
        "back_url": f"{reverse('search')}?{search}" if request.GET.get("q") else "",
        "query_string": search,
    }
    return render(request, "documents/document.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required_page
def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what will be deleted, which is all versions; delete on POST."""
    document = find_editable_document(request, slug, pk)
    if request.method == "POST":
        delete_document(document=document)
        messages.success(request, f"“{document}” is deleted.")
        return redirect("collection", slug=slug)
    versions = document.versions
    context = {
        "document": document,
        "collection": document.collection,
        "version_count": versions.count(),
        "passage_count": versions.aggregate(number=Sum("chunk_count"))["number"],
    }
    return render(request, "documents/document_delete.html", context)


@require_safe
@login_required_page
def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Differences between this version and `?with=ID`, by default the previous one."""
    document = find_document(request, slug, pk)
    there = [row for row in document.versions if row.has_text]
    older = [row for row in there if row.version < document.version]
    asked = request.GET.get("with", "")
    other = next((row for row in there if str(row.pk) == asked), None)
    if other is None:
        if asked or not older:
            raise NotFound("There is no other version to compare this one with.")
        other = older[0]
    find_document(request, slug, other.pk)  # which may be kept from this visitor
    old, new = sorted((document, other), key=lambda row: row.version)
    before: dict[str, object] = {"title": old.title, **old.metadata}
    after: dict[str, object] = {"title": new.title, **new.metadata}
    context = {
        "document": document,
        "collection": document.collection,
        "old": old,
        "new": new,
        "versions": there,
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
