"""Middleware: the language of pages, the actor for the audit log, and the workspaces that
PostgreSQL shows to the request.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from django.conf import settings
from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from accounts.audit import Channel, acting
from accounts.current_workspace import request_memberships
from common.rls import WorkspaceContext, iterate_within, use_context

#: Programs that show a key say later who they are: `accounts.api.WorkspaceView`.
CHANNELS = (
    ("/admin/", Channel.ADMIN),
    ("/api/", Channel.API),
    ("/v1/", Channel.API),
    ("/v2/", Channel.API),
    ("/mcp", Channel.API),
)


#: What programs ask that show no key.
MACHINE_PATHS = ("/health/", "/metrics", "/hooks/")


def page_language(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Pages in the language that the reader chose (a cookie, set at login from the account), else
    the browser's. Programs are answered in English.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        is_machine = channel_of(request.path) not in (Channel.PAGE, Channel.ADMIN)
        if is_machine or request.path.startswith(MACHINE_PATHS):
            translation.activate(settings.LANGUAGE_CODE)
            return get_response(request)
        language = translation.get_language_from_request(request)
        translation.activate(language)
        response = get_response(request)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
            response.headers.setdefault("Content-Language", language)
        return response

    return middleware


def audit_actor(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """The session's user is the actor while the request is answered, resolved only if something
    changes.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with acting(channel=channel_of(request.path), user=getattr(request, "user", None)):
            return get_response(request)

    return middleware


def workspace_rls(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Row-level security for the request: only the user's workspaces are visible, also to streamed
    responses. The user is looked up with the first statement that needs it.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        context = WorkspaceContext(partial(visible_workspaces, request))
        with use_context(context):
            response = get_response(request)
        if not isinstance(response, StreamingHttpResponse) or isinstance(response, FileResponse):
            return response
        # The content and its close() run within the context too.
        close = response.close

        def close_within_context() -> None:
            with use_context(context):
                close()

        parts = cast("Iterable[bytes]", response.streaming_content)
        response.streaming_content = iterate_within(context, parts)
        response.close = close_within_context  # type: ignore[method-assign]
        return response

    return middleware


def visible_workspaces(request: HttpRequest) -> Iterable[int] | None:
    """Ids of the workspaces of the session's user; None (all) for staff in the admin. Programs with
    a key are identified later, in `accounts.authentication`.
    """
    user = request.user
    if not user.is_authenticated:
        return ()
    if user.is_staff and channel_of(request.path) == Channel.ADMIN:
        return None
    return [each.workspace_id for each in request_memberships(request)]


def channel_of(path: str) -> Channel:
    """The channel of a request, by its path."""
    return next((door for prefix, door in CHANNELS if path.startswith(prefix)), Channel.PAGE)
