"""Middleware: the language of pages, the actor for the audit log, the workspaces that PostgreSQL
shows to the request, when a session was last seen, and second factors that must be set up first.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError
from django.http import FileResponse, Http404, HttpRequest, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import resolve, reverse
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django_htmx.http import HttpResponseClientRedirect

from accounts.audit import Channel, acting
from accounts.current_workspace import request_memberships, request_workspace
from accounts.services import shard_to_work_on
from accounts.sign_in import FACTOR_KEY, list_session, needs_second_factor, session_is_stale
from common.rls import WorkspaceContext, bypass_rls, iterate_within, use_context
from common.shards import MAIN, on_shard

#: Programs that show a key say later who they are: `accounts.api.WorkspaceView`.
CHANNELS = (
    ("/admin/", Channel.ADMIN),
    ("/api/", Channel.API),
    ("/v1/", Channel.API),
    ("/v2/", Channel.API),
    ("/mcp", Channel.API),
)


#: Where a session in the admin keeps the shard that it shows.
SHARD_KEY = "shard"

#: Open to sessions that still lack a second factor: setting one up, and leaving.
FACTOR_PATHS = ("/account/", "/logout/", "/language/", "/texts.js")

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


def workspace_shard(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Answer on the shard of the workspace that the request works in."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if _works_with_accounts(request):
            with on_shard(MAIN):
                return get_response(request)
        with bypass_rls():  # before anybody knows who asks
            shard = request_shard(request)
        with on_shard(shard, is_open=True):  # which a key or a parameter may still change
            return get_response(request)

    return middleware


def _works_with_accounts(request: HttpRequest) -> bool:
    """Whether the view works with accounts, which are in the main database."""
    try:
        view = resolve(request.path_info).func
    except Http404:
        return True
    view = getattr(view, "view_class", getattr(view, "cls", view))
    is_sharded = getattr(view, "is_on_shard", False)
    return view.__module__.startswith(("accounts.", "django.contrib.auth.")) and not is_sharded


def request_shard(request: HttpRequest) -> str:
    """The shard of the workspace that a request names, or that the session works in; in the admin
    the one that its reader chose. A key's is chosen by `accounts.authentication`."""
    channel = channel_of(request.path)
    if channel == Channel.ADMIN:
        if chosen := request.GET.get("shard") if request.path == reverse("admin:index") else None:
            request.session[SHARD_KEY] = chosen
        kept = request.session.get(SHARD_KEY, MAIN)
        return kept if kept in settings.DATABASE_SHARDS else MAIN
    if not request.user.is_authenticated:
        return MAIN
    own = request_memberships(request)
    slug = request.GET.get("workspace") or request.headers.get("X-Workspace", "")
    named = [each.workspace for each in own if each.workspace.slug == slug]
    if channel == Channel.API and not named:
        named = sorted((each.workspace for each in own), key=lambda workspace: workspace.pk)
    if not own:
        return MAIN
    workspace = named[0] if named else request_workspace(request)
    return shard_to_work_on(workspace, method=request.method)


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


def session_seen(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Every few minutes, note on the list of a person's sessions that this one was seen."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        # Sessions that nothing read are not read for this.
        is_read = request.session.accessed and "_auth_user_id" in request.session
        if is_read and session_is_stale(request) and request.user.is_authenticated:
            # Ended meanwhile, it is on no list.
            with suppress(IntegrityError):
                list_session(request, request.user)
        return response

    return middleware


def second_factor_required(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Where the settings want a second factor, sessions without one lead to setting it up. Keys of
    programs are no sessions.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        session = request.session
        if (
            request.path.startswith(FACTOR_PATHS)
            or not session.get("_auth_user_id")
            or session.get(FACTOR_KEY)
            or not request.user.is_authenticated
            or not needs_second_factor(request.user)
        ):
            return get_response(request)
        message = gettext("Set up a second factor first: an authenticator app or a passkey.")
        if channel_of(request.path) == Channel.API:
            if "Authorization" in request.headers:  # the key decides, not the session
                return get_response(request)
            error = {"code": "second_factor_missing", "detail": message}
            body = {"type": "client_error", **error, "errors": [{**error, "attr": None}]}
            return JsonResponse(body, status=403)
        target = redirect("security")
        if request.headers.get("HX-Request") == "true":
            return HttpResponseClientRedirect(target.url)
        messages.warning(request, message)
        return target

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
