"""Results to take along."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from accounts.choosing import workspace_of
from common.web import page
from search.asked import SearchQuery
from search.export import download, export_hits
from search.forms import SearchState
from search.presentation import passage_url
from search.results import Hit
from search.views.scoping import scope_of


@require_safe
@page
def export(request: HttpRequest) -> HttpResponseBase:
    """The hits of a search, whatever its page, as a file: `?as=csv` or `json`."""
    workspace = workspace_of(request)
    state = SearchState.read(request.GET)
    query = SearchQuery(
        state.q,
        mode=state.mode,
        sort=state.sort,
        rerank=state.rerank,
        group=state.group,
        **state.fusion_options,
    )

    def link(hit: Hit) -> str:
        return request.build_absolute_uri(passage_url(hit))

    hits = export_hits(query, scope=scope_of(request, workspace, state), link=link)
    return download(hits, kind=request.GET.get("as", "csv"))
