"""Who acts in a request: told to the history."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from accounts.history import Door, acting

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


def door_of(path: str) -> Door:
    """Where a request came in."""
    return next((door for prefix, door in DOORS if path.startswith(prefix)), Door.PAGE)
