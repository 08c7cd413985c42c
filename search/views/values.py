"""Values of a long facet, found while one types."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.choosing import workspace_of
from common.web import page
from search import presentation
from search.facet_values import facet_values
from search.forms import SearchState
from search.views.scoping import scope_of

MOST_CHARACTERS = 100


@require_safe
@page
def facet_choices(request: HttpRequest) -> HttpResponse:
    """Values of `?facet=` that begin with `?prefix=`, each to be clicked, for the search that the
    other parameters are."""
    workspace = workspace_of(request)
    state = SearchState.read(request.GET)
    name = request.GET.get("facet", "")
    values = facet_values(
        state.q,
        scope=scope_of(request, workspace, state),
        facet=name,
        prefix=request.GET.get("prefix", "").replace("\0", "")[:MOST_CHARACTERS],
        mode=state.mode,
        group=state.group,
    )
    return render(
        request, "search/values.html", {"facet": presentation.facet_group(state, name, values)}
    )
