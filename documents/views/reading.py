"""What belongs to the page of a document: versions compared, and files to take away."""

from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from common.errors import NotFound
from common.web import page
from documents.differences import differences
from documents.models import Document
from documents.services import document_text, open_original, text_file
from documents.services.originals import sent
from documents.views.finding import find_document


@require_safe
@page
def compare(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What this version says otherwise than `?with=ID`, by default the one before it."""
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
    context = {
        "document": document,
        "collection": document.collection,
        "old": old,
        "new": new,
        "versions": there,
        "blocks": differences(document_text(old).text, document_text(new).text),
        "fields": _fields(old, new),
    }
    return render(request, "documents/document_compare.html", context)


def _fields(old: Document, new: Document) -> list[tuple[str, object, object]]:
    """Title and metadata that are not the same: name, before, after; None where there is none."""
    before = {"title": old.title, **old.metadata}
    after = {"title": new.title, **new.metadata}
    return [
        (name, before.get(name), after.get(name))
        for name in [*before, *(name for name in after if name not in before)]
        if before.get(name) != after.get(name)
    ]


@require_safe
@page
def download(request: HttpRequest, slug: str, pk: int) -> FileResponse:
    """The original file, as it was brought."""
    return sent(open_original(find_document(request, slug, pk)))


@require_safe
@page
def download_text(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The text as it is here, with what people changed in it."""
    name, text = text_file(find_document(request, slug, pk))
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer.headers["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer
