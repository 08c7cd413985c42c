"""What is like a passage, or like a document."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.choosing import workspace_of
from common.errors import NotFound
from common.web import page
from documents.models import Chunk, Document
from search.presentation import shown_similar, similar_to
from search.services import scope_for
from search.similar import similar_documents, similar_passages

SHOWN = 10
BESIDE = 6


@require_safe
@page
def similar_page(request: HttpRequest) -> HttpResponse:
    """Passages like `?chunk=ID`, or documents like `?document=ID`."""
    workspace = workspace_of(request)
    scope = scope_for(user=request.user, workspace=workspace)
    chunk = _chunk(request)
    document = chunk.document if chunk else _document(request, request.GET.get("document", ""))
    if chunk:
        found = similar_passages(chunk, scope=scope, k=SHOWN)
    else:
        found = similar_documents(document, scope=scope, k=SHOWN)
    context: dict[str, Any] = {
        "origin": similar_to(document, chunk),
        "unit": "passage" if chunk else "document",
        "found": shown_similar(found),
    }
    return render(request, "search/similar.html", context)


@require_safe
@page
def beside_document(request: HttpRequest, pk: int) -> HttpResponse:
    """The part that a document's page shows beside the text."""
    document = _document(request, str(pk))
    scope = scope_for(user=request.user, workspace=document.workspace)
    found = similar_documents(document, scope=scope, k=BESIDE)
    context = {"document": document, "found": shown_similar(found)}
    return render(request, "search/similar_part.html", context)


def _chunk(request: HttpRequest) -> Chunk | None:
    asked = request.GET.get("chunk", "")
    if not asked:
        return None
    rows = Chunk.objects.visible_to(request.user).filter(workspace=workspace_of(request))
    rows = rows.select_related("document__collection").defer("search_vector")
    chunk = rows.filter(pk=_number(asked)).first()
    if chunk is None:
        raise NotFound(
            "This passage is not there any more: its document was changed or deleted. Search again."
        )
    return chunk


def _document(request: HttpRequest, asked: str) -> Document:
    rows = Document.objects.visible_to(request.user).filter(workspace=workspace_of(request))
    document = rows.select_related("collection", "workspace").filter(pk=_number(asked)).first()
    if document is None:
        raise NotFound("There is no such document. It may have been deleted: search again.")
    return document


def _number(value: str) -> int:
    """What was sent as a number; anything else is one that nothing has."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else -1
