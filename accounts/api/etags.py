"""Conditional requests: `ETag`, `If-Match` and `If-None-Match` of RFC 9110. Begin with
`conditional`.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from zlib import crc32

from django.db import connection, transaction
from django.http import Http404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from common.errors import InvalidInput, NotFound, RagsiteError
from common.leases import retry_on_deadlock

if TYPE_CHECKING:
    from accounts.api.base import WorkspaceView

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"
READ_METHODS, WRITE_METHODS = ("GET", "HEAD"), ("PUT", "PATCH", "DELETE")
ANY_TAG = "*"
#: Namespace of the advisory locks of addresses.
_LOCK_NAMESPACE = crc32(b"accounts.api.base") - 2**31
_TAGS = {"type": "string", "pattern": r'^(\*|(W/)?"[!#-~]*"(, ?(W/)?"[!#-~]*")*)$'}


def _header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, _TAGS, OpenApiParameter.HEADER, description=description)


_UNCHANGED = _header(
    IF_MATCH,
    "The `ETag` of what you read. If it has changed since then, nothing is done: 412.",
)
#: Headers of requests for a single object, by method.
CONDITIONS = {
    "GET": [
        _header(
            IF_NONE_MATCH,
            "The `ETag` of what you have. If it has not changed, the answer is 304 without a body.",
        )
    ],
    "PUT": [
        _UNCHANGED,
        _header(IF_NONE_MATCH, "`*`: only create it. If it exists already, nothing is done: 412."),
    ],
    "PATCH": [_UNCHANGED],
    "DELETE": [_UNCHANGED],
}


class PreconditionFailed(RagsiteError):
    """The object is not in the state that `If-Match` or `If-None-Match` requires."""

    code = "precondition_failed"
    status = 412


def conditional(view: "WorkspaceView", handler: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the handler of a single object so that it obeys `If-Match` and `If-None-Match`."""
    is_read = view.request.method in READ_METHODS

    def conditional(request: Request, *args: Any, **kwargs: Any) -> Any:
        wanted = set() if is_read else _tags(request, IF_MATCH)
        unwanted = _tags(request, IF_NONE_MATCH)

        def act() -> Response:
            response: Response = handler(request, *args, **kwargs)
            return response

        if is_read:
            answer = act()
            tag = etag(answer.data, unguarded=view.etag_excluded_fields)
            if ANY_TAG in unwanted or tag.strip('"') in unwanted:
                answer = Response(status=304)
            answer.headers["ETag"] = tag
            return answer
        if wanted or unwanted:
            answer = retry_on_deadlock(lambda: _changed_if(view, act, wanted, unwanted))
        else:
            answer = act()
        if request.method != "DELETE" and (new := _current_etag(view)):
            answer.headers["ETag"] = new
        return answer

    return conditional


def etag(data: Any, *, unguarded: frozenset[str] = frozenset()) -> str:
    """The ETag `"state.whole"` of an answer. `unguarded` fields count only for the second part."""
    guarded = {name: value for name, value in data.items() if name not in unguarded}
    return f'"{_digest(guarded)}.{_digest(data)}"'


def _digest(data: Any) -> str:
    return blake2b(JSONRenderer().render(data), digest_size=8).hexdigest()


@transaction.atomic
def _changed_if(
    view: "WorkspaceView",
    handler: Callable[[], Response],
    if_match: set[str],
    if_none_match: set[str],
) -> Response:
    """Check the conditions and run the change while the object is locked against other changes."""
    # Lock the object's rows; where there are none yet, lock the URL against concurrent creation.
    with connection.cursor() as cursor:
        address = crc32(view.request.path.encode()) - 2**31
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCK_NAMESPACE, address])
    rows = view.locked_rows()
    if rows is not None:
        list(rows.order_by("pk").values_list("pk", flat=True).select_for_update(of=("self",)))
    tag = _current_etag(view)
    if tag is None and view.request.method != "PUT":
        return handler()  # which says that there is none
    if if_match and not _is_among(tag, if_match):
        raise PreconditionFailed(
            gettext(
                "The object has changed. Read it again, and send your change with the new ETag in"
                " If-Match."
            )
            if tag
            else gettext("There is no object to compare with If-Match. Leave the header out.")
        )
    if if_none_match and _is_among(tag, if_none_match):
        raise PreconditionFailed(
            gettext("The object already exists. Leave out If-None-Match to replace it.")
        )
    return handler()


def _current_etag(view: "WorkspaceView") -> str | None:
    try:
        return etag(view.read_object(), unguarded=view.etag_excluded_fields)
    except (NotFound, Http404):
        return None


def _is_among(tag: str | None, tags: set[str]) -> bool:
    if tag is None:
        return False
    state = tag.strip('"').partition(".")[0]
    return ANY_TAG in tags or state in {each.partition(".")[0] for each in tags}


def _tags(request: Request, header: str) -> set[str]:
    """The tags in the header, without quotes. A leading `W/`, which compressing proxies add, is
    ignored. Raises InvalidInput.
    """
    given = request.headers.get(header)
    if given is None:
        return set()
    tags = {part.strip().removeprefix("W/") for part in given.split(",")}
    if tags != {ANY_TAG} and not all(
        (len(tag) >= 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1]) for tag in tags
    ):
        raise InvalidInput(
            gettext(
                '{header} takes * or quoted tags, such as "5d1f.77a0": the ETag of an'
                " earlier answer."
            ).format(header=header),
            field=header,
        )
    return {tag.strip('"') for tag in tags}
