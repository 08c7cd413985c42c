"""Saved searches: listed, saved, renamed, deleted."""

from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from accounts.choosing import workspace_of
from common.errors import NotFound, RagsiteError
from common.web import page
from search import presentation
from search.forms import SearchState
from search.models import SavedSearch
from search.saved import change_search, save_search


@require_safe
@page
def index(request: HttpRequest) -> HttpResponse:
    """All of the user's, each to be run, renamed or deleted; one that was deleted just now stands
    in the address, to be saved again."""
    rows = [presentation.saved_row(row) for row in _mine(request)]
    gone = {name: request.GET.get(name, "") for name in ("name", "parameters")}
    return render(
        request, "search/saved.html", {"rows": rows, "gone": gone if gone["name"] else None}
    )


@require_POST
@page
def save(request: HttpRequest) -> HttpResponse:
    """Keep the search that the form comes from, and show it again."""
    state = SearchState.parse(request.POST.get("parameters", ""))
    name = request.POST.get("name", "")
    try:
        row = save_search(
            user=request.user,
            workspace=workspace_of(request),
            name=name,
            parameters=state.kept_parameters,
        )
    except RagsiteError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"“{row.name}” is saved. It is in the menu “Saved”.")
    return redirect(state.url())


@require_POST
@page
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Another name."""
    row = _one(request, pk)
    try:
        change_search(saved=row, name=request.POST.get("name", ""))
    except RagsiteError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"It is called “{row.name}” now.")
    return redirect("saved_searches")


@require_POST
@page
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """It goes; the next page can save it again."""
    row = _one(request, pk)
    row.delete()
    gone = urlencode({"name": row.name, "parameters": row.parameters})
    return redirect(f"{reverse('saved_searches')}?{gone}")


def _mine(request: HttpRequest) -> QuerySet[SavedSearch]:
    rows = SavedSearch.objects.visible_to(request.user)
    return rows.filter(workspace=workspace_of(request))


def _one(request: HttpRequest, pk: int) -> SavedSearch:
    row = _mine(request).filter(pk=pk).first()
    if row is None:
        raise NotFound("There is no such saved search, or it is not yours.")
    return row
