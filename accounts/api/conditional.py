"""Requests on a condition (RFC 9110, 13): `ETag` of single things, `If-None-Match`, `If-Match`.

A tag has two parts, `"state.whole"`. The second is of everything that an answer shows, and decides
whether it is news. The first leaves out what changes by itself, such as a number of documents, and
decides whether a thing is still what a change was made from.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Protocol
from zlib import crc32

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import Http404
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from common.deadlocks import despite_deadlocks
from common.errors import InvalidInput, NotFound, RagsiteError

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"
READING, CHANGING = ("GET", "HEAD"), ("PUT", "PATCH", "DELETE")
ANYTHING = "*"
#: Namespace of the advisory locks of addresses.
_LOCKS = crc32(b"accounts.api.conditional") - 2**31

Handler = Callable[..., Any]


class PreconditionFailed(RagsiteError):
    """The thing is not what the request was made for."""

    code = "precondition_failed"
    status = 412


class Thing(Protocol):
    """What a view must know of its thing."""

    request: Request

    @property
    def unguarded_fields(self) -> frozenset[str]:
        """What is shown of it and changes by itself."""

    def read_thing(self) -> Any:
        """As it is shown now; raises NotFound."""

    def locked_rows(self) -> QuerySet[Any] | None:
        """The rows that every change of it writes."""


def guarded(view: Thing, handler: Handler) -> Handler:
    """The handler of a view's single thing, heeding conditions."""
    act = _read if view.request.method in READING else _change

    def conditional(request: Request, *args: Any, **kwargs: Any) -> Any:
        return act(view, lambda: handler(request, *args, **kwargs))

    return conditional


def etag(data: Any, *, unguarded: frozenset[str] = frozenset()) -> str:
    """The tag of an answer whose fields `unguarded` change by themselves."""
    guarded = {name: value for name, value in data.items() if name not in unguarded}
    return f'"{_digest(guarded)}.{_digest(data)}"'


def _digest(data: Any) -> str:
    return blake2b(JSONRenderer().render(data), digest_size=8).hexdigest()


def _read(view: Thing, handler: Callable[[], Response]) -> Response:
    known = _tags(view.request, IF_NONE_MATCH)
    answer = handler()
    tag = etag(answer.data, unguarded=view.unguarded_fields)
    if ANYTHING in known or tag.strip('"') in known:
        answer = Response(status=304)
    answer.headers["ETag"] = tag
    return answer


def _change(view: Thing, handler: Callable[[], Response]) -> Response:
    wanted, unwanted = _tags(view.request, IF_MATCH), _tags(view.request, IF_NONE_MATCH)
    if wanted or unwanted:
        answer = despite_deadlocks(lambda: _changed_if(view, handler, wanted, unwanted))
    else:
        answer = handler()
    if view.request.method != "DELETE" and (tag := _current(view)):
        answer.headers["ETag"] = tag
    return answer


@transaction.atomic
def _changed_if(
    view: Thing, handler: Callable[[], Response], wanted: set[str], unwanted: set[str]
) -> Response:
    """Nobody changes the thing between the look at its tag and the change."""
    _hold(view)
    tag = _current(view)
    if tag is None and view.request.method != "PUT":
        return handler()  # which says that there is none
    if wanted and not _is_among(tag, wanted):
        raise PreconditionFailed(
            "This has changed since you read it. Read it again, and send your change with the new"
            " ETag in If-Match."
            if tag
            else "There is nothing here that If-Match could speak of. Leave the header out."
        )
    if unwanted and _is_among(tag, unwanted):
        raise PreconditionFailed("This is there already. Leave out If-None-Match to replace it.")
    return handler()


def _hold(view: Thing) -> None:
    """Rows keep others from changing the thing; the address, where there are none yet, those who
    make it on a condition as well."""
    with connection.cursor() as cursor:
        address = crc32(view.request.path.encode()) - 2**31
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, address])
    rows = view.locked_rows()
    if rows is not None:
        list(rows.order_by("pk").values_list("pk", flat=True).select_for_update(of=("self",)))


def _current(view: Thing) -> str | None:
    try:
        return etag(view.read_thing(), unguarded=view.unguarded_fields)
    except (NotFound, Http404):
        return None


def _is_among(tag: str | None, tags: set[str]) -> bool:
    if tag is None:
        return False
    state = tag.strip('"').partition(".")[0]
    return ANYTHING in tags or state in {each.partition(".")[0] for each in tags}


def _tags(request: Request, header: str) -> set[str]:
    """What stands in the header, without quotes. Proxies that compress put `W/` before a tag: it
    means the same here. Raises InvalidInput."""
    given = request.headers.get(header)
    if given is None:
        return set()
    tags = {part.strip().removeprefix("W/") for part in given.split(",")}
    if tags != {ANYTHING} and not all(_is_tag(tag) for tag in tags):
        raise InvalidInput(
            f'{header} holds * or tags in quotes, such as "5d1f.77a0": the ETag of what was read.',
            field=header,
        )
    return {tag.strip('"') for tag in tags}


def _is_tag(tag: str) -> bool:
    return len(tag) >= 2 and tag[0] == tag[-1] == '"' and '"' not in tag[1:-1]
