"""Whose memory a page shows: one's own, or, for an editor, that of a user of a program."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from accounts.choosing import workspace_of
from accounts.models import Workspace
from common.errors import NotFound
from common.web import View, page
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope, account_id, scope_of

State = ExtractionItem.State


@dataclass(frozen=True, slots=True)
class Whose:
    """The memory that a page is about. `user_id` is empty for one's own."""

    scope: UserScope
    workspace: Workspace
    user_id: str

    @property
    def is_own(self) -> bool:
        """Whether it is the memory of the person who looks."""
        return not self.user_id

    def url(self, name: str, *args: Any, **params: Any) -> str:
        """The address of a page about the same memory; parameters without a value are left out."""
        given = {"user_id": self.user_id, **params}
        query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
        return f"{reverse(name, args=args)}?{query}".removesuffix("?")


def memory_page(view: Callable[..., HttpResponseBase]) -> View:
    """A page whose view is given a `Whose` after the request, by `?user_id=`."""

    @page
    @wraps(view)
    def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(request, _whose(request), *args, **kwargs)

    return opened


def _whose(request: HttpRequest) -> Whose:
    workspace = workspace_of(request)
    scope = scope_of(user=request.user, workspace=workspace, user_id=request.GET.get("user_id"))
    if scope is None:
        raise NotFound(
            "Nothing is ever remembered of nobody, or of a user called “unknown”. Name a user, or"
            " open Memory for your own."
        )
    is_own = scope.user_id == account_id(request.user)
    return Whose(scope, workspace, "" if is_own else scope.user_id)


def memory_response(
    request: HttpRequest,
    whose: Whose,
    template: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """The page with its frame. A browser keeps no copy: what is erased must not come back."""
    frame = {
        "whose": whose,
        "counts": _counts(whose.scope),
        "injects": settings.MEMORY_INJECTION,
    }
    response = render(request, template, frame | context, status=status)
    response["Cache-Control"] = "private, no-store"
    return response


def _counts(scope: UserScope) -> dict[str, int]:
    conversations = ExtractionItem.objects.of(scope).aggregate(
        waiting=Count("pk", filter=Q(state__in=[State.WAITING, State.RUNNING])),
        dead=Count("pk", filter=Q(state=State.DEAD)),
    )
    return {
        "facts": Fact.objects.of(scope).current().count(),
        "contexts": Context.objects.of(scope).count(),
        **conversations,
    }
