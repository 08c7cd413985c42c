"""Who acts in a request, told to the history, and what the database shows to them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

from django.http import FileResponse, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from accounts.choosing import memberships_of
from accounts.history import Door, acting
from common.fence import Fence, fenced, keeping

#: Programs that show a key say later who they are: `accounts.api.WorkspaceView`.
DOORS = (
    ("/admin/", Door.ADMIN),
    ("/api/", Door.API),
    ("/v1/", Door.API),
    ("/v2/", Door.API),
    ("/mcp", Door.API),
)


def acting_user(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """The user of the session acts as long as the request is answered. Nobody asks the database
    who that is unless something changes."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        with acting(door=door_of(request.path), user=getattr(request, "user", None)):
            return get_response(request)

    return middleware


def fenced_request(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """The database shows a request the workspaces that its user belongs to, also while a stream
    that it opened goes on. Who that is, is looked up with the first statement that needs it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        fence = Fence(partial(workspaces_of, request))
        with fenced(fence):
            response = get_response(request)
        if response.streaming and not isinstance(response, FileResponse):
            _keep_fenced(cast("StreamingHttpResponse", response), fence)
        return response

    return middleware


def _keep_fenced(response: StreamingHttpResponse, fence: Fence) -> None:
    """What is sent later, and what its end has to do, is within the fence as well."""
    close = response.close

    def close_fenced() -> None:
        with fenced(fence):
            close()

    parts = cast("Iterable[bytes]", response.streaming_content)
    response.streaming_content = keeping(fence, parts)
    response.close = close_fenced  # type: ignore[method-assign]


def workspaces_of(request: HttpRequest) -> Iterable[int] | None:
    """Ids of what the user of the session belongs to; everything to staff in the admin, whose
    rights are of another kind. Programs say later who they are: `accounts.authentication`."""
    user = request.user
    if not user.is_authenticated:
        return ()
    if user.is_staff and door_of(request.path) == Door.ADMIN:
        return None
    return [each.workspace_id for each in memberships_of(request)]


def door_of(path: str) -> Door:
    """Where a request came in."""
    return next((door for prefix, door in DOORS if path.startswith(prefix)), Door.PAGE)
