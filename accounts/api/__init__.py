"""Base views of the API: workspace, rights, parameters, `Idempotency-Key`, and conditional requests
(`ETag`, `If-Match`, RFC 9110). Begin with `WorkspaceView`.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property, wraps
from hashlib import blake2b, sha256
from hmac import new as new_hmac
from types import MappingProxyType
from typing import Any, ClassVar
from zlib import crc32

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts import idempotency
from accounts.audit import Channel, set_actor
from accounts.current_workspace import request_memberships
from accounts.models import ApiKey, Workspace
from accounts.services import current_workspace, require_editor, shard_to_work_on
from common.errors import InvalidInput, NotFound, RagsiteError
from common.leases import retry_on_deadlock
from common.parsers import IDEMPOTENCY_KEY
from common.serializers import PageParameters, QuerySerializer
from common.shards import choose_shard

__all__ = [
    "WORKSPACE_HEADER",
    "ListParameters",
    "WorkspaceParameters",
    "WorkspaceView",
    "WorkspaceViewSet",
    "idempotent",
]

IF_MATCH, IF_NONE_MATCH = "If-Match", "If-None-Match"
READ_METHODS, WRITE_METHODS = ("GET", "HEAD"), ("PUT", "PATCH", "DELETE")
ANY_TAG = "*"
#: Namespace of the advisory locks of addresses.
_LOCK_NAMESPACE = crc32(b"accounts.api.base") - 2**31


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


WORKSPACE_HEADER = OpenApiParameter(
    "X-Workspace",
    {"type": "string", "maxLength": 63, "pattern": "^[-a-zA-Z0-9_]*$"},
    OpenApiParameter.HEADER,
    description="The same as the parameter `workspace`, which takes precedence.",
)
IDEMPOTENCY_HEADER = OpenApiParameter(
    IDEMPOTENCY_KEY,
    {
        "type": "string",
        "minLength": 1,
        "maxLength": idempotency.MAX_KEY_CHARACTERS,
        "pattern": "^[ -~]+$",
    },
    OpenApiParameter.HEADER,
    description="Your own unique name for this request, such as a UUID. If it is sent again"
    " with the same body within 24 hours, the answer is the same and nothing is"
    " done.",
)
_TAGS = {"type": "string", "pattern": r'^(\*|(W/)?"[!#-~]*"(, ?(W/)?"[!#-~]*")*)$'}
IF_MATCH_HEADER = OpenApiParameter(
    IF_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="The `ETag` of what you read. If it has changed since then, nothing is done: 412.",
)
IF_NONE_MATCH_HEADER = OpenApiParameter(
    IF_NONE_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="The `ETag` of what you have. If it has not changed, the answer is 304"
    " without a body.",
)
CREATE_ONLY_HEADER = OpenApiParameter(
    IF_NONE_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="`*`: only create it. If it exists already, nothing is done: 412.",
)
#: These depend on the caller and the moment, and are better asked anew.
NOT_STORED_STATUSES = {401, 403, 424, 429}

Handler = Callable[..., Response]
_CONDITIONS = {
    "GET": [IF_NONE_MATCH_HEADER],
    "PUT": [IF_MATCH_HEADER, CREATE_ONLY_HEADER],
    "PATCH": [IF_MATCH_HEADER],
    "DELETE": [IF_MATCH_HEADER],
}


class WorkspaceParameters(QuerySerializer):
    """The workspace that a request works in."""

    workspace = serializers.SlugField(
        required=False,
        max_length=63,
        help_text="Slug of the workspace. Default: the API key's, or the first that you belong to.",
    )


class ListParameters(PageParameters, WorkspaceParameters):
    """Query parameters of a list."""


class WorkspaceView(APIView):
    """A view that works in one workspace and rejects unknown parameters.

    `parameters_class` describes the query string of all actions, `action_parameters` that of single
    ones (by method where the view has no actions). `required_scope` and `action_scopes` likewise
    say which scope an API key needs; by default `read` for safe methods and `write` for others.
    """

    #: OPTIONS has nothing to tell: /api/schema/ describes all addresses.
    http_method_names = [name for name in APIView.http_method_names if name != "options"]
    parameters_class: ClassVar[type[QuerySerializer]] = WorkspaceParameters
    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {}
    required_scope: ClassVar[str] = ""
    action_scopes: ClassVar[dict[str, str]] = {}
    #: Order of lists; the paginator continues behind the last row's first field.
    ordering: ClassVar[str | tuple[str, ...]] = "-id"
    #: Whether requests use a chat model, an embedder or a reranker: these have a quota of their
    #: own.
    asks_model: ClassVar[bool] = False
    #: Whether the address is that of one thing, which has an ETag.
    is_detail: ClassVar[bool] = False
    #: Whether an API key that is limited to collections may come in; or names of handlers where it
    #: may. Only where all that is shown belongs to a collection, or to nobody.
    for_limited_keys: ClassVar[bool | frozenset[str]] = False
    #: Fields of the answer that change by themselves and do not count for If-Match.
    etag_excluded_fields: ClassVar[frozenset[str]] = frozenset()

    def documented_parameters(self) -> list[Any]:
        """Query parameters and headers for `common.openapi.AutoSchema`."""
        headers = (
            [WORKSPACE_HEADER, IDEMPOTENCY_HEADER] if self._is_idempotent else [WORKSPACE_HEADER]
        )
        if self.is_detail_request:
            headers += _CONDITIONS.get(str(self.request.method), ())
        return [self._parameters_class, *headers]

    def documented_statuses(self) -> list[str]:
        """Statuses that do not follow from the method, for `common.openapi.AutoSchema`."""
        statuses = ["409", "422"] if self._is_idempotent else []
        if self.is_detail_request:
            statuses += ["304"] if self.request.method in READ_METHODS else ["412"]
        return statuses

    @property
    def is_detail_request(self) -> bool:
        """Whether this request is about the single object named by the URL."""
        return self.is_detail and self.request.method in (
            *READ_METHODS,
            *WRITE_METHODS,
        )

    def read_object(self) -> Any:
        """The object as GET returns it; raises NotFound."""
        return self.get(self.request, *self.args, **self.kwargs).data  # type: ignore[attr-defined]

    def locked_rows(self) -> QuerySet[Any] | None:
        """Rows that every change of the object writes; locking them prevents concurrent changes."""
        return None

    @property
    def _handler_name(self) -> str:
        method = str(self.request.method).lower()
        return getattr(self, "action", None) or ("get" if method == "head" else method)

    @property
    def _is_idempotent(self) -> bool:
        return bool(getattr(getattr(self, self._handler_name, None), "is_once", False))

    @property
    def _parameters_class(self) -> type[QuerySerializer]:
        return self.action_parameters.get(self._handler_name, self.parameters_class)

    #: Rate-limit headers, set by `accounts.authentication`.
    quota_headers: Mapping[str, str] = MappingProxyType({})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.quota_headers.items():
            answer.headers[name] = value
        if "Location" in answer.headers:
            # Links of serializers are strings of a kind that strict servers refuse.
            answer.headers["Location"] = str(answer.headers["Location"])
        return answer

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        method = str(request.method).lower()
        if method not in self.http_method_names or not hasattr(self, method):
            raise MethodNotAllowed(str(request.method))  # before anything is said of parameters
        set_actor(channel=Channel.API, user=request.user, key=self.key)
        parameters = self._parameters_class.from_query(request.query_params)
        parameters.is_valid(raise_exception=True)
        self.parameters: dict[str, Any] = parameters.validated_data
        if self.key and self._named_workspace not in ("", self.key.workspace.slug):
            raise NotFound(
                gettext("This API key does not belong to a workspace “{workspace}”.").format(
                    workspace=self._named_workspace
                )
            )
        if settings.DATABASE_SHARDS and not self.key:
            with suppress(NotFound):  # said by what needs one
                choose_shard(shard_to_work_on(self.workspace, method=request.method))
        if self.is_detail_request:
            setattr(self, method, conditional(self, getattr(self, method)))

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace named by the request, else the user's first; raises NotFound."""
        if self.key:
            return self.key.workspace
        slug = self.workspace_slug
        if isinstance(self.request.successful_authenticator, SessionAuthentication):
            # Row-level security has read them already.
            own = [each.workspace for each in request_memberships(self.request._request)]
            named = [each for each in own if slug in ("", each.slug)]
            if named:
                return min(named, key=lambda workspace: workspace.pk)
        return current_workspace(user=self.request.user, slug=slug)

    @property
    def workspace_slug(self) -> str:
        """The workspace that the request names, or "". With an API key always the key's."""
        return self.key.workspace.slug if self.key else self._named_workspace

    @property
    def key(self) -> ApiKey | None:
        """The API key that authenticated the request, if any."""
        return self.request.auth if isinstance(self.request.auth, ApiKey) else None

    @property
    def _named_workspace(self) -> str:
        return str(self.parameters.get("workspace") or self.request.headers.get("X-Workspace", ""))

    def validated(self, input_class: type[serializers.Serializer[Any]], **kwargs: Any) -> Any:
        """The request's validated body. Raises ValidationError."""
        body = input_class(data=self.request.data, **kwargs)
        body.is_valid(raise_exception=True)
        return body.validated_data

    def require_editor(self, workspace: Workspace) -> None:
        """Raise Forbidden unless the user may change things in `workspace`."""
        require_editor(user=self.request.user, workspace=workspace)


class WorkspaceViewSet(WorkspaceView, GenericViewSet[Any]):
    """A viewset of objects in a workspace, with helpers for its actions."""

    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {"list": ListParameters}
    #: Summaries of the actions of DRF's mixins, for `common.openapi.AutoSchema`.
    summaries: ClassVar[Mapping[str, str]] = {}

    @property
    def is_detail_request(self) -> bool:
        return self.action in ("retrieve", "update", "partial_update", "destroy")

    def read_object(self) -> Any:
        asked, self.action = self.action, "retrieve"
        try:
            return self.retrieve(self.request, *self.args, **self.kwargs).data  # type: ignore[attr-defined]
        finally:
            self.action = asked

    def get_object(self) -> Any:
        try:
            return super().get_object()
        except Http404 as error:
            kind = self.get_queryset().model._meta.verbose_name
            name = self.kwargs[self.lookup_field]
            raise NotFound(
                gettext("There is no {kind} “{name}”, or you may not see it.").format(
                    kind=kind, name=name
                )
            ) from error

    def editable_object(self) -> Any:
        """The object to change. Raises NotFound, and Forbidden where the user may only read it."""
        row = self.get_object()
        self.require_editor(row.workspace)
        return row

    def locked_rows(self) -> QuerySet[Any] | None:
        rows = self.get_queryset()
        found = rows.filter(**{self.lookup_field: self.kwargs[self.lookup_field]})
        ids = list(found.values_list("pk", flat=True))
        locked: QuerySet[Any] = rows.model._base_manager.filter(pk__in=ids)
        return locked

    def in_workspace(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """`rows` limited to the workspace; an object with a global id is found without
        naming one.
        """
        if self.detail and not self.workspace_slug:
            return rows
        return rows.filter(workspace=self.workspace)

    def page(self, rows: QuerySet[Any]) -> Response:
        """The requested page of `rows`."""
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def answer(self, row: Any, *, status: int = 200) -> Response:
        """A response with one serialized object."""
        return Response(self.get_serializer(row).data, status=status)


def idempotent(handler: Handler) -> Handler:
    """Make a handler of a `WorkspaceView` obey `Idempotency-Key`: a repeated request gets the first
    answer.

    Failures of the site (5xx), and answers that depend on the caller (401, 403, 429) or on a place
    outside (424), are not stored.
    """

    @wraps(handler)
    def guarded(self: WorkspaceView, *args: Any, **kwargs: Any) -> Response:
        key = self.request.headers.get(IDEMPOTENCY_KEY)
        if key is None:
            return handler(self, *args, **kwargs)
        idempotency.check_key(key)
        turn = idempotency.claim_or_replay(
            user=self.request.user,
            workspace=self.workspace,
            key=key,
            fingerprint=fingerprint(self.request),
        )
        if turn.status is not None:
            headers = {"Idempotency-Replayed": "true"}
            if turn.location:
                headers["Location"] = turn.location
            data = json.loads(turn.body) if turn.body else None
            return Response(data, status=turn.status, headers=headers)
        mine = idempotency.claimed(turn)
        try:
            with idempotency.renew_lease(turn):
                try:
                    response = handler(self, *args, **kwargs)
                except Exception as error:
                    response = self.handle_exception(error)
        except BaseException:
            mine.delete()
            raise
        if response.status_code >= 500 or response.status_code in NOT_STORED_STATUSES:
            mine.delete()
        else:
            mine.update(
                status=response.status_code,
                body=JSONRenderer().render(response.data).decode(),
                location=response.headers.get("Location", ""),
            )
        return response

    guarded.is_once = True  # type: ignore[attr-defined]  # for the description
    return guarded


def fingerprint(request: Request) -> str:
    """Keyed SHA-256 of a request's address and body, from which nobody who reads the database can
    guess a password in it. Of a form its fields and files are hashed, because
    the boundaries between parts differ each time the same form is sent.
    """
    digest = new_hmac(settings.SECRET_KEY.encode(), digestmod=sha256)

    def add(part: Any) -> None:
        data = part if isinstance(part, bytes) else str(part).encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8) + data)

    data = request.data
    add(request.method)
    add(request.get_full_path())
    add(getattr(request, "body_sha256", ""))
    if hasattr(data, "lists"):
        for name, values in sorted(data.lists()):
            for value in values:
                add(name)
                if not isinstance(value, UploadedFile):
                    add(value)
                    continue
                content = sha256()
                for piece in value.chunks():
                    content.update(piece)
                value.seek(0)
                for part in (value.name, value.size, content.digest()):
                    add(part)
    return digest.hexdigest()
