"""Judging hits where they are shown: what was said of them, and saying it."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from accounts.choosing import workspace_of
from accounts.models import Workspace
from accounts.services import require_editor
from common.compiled import rows
from common.errors import NotFound
from common.web import page
from documents.models import Chunk, Document
from search.forms import SearchState
from search.judging import judge, question_key, unjudge
from search.presentation import GRADES, TAKEN_BACK, grade_buttons
from search.results import Hit

#: Together and by hand: put together from querysets, they took longer than the page's hits.
_JUDGED = """
    SELECT NULL, count(DISTINCT (collection_id, question_sha256))
    FROM search_judgement WHERE workspace_id = %s
    UNION ALL
    SELECT document_id, grade FROM search_judgement
    WHERE question_sha256 = %s AND document_id = ANY(%s)
"""


def judged(
    workspace: Workspace, question: str = "", hits: Iterable[Hit] = ()
) -> tuple[int, Mapping[int, int]]:
    """How many questions of the workspace have a judgement, and what was said of the hits'
    documents as answers to this one: id → grade."""
    documents = [hit.document_id for hit in hits]
    grades: dict[Any, int] = dict(rows(_JUDGED, [workspace.pk, question_key(question), documents]))
    return grades.pop(None), grades


@require_POST
@page
def judge_hit(request: HttpRequest) -> HttpResponse:
    """Say of a document that it answers the question well or not, or take that back.

    `hit` is `DOCUMENT.CHUNK.GRADE`. A script gets the buttons anew, a form its page.
    """
    workspace = workspace_of(request)
    require_editor(user=request.user, workspace=workspace)
    state = SearchState.parse(request.POST.get("parameters", ""))
    document, chunk, grade = _pressed(request, workspace)
    if grade is None:
        unjudge(collection=document.collection, question=state.q, document=document)
    else:
        judge(
            collection=document.collection,
            question=state.q,
            document=document,
            grade=grade,
            user=request.user,
            chunk=chunk,
        )
    if request.htmx:  # type: ignore[attr-defined]  # django_htmx's middleware sets it
        context: dict[str, Any] = {
            "grades": grade_buttons(document.pk, chunk.pk if chunk else 0, grade),
            "golden": judged(workspace)[0],
        }
        return render(request, "search/judged.html", context)
    messages.success(request, _said(grade, document))
    return redirect(f"{state.url(page=state.page)}#hit-{chunk.pk if chunk else 0}")


def _pressed(
    request: HttpRequest, workspace: Workspace
) -> tuple[Document, Chunk | None, int | None]:
    document_id, chunk_id, grade = [*request.POST.get("hit", "").split("."), "", "", ""][:3]
    documents = Document.objects.visible_to(request.user).filter(workspace=workspace)
    document = documents.select_related("collection").filter(pk=_number(document_id)).first()
    if document is None:
        raise NotFound("The document is not there any more. Search again.")
    chunk = Chunk.objects.filter(pk=_number(chunk_id), document=document).first()
    return document, chunk, None if grade == TAKEN_BACK else _number(grade)


def _said(grade: int | None, document: Document) -> str:
    if grade is None:
        return f"What was said of “{document}” is taken back."
    return f"“{document}” is judged: {GRADES[grade].lower()}."


def _number(value: str) -> int:
    """What was sent as a number; anything else is one that nothing has."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else -1
