"""The search page."""

from typing import Any

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import Workspace
from accounts.services import current_workspace
from common.errors import RagsiteError
from common.web import page
from documents.models import Collection, Document
from search import presentation
from search.facets import TELLING
from search.filters import FilterError
from search.forms import SearchState
from search.log import record_search
from search.services import scope_for, search

PAGE_SIZE = 10
RECENT = 6


@require_safe
@page
def search_page(request: HttpRequest) -> HttpResponse:
    """Results of `?q=`; without a question, where one could look."""
    workspace = current_workspace(user=request.user)
    state = SearchState.read(request.GET)
    collections = Collection.objects.visible_to(request.user).filter(workspace=workspace)
    names = dict(collections.values_list("slug", "name"))
    context: dict[str, Any] = {
        "state": state,
        "modes": presentation.modes(state),
        "chips": presentation.chips(state, names),
        "loosened_url": state.url(collections=(), types=(), filter=""),
    }
    if not state.q:
        return render(request, "search/start.html", context | _start(request, workspace))
    try:
        context |= _results(request, workspace, state)
    except FilterError as error:
        context["filter_error"] = str(error)
        return render(request, "search/results.html", context, status=error.status)
    except RagsiteError as error:
        context["error"] = str(error)
        return render(request, "search/results.html", context, status=error.status)
    return render(request, "search/results.html", context)


def _results(request: HttpRequest, workspace: Workspace, state: SearchState) -> dict[str, Any]:
    scope = scope_for(
        user=request.user,
        workspace=workspace,
        collections=state.collections,
        filter=state.filter,
        media_types=state.types,
    )
    result = search(
        state.q,
        scope=scope,
        mode=state.mode,
        k=PAGE_SIZE,
        offset=(state.page - 1) * PAGE_SIZE,
        group=state.group,
        facets=[TELLING],
    )
    record_search(result=result, scope=scope, user=request.user, source="web")
    return {
        "result": result,
        "hits": presentation.shown_hits(state, result),
        "facets": presentation.facet_groups(state, result.facets),
        "pages": presentation.page_links(state, result),
        "how": presentation.how_it_worked(result) if state.explain else [],
        "accuracy": presentation.accuracy(result.arms),
        "unit": "document" if state.group else "passage",
        "explain_url": state.url(page=state.page, explain=not state.explain),
        "group_url": state.url(group=not state.group),
        "passages_url": state.url(group=False),
        "first_page_url": state.url(),
        "suggestion_url": state.url(q=result.suggestion) if result.suggestion else "",
        "other_modes": [mode for mode in presentation.modes(state) if not mode.selected],
    }


def _start(request: HttpRequest, workspace: Workspace) -> dict[str, Any]:
    documents = Document.objects.visible_to(request.user).filter(workspace=workspace).current()
    return {
        "collections": Collection.objects.visible_to(request.user)
        .filter(workspace=workspace)
        .annotate(document_count=Count("documents", filter=Q(documents__is_current=True))),
        "recent": documents.filter(status=Document.Status.READY)
        .select_related("collection")
        .order_by("-id")[:RECENT],
    }
