"""Whose memory a page shows: one's own or, for an editor, that of a user of a program."""

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

from accounts.current_workspace import request_workspace
from accounts.models import Workspace
from common.errors import NotFound
from common.web import View, login_required_page
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope, account_id, scope_of

_State = ExtractionItem.State


@dataclass(frozen=True, slots=True)
class MemoryOwner:
    """The user whose memory a page shows. `user_id` is empty for one's own."""

    scope: UserScope
    workspace: Workspace
    user_id: str

    @property
    def is_own(self) -> bool:
        """Whether it is the visitor's own memory."""
        return not self.user_id

    def url(self, name: str, *args: Any, **params: Any) -> str:
        """URL of a page about the same user; parameters without a value are left out."""
        given = {"user_id": self.user_id, **params}
        query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
        return f"{reverse(name, args=args)}?{query}".removesuffix("?")


def memory_page(view: Callable[..., HttpResponseBase]) -> View:
    """Decorator of a view that takes a `MemoryOwner`, selected by `?user_id=`, after the
    request.
    """

    @login_required_page
    @wraps(view)
    def view_for_owner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        workspace = request_workspace(request)
        scope = scope_of(user=request.user, workspace=workspace, user_id=request.GET.get("user_id"))
        if scope is None:
            raise NotFound(
                "Nothing is ever remembered of nobody, or of a user called “unknown”. Name a user,"
                " or open Memory for your own."
            )
        is_own = scope.user_id == account_id(request.user)
        owner = MemoryOwner(scope, workspace, "" if is_own else scope.user_id)
        return view(request, owner, *args, **kwargs)

    return view_for_owner


def memory_response(
    request: HttpRequest,
    owner: MemoryOwner,
    template: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """Render the page. It is not cached by the browser, so that erased memory cannot reappear."""
    conversations = ExtractionItem.objects.of(owner.scope).aggregate(
        waiting=Count("pk", filter=Q(state__in=[_State.WAITING, _State.RUNNING])),
        dead=Count("pk", filter=Q(state=_State.DEAD)),
    )
    counts = {
        "facts": Fact.objects.of(owner.scope).current().count(),
        "contexts": Context.objects.of(owner.scope).count(),
        **conversations,
    }
    frame = {
        "whose": owner,
        "counts": counts,
        "injects": settings.MEMORY_INJECTION,
    }
    response = render(request, template, frame | context, status=status)
    response["Cache-Control"] = "private, no-store"
    return response
