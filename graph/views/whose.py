"""Whose graph a page shows: the workspace's, as far as the person who looks may read."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.choosing import workspace_of
from common.web import View, page
from graph.scopes import GraphScope, graph_scope


def graph_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page whose view is given the `GraphScope` of its user after the request."""

    @page
    @wraps(view)
    def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, _scope(request), *args, **kwargs)

    return opened


def _scope(request: HttpRequest) -> GraphScope:
    workspace = workspace_of(request)
    return graph_scope(user=request.user, workspace=workspace)
