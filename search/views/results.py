"""The search page: without a question where one could look, with one what was found."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.choosing import may_edit, workspace_of
from accounts.models import User, Workspace
from common.compiled import CompiledQuery
from common.errors import RagsiteError
from common.web import page
from documents.models import Collection
from search import presentation
from search.facets import TELLING
from search.filters import FilterError
from search.forms import SearchState
from search.log import record_search
from search.models import SavedSearch
from search.services import search
from search.views.golden import judged
from search.views.scoping import scope_of
from search.views.start import start

PAGE_SIZE = 10
_SAVED = CompiledQuery(lambda: SavedSearch.objects.visible_to(User(pk=0)).filter(workspace=0))


@require_safe
@page
def search_page(request: HttpRequest) -> HttpResponse:
    """Results of `?q=`; without a question, where one could look."""
    workspace = workspace_of(request)
    state = SearchState.read(request.GET)
    context: dict[str, Any] = {
        "state": state,
        "parameters": state.kept_parameters,
        "modes": presentation.modes(state),
        "sorts": presentation.sorts(state),
        "chips": presentation.chips(state, _names(request, workspace, state)),
        "loosened_url": state.url(collections=(), types=(), filter=""),
        "kept": _kept(request, workspace, state),
    }
    if not state.q:
        return render(request, "search/start.html", context | start(request, workspace))
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
    scope = scope_of(request, workspace, state)
    result = search(
        state.q,
        scope=scope,
        mode=state.mode,
        sort=state.sort,
        rerank=state.rerank,
        k=PAGE_SIZE,
        offset=(state.page - 1) * PAGE_SIZE,
        group=state.group,
        facets=[TELLING],
        **state.fusion_options,
    )
    # The further passages of a hit, fetched into its place, are no other question.
    if not request.htmx:  # type: ignore[attr-defined]  # django_htmx's middleware sets it
        record_search(result=result, scope=scope, user=request.user, source="web")
    may_judge = may_edit(request, workspace)
    golden, grades = judged(workspace, state.q, result.hits) if may_judge else (0, {})
    return {
        "result": result,
        "hits": presentation.shown_hits(state, result, grades=grades),
        "may_judge": may_judge,
        "golden": golden,
        "facets": presentation.facet_groups(state, result.facets),
        "pages": presentation.page_links(state, result),
        "how": presentation.how_it_worked(result) if state.explain else [],
        "accuracy": presentation.accuracy(result.arms),
        "unit": "document" if state.group else "passage",
        "explain_url": state.url(explain=not state.explain, page=state.page),
        "is_reranked": state.rerank is not False,
        "rerank_url": state.url(rerank=False if state.rerank is not False else None),
        "group_url": state.url(group=not state.group),
        "first_page_url": state.url(),
        "again_url": state.url(page=state.page),
        "suggestion_url": state.url(q=result.suggestion) if result.suggestion else "",
        "other_modes": [mode for mode in presentation.modes(state) if not mode.selected],
    }


def _names(request: HttpRequest, workspace: Workspace, state: SearchState) -> dict[str, str]:
    """Of the collections that narrow the search, by slug."""
    if not state.collections:
        return {}
    rows = Collection.objects.visible_to(request.user).filter(workspace=workspace)
    return dict(rows.filter(slug__in=state.collections).values_list("slug", "name"))


def _kept(request: HttpRequest, workspace: Workspace, state: SearchState) -> dict[str, Any]:
    """The user's saved searches, and which of them this is."""
    rows = _SAVED.read(request.user.pk, request.user.pk, workspace.pk)
    this = next((row for row in rows if row.parameters == state.kept_parameters), None)
    return {"rows": rows, "this": this}
