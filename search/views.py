"""Pages of search: results, start page, facet values, export, judging, saved searches, similar
documents. Begin with `search_page`.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from accounts.current_workspace import may_edit, request_workspace
from accounts.models import User, Workspace
from accounts.services import require_editor
from common.errors import NotFound, RagsiteError
from common.fields import RowCount
from common.sql import CompiledQuery, fetch_prepared
from common.web import errors_as_messages, login_required_page
from documents.models import Chunk, Collection, Document, IngestionRun
from search import presentation
from search.export import download, export_hits
from search.facets import AUTO_FACETS, facet_values
from search.filters import FilterError
from search.forms import SearchState
from search.judgements import judge, question_key, remove_judgement, row_id
from search.log import record_search
from search.models import SavedSearch
from search.presentation import (
    GRADES,
    TAKEN_BACK,
    example_questions,
    grade_buttons,
    passage_url,
    similar_items,
    similar_origin,
)
from search.query_options import scope_for
from search.results import Hit
from search.services import save_search, search, update_saved_search
from search.similar import similar_documents, similar_passages

#: Together and by hand: put together from querysets, they took longer than the page's hits.
_JUDGED = """
    SELECT NULL, count(DISTINCT (collection_id, question_sha256))
    FROM search_judgement WHERE workspace_id = %s
    UNION ALL
    SELECT document_id, grade FROM search_judgement
    WHERE question_sha256 = %s AND document_id = ANY(%s)
"""


def judged_grades(
    workspace: Workspace, question: str = "", hits: Iterable[Hit] = ()
) -> tuple[int, Mapping[int, int]]:
    """Number of judged questions in the workspace, and grades of the hits' documents
    for this one: id → grade.
    """
    documents = [hit.document_id for hit in hits]
    grades: dict[Any, int] = dict(
        fetch_prepared(_JUDGED, [workspace.pk, question_key(question), documents])
    )
    return grades.pop(None), grades


@require_POST
@login_required_page
def judge_hit(request: HttpRequest) -> HttpResponse:
    """Stores or removes a document's grade for a question.

    `hit` is `DOCUMENT.CHUNK.GRADE`. htmx gets the new buttons, a form its page.
    """
    workspace = request_workspace(request)
    require_editor(user=request.user, workspace=workspace)
    state = SearchState.parse(request.POST.get("parameters", ""))
    document_id, chunk_id, pressed = [*request.POST.get("hit", "").split("."), "", "", ""][:3]
    documents = Document.objects.visible_to(request.user).filter(workspace=workspace)
    document = documents.select_related("collection").filter(pk=row_id(document_id)).first()
    if document is None:
        raise NotFound(gettext("The document is not there any more. Search again."))
    chunk = Chunk.objects.filter(pk=row_id(chunk_id), document=document).first()
    grade = None if pressed == TAKEN_BACK else row_id(pressed)
    if grade is None:
        remove_judgement(collection=document.collection, question=state.q, document=document)
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
            "golden": judged_grades(workspace)[0],
        }
        return render(request, "search/judged.html", context)
    if grade is None:
        said = gettext("What was said of “{document}” is taken back.").format(document=document)
    else:
        said = gettext("“{document}” is judged: {grade}.").format(
            document=document, grade=gettext(GRADES[grade]).lower()
        )
    messages.success(request, said)
    return redirect(f"{state.url(page=state.page)}#hit-{chunk.pk if chunk else 0}")


RECENT_DOCUMENTS = 5
SHOWN_RUNS = 3


def start_context(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    """Template context of the start page: collections, newest documents, example questions, and
    what is being read."""
    documents = (
        Document.objects.visible_to(request.user)
        .filter(workspace=workspace, status=Document.Status.READY)
        .current()
        .select_related("collection")
        .defer("metadata", "declared")
    )
    current = Document.objects.current().filter(collection=OuterRef("pk"))
    recent = list(documents.order_by("-id")[:RECENT_DOCUMENTS])
    return {
        "collections": Collection.objects.visible_to(request.user)
        .filter(workspace=workspace)
        .annotate(document_count=RowCount(current)),
        "recent": recent,
        "examples": example_questions(documents),
        "reading": list(
            IngestionRun.objects.visible_to(request.user)
            .filter(workspace=workspace, finished_at=None)
            .order_by("pk")[:SHOWN_RUNS]
        ),
    }


PAGE_SIZE = 10
_SAVED_QUERY = CompiledQuery(lambda: SavedSearch.objects.visible_to(User(pk=0)).filter(workspace=0))


@require_safe
@login_required_page
def search_page(request: HttpRequest) -> HttpResponse:
    """Results of `?q=`; without a question, the start page, or to htmx its changing part."""
    workspace = request_workspace(request)
    state = SearchState.read(request.GET)
    names: dict[str, str] = {}
    if state.collections:
        rows = Collection.objects.visible_to(request.user).filter(workspace=workspace)
        names = dict(rows.filter(slug__in=state.collections).values_list("slug", "name"))
    saved = _SAVED_QUERY.read(request.user.pk, request.user.pk, workspace.pk)
    this = next((row for row in saved if row.parameters == state.saved_parameters), None)
    context: dict[str, Any] = {
        "state": state,
        "parameters": state.saved_parameters,
        "modes": presentation.choices(state, "mode"),
        "sorts": presentation.choices(state, "sort"),
        "chips": presentation.filter_chips(state, names),
        "loosened_url": state.url(collections=(), types=(), filter=""),
        "kept": {"rows": saved, "this": this},
    }
    if not state.q:
        # While documents are being read, htmx asks for the part that they change.
        part = "#present" if request.htmx else ""  # type: ignore[attr-defined]
        context |= start_context(request, workspace)
        return render(request, f"search/start.html{part}", context)
    status = 200
    try:
        context |= _results(request, workspace, state)
    except FilterError as error:
        status, context["filter_error"] = error.status, str(error)
    except RagsiteError as error:
        status, context["error"] = error.status, str(error)
        context["is_away"] = error.status >= 500
    return render(request, "search/results.html", context, status=status)


def _results(request: HttpRequest, workspace: Workspace, state: SearchState) -> dict[str, Any]:
    scope = state.scope(user=request.user, workspace=workspace)
    result = search(
        state,
        scope=scope,
        k=PAGE_SIZE,
        offset=(state.page - 1) * PAGE_SIZE,
        facets=[AUTO_FACETS],
    )
    # The further passages of a hit, fetched into its place, are no other question.
    if not request.htmx:  # type: ignore[attr-defined]  # django_htmx's middleware sets it
        record_search(result=result, scope=scope, user=request.user, source="web")
    may_judge = may_edit(request, workspace)
    golden, grades = judged_grades(workspace, state.q, result.hits) if may_judge else (0, {})
    return {
        "result": result,
        "hits": presentation.hit_views(state, result, grades=grades),
        "may_judge": may_judge,
        "golden": golden,
        "facets": presentation.facet_groups(state, result.facets),
        "pages": presentation.page_links(state, result),
        "how": presentation.explain_search(result) if state.explain else [],
        "accuracy": presentation.accuracy(result.arms),
        "unit": "document" if state.group else "passage",
        "explain_url": state.url(explain=not state.explain, page=state.page),
        "fusions": presentation.fusion_choices(state, result),
        "is_reranked": state.rerank is not False,
        "rerank_url": state.url(rerank=False if state.rerank is not False else None),
        "group_url": state.url(group=not state.group),
        "first_page_url": state.url(),
        "again_url": state.url(page=state.page),
        "suggestion_url": state.url(q=result.suggestion) if result.suggestion else "",
        "other_modes": [each for each in presentation.choices(state, "mode") if not each.selected],
    }


MAX_PREFIX_CHARACTERS = 100


@require_safe
@login_required_page
def facet_choices(request: HttpRequest) -> HttpResponse:
    """Values of `?facet=` that begin with `?prefix=`, as links, for the search of the
    other parameters.
    """
    workspace = request_workspace(request)
    state = SearchState.read(request.GET)
    name = request.GET.get("facet", "")
    values = facet_values(
        state.q,
        scope=state.scope(user=request.user, workspace=workspace),
        facet=name,
        prefix=request.GET.get("prefix", "").replace("\0", "")[:MAX_PREFIX_CHARACTERS],
        mode=state.mode,
        group=state.group,
    )
    return render(
        request, "search/values.html", {"facet": presentation.facet_group(state, name, values)}
    )


@require_safe
@login_required_page
def export_page(request: HttpRequest) -> HttpResponseBase:
    """Hits of the page's search as a file: `?as=csv` or `json`."""
    workspace = request_workspace(request)
    state = SearchState.read(request.GET)

    def link(hit: Hit) -> str:
        return request.build_absolute_uri(passage_url(hit))

    kind = request.GET.get("as", "csv")
    scope = state.scope(user=request.user, workspace=workspace)
    return download(export_hits(state, scope=scope, kind=kind, link=link), kind=kind)


@require_safe
@login_required_page
def saved_searches(request: HttpRequest) -> HttpResponse:
    """All saved searches of the user; one just deleted is in the query string and can
    be restored.
    """
    rows = [presentation.saved_search_row(row) for row in _own_searches(request)]
    gone = {name: request.GET.get(name, "") for name in ("name", "parameters")}
    return render(
        request, "search/saved.html", {"rows": rows, "gone": gone if gone["name"] else None}
    )


@require_POST
@login_required_page
def create_saved_search(request: HttpRequest) -> HttpResponse:
    """Saves the search that the form comes from, and shows it again."""
    state = SearchState.parse(request.POST.get("parameters", ""))
    with errors_as_messages(request):
        row = save_search(
            user=request.user,
            workspace=request_workspace(request),
            name=request.POST.get("name", ""),
            parameters=state.saved_parameters,
        )
        messages.success(
            request,
            gettext("“{row_name}” is saved. It is in the menu “Saved”.").format(row_name=row.name),
        )
    return redirect(state.url())


@require_POST
@login_required_page
def rename_saved_search(request: HttpRequest, pk: int) -> HttpResponse:
    """Renames a saved search of the user."""
    row = _own_search(request, pk)
    with errors_as_messages(request):
        update_saved_search(saved=row, name=request.POST.get("name", ""))
        messages.success(
            request, gettext("It is called “{row_name}” now.").format(row_name=row.name)
        )
    return redirect("saved_searches")


@require_POST
@login_required_page
def delete_saved_search(request: HttpRequest, pk: int) -> HttpResponse:
    """Deletes a saved search; the next page can restore it."""
    row = _own_search(request, pk)
    row.delete()
    gone = urlencode({"name": row.name, "parameters": row.parameters})
    return redirect(f"{reverse('saved_searches')}?{gone}")


def _own_searches(request: HttpRequest) -> QuerySet[SavedSearch]:
    rows = SavedSearch.objects.visible_to(request.user)
    return rows.filter(workspace=request_workspace(request))


def _own_search(request: HttpRequest, pk: int) -> SavedSearch:
    row = _own_searches(request).filter(pk=pk).first()
    if row is None:
        raise NotFound(gettext("There is no such saved search, or it is not yours."))
    return row


SIMILAR_COUNT = 10
PANEL_COUNT = 6


@require_safe
@login_required_page
def similar_page(request: HttpRequest) -> HttpResponse:
    """Passages similar to `?chunk=ID`, or documents similar to `?document=ID`."""
    workspace = request_workspace(request)
    scope = scope_for(user=request.user, workspace=workspace)
    chunk = None
    if asked := request.GET.get("chunk", ""):
        rows = Chunk.objects.visible_to(request.user).filter(workspace=workspace)
        rows = rows.select_related("document__collection").defer("search_vector")
        chunk = rows.filter(pk=row_id(asked)).first()
        if chunk is None:
            raise NotFound(
                gettext(
                    "This passage is not there any more: its document was changed or deleted."
                    " Search again."
                )
            )
        document = chunk.document
        found = similar_passages(chunk, scope=scope, k=SIMILAR_COUNT)
    else:
        document = _requested_document(request, request.GET.get("document", ""))
        found = similar_documents(document, scope=scope, k=SIMILAR_COUNT)
    context: dict[str, Any] = {
        "origin": similar_origin(document, chunk),
        "unit": "passage" if chunk else "document",
        "found": similar_items(found),
    }
    return render(request, "search/similar.html", context)


@require_safe
@login_required_page
def similar_documents_panel(request: HttpRequest, pk: int) -> HttpResponse:
    """Similar documents for the side panel of a document page."""
    document = _requested_document(request, str(pk))
    scope = scope_for(user=request.user, workspace=document.workspace)
    found = similar_documents(document, scope=scope, k=PANEL_COUNT)
    context = {"document": document, "found": similar_items(found)}
    return render(request, "search/similar_part.html", context)


def _requested_document(request: HttpRequest, pk_text: str) -> Document:
    rows = Document.objects.visible_to(request.user).filter(workspace=request_workspace(request))
    document = rows.select_related("collection", "workspace").filter(pk=row_id(pk_text)).first()
    if document is None:
        raise NotFound(
            gettext("There is no such document. It may have been deleted: search again.")
        )
    return document
