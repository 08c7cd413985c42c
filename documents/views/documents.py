"""One document, read or deleted."""

from collections.abc import Sequence

from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from accounts.services import require_editor
from common.web import page
from documents.models import Chunk, ChunkEdit, Document
from documents.navigation import from_level_one, passages_around, sections_of
from documents.parts import Part, cut_parts, part_at
from documents.querysets import DocumentQuerySet
from documents.rendering import render_document
from documents.services import delete_document, document_text
from documents.views.finding import find_document


@require_safe
@page
def detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The text, with the passage `?chunk=ID` marked; `?part=N` of a long one."""
    document = find_document(request, slug, pk)
    whole = document_text(document)
    asked = request.GET.get("chunk", "")
    passage = next((chunk for chunk in whole.chunks if str(chunk.pk) == asked), None)
    parts = cut_parts(len(whole.text), [chunk.start for chunk in whole.chunks])
    part = _part(parts, request.GET.get("part", ""), passage)
    rendered = render_document(
        document,
        whole.text[part.start : part.end],
        passage=(passage.start - part.start, passage.end - part.start) if passage else None,
    )
    search = _search_parameters(request)
    context = {
        "document": document,
        "collection": document.collection,
        "text": rendered.html,
        "outline": from_level_one(rendered.outline),
        "sections": [] if rendered.outline else sections_of(whole.chunks, part),
        "passages": passages_around(whole.chunks, passage, part),
        "passage_gone": bool(asked) and passage is None,
        "part": part,
        "versions": _versions(request, document),
        "edits": _edits(document),
        "original": _original(request, document),
        "back_url": f"{reverse('search')}?{search}" if request.GET.get("q") else "",
        "query_string": search,
    }
    return render(request, "documents/document.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@page
def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Show what goes, which is all versions of it; delete on POST."""
    document = find_document(request, slug, pk)
    require_editor(user=request.user, workspace=document.workspace)
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


def _visible(request: HttpRequest) -> DocumentQuerySet[Document]:
    return Document.objects.visible_to(request.user)


def _original(request: HttpRequest, document: Document) -> Document | None:
    """The first document with the same bytes, if the user may see it."""
    first = document.duplicate_of_id
    return None if first is None else _visible(request).filter(pk=first).first()


def _edits(document: Document) -> dict[str, int]:
    """How many changes of passages there are, by state, and `total`."""
    rows = ChunkEdit.objects.filter(document=document.text_id).order_by().values_list("state")
    counts = dict(rows.annotate(number=Count("pk")))
    return {**counts, "total": sum(counts.values())}


def _versions(request: HttpRequest, document: Document) -> list[Document]:
    """Those of it that were ever loaded, oldest first; none where it has no other."""
    there = _visible(request).filter(collection=document.collection_id, key=document.key)
    rows = [row for row in there.order_by("version") if row.has_text]
    return rows if len(rows) > 1 else []


def _part(parts: Sequence[Part], asked: str, passage: Chunk | None) -> Part:
    if passage is not None:
        return part_at(parts, passage.start)
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 1
    return parts[min(max(number, 1), len(parts)) - 1]


def _search_parameters(request: HttpRequest) -> str:
    """The search that led here: the address's parameters but for the document's own."""
    params = request.GET.copy()
    for own in ("chunk", "part", "words"):
        params.pop(own, None)
    return params.urlencode()
