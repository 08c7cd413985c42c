"""What every API view of a workspace's things shares: its parameters and its rights."""

import json
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from hashlib import sha256
from types import MappingProxyType
from typing import Any, ClassVar

from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import Http404
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
from accounts.api import conditional
from accounts.choosing import memberships_of
from accounts.history import Door, set_actor
from accounts.models import ApiKey, Workspace
from accounts.services import current_workspace, require_editor
from common.errors import NotFound
from common.parsers import IDEMPOTENCY_KEY
from common.serializers import QuerySerializer

WORKSPACE_HEADER = OpenApiParameter(
    "X-Workspace",
    {"type": "string", "maxLength": 63, "pattern": "^[-a-zA-Z0-9_]*$"},
    OpenApiParameter.HEADER,
    description="The same as the parameter `workspace`, which goes before it.",
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
    description="A new name of your own for this request, such as a UUID. Sent again with the same"
    " body within 24 hours, it is answered the same and does nothing.",
)
_TAGS = {"type": "string", "pattern": r'^(\*|(W/)?"[!#-~]*"(, ?(W/)?"[!#-~]*")*)$'}
IF_MATCH_HEADER = OpenApiParameter(
    conditional.IF_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="The `ETag` of what you read. If it has changed since then, nothing is done: 412.",
)
IF_NONE_MATCH_HEADER = OpenApiParameter(
    conditional.IF_NONE_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="The `ETag` of what you have. If it is still so, the answer is 304 without a body.",
)
MAKE_ONLY_HEADER = OpenApiParameter(
    conditional.IF_NONE_MATCH,
    _TAGS,
    OpenApiParameter.HEADER,
    description="`*`: only make it. If it is there already, nothing is done: 412.",
)
#: What depends on who asks and when, and is better asked anew.
NOT_KEPT = {401, 403, 429}

Handler = Callable[..., Response]
_CONDITIONS = {
    "GET": [IF_NONE_MATCH_HEADER],
    "PUT": [IF_MATCH_HEADER, MAKE_ONLY_HEADER],
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


class WorkspaceView(APIView):
    """A view that works in one workspace, with every parameter known and checked.

    `parameters_class` describes the query string of all actions, `action_parameters` that of
    single ones (by method where the view has no actions). `required_scope` and `action_scopes` say
    likewise what an API key needs; by default `read` for safe methods and `write` for others.
    """

    #: OPTIONS has nothing to tell: /api/schema/ describes all addresses.
    http_method_names = [name for name in APIView.http_method_names if name != "options"]
    parameters_class: ClassVar[type[QuerySerializer]] = WorkspaceParameters
    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {}
    required_scope: ClassVar[str] = ""
    action_scopes: ClassVar[dict[str, str]] = {}
    #: Whether a chat model, an embedder or a reranker works for whoever asks: such requests have a
    #: quota of their own.
    asks_model: ClassVar[bool] = False
    #: Whether the address is that of one thing, which has an ETag.
    is_thing: ClassVar[bool] = False
    #: What is shown of it and changes by itself, without harm to a change that If-Match guards.
    unguarded_fields: ClassVar[frozenset[str]] = frozenset()

    def documented_parameters(self) -> list[Any]:
        """What `common.openapi.AutoSchema` says of the query string and the headers."""
        headers = [WORKSPACE_HEADER, IDEMPOTENCY_HEADER] if self._is_once else [WORKSPACE_HEADER]
        if self.has_thing:
            headers += _CONDITIONS.get(str(self.request.method), ())
        return [self._parameters_class, *headers]

    def documented_statuses(self) -> list[str]:
        """What it says of statuses that do not follow from the method."""
        statuses = ["409", "422"] if self._is_once else []
        if self.has_thing:
            statuses += ["304"] if self.request.method in conditional.READING else ["412"]
        return statuses

    @property
    def has_thing(self) -> bool:
        """Whether this request is about the one thing of the address."""
        return self.is_thing and self.request.method in (
            *conditional.READING,
            *conditional.CHANGING,
        )

    def read_thing(self) -> Any:
        """The thing as GET answers it; raises NotFound."""
        return self.get(self.request, *self.args, **self.kwargs).data  # type: ignore[attr-defined]

    def locked_rows(self) -> QuerySet[Any] | None:
        """Rows that every change of the thing writes, so that none happens while they are held."""
        return None

    @property
    def _handler_name(self) -> str:
        method = str(self.request.method).lower()
        return getattr(self, "action", None) or ("get" if method == "head" else method)

    @property
    def _is_once(self) -> bool:
        return bool(getattr(getattr(self, self._handler_name, None), "is_once", False))

    @property
    def _parameters_class(self) -> type[QuerySerializer]:
        return self.action_parameters.get(self._handler_name, self.parameters_class)

    #: What is left of the caller's quota, as `accounts.throttling` tells it.
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
        set_actor(door=Door.API, user=request.user, key=self.key)
        parameters = self._parameters_class.from_query(request.query_params)
        parameters.is_valid(raise_exception=True)
        self.parameters: dict[str, Any] = parameters.validated_data
        if self.key and self._named_workspace not in ("", self.key.workspace.slug):
            raise NotFound(f"This API key knows no workspace “{self._named_workspace}”.")
        if self.has_thing:
            setattr(self, method, conditional.guarded(self, getattr(self, method)))

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace named by the request, else the user's first; raises NotFound."""
        if self.key:
            return self.key.workspace
        slug = self.workspace_slug
        if isinstance(self.request.successful_authenticator, SessionAuthentication):
            # The fence has read them already.
            own = [each.workspace for each in memberships_of(self.request._request)]
            named = [each for each in own if slug in ("", each.slug)]
            if named:
                return min(named, key=lambda workspace: workspace.pk)
        return current_workspace(user=self.request.user, slug=slug)

    @property
    def workspace_slug(self) -> str:
        """The workspace that the request names, if it does; with an API key always the key's."""
        return self.key.workspace.slug if self.key else self._named_workspace

    @property
    def key(self) -> ApiKey | None:
        """The API key that the request was made with, if it was."""
        return self.request.auth if isinstance(self.request.auth, ApiKey) else None

    @property
    def _named_workspace(self) -> str:
        return str(self.parameters.get("workspace") or self.request.headers.get("X-Workspace", ""))

    def require_editor(self, workspace: Workspace) -> None:
        """Raise Forbidden unless the user may change things in `workspace`."""
        require_editor(user=self.request.user, workspace=workspace)


class WorkspaceViewSet(WorkspaceView, GenericViewSet[Any]):
    """A viewset of things in a workspace, with the steps that its actions are made of."""

    @property
    def has_thing(self) -> bool:
        return self.action in ("retrieve", "update", "partial_update", "destroy")

    def read_thing(self) -> Any:
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
            raise NotFound(f"There is no {kind} “{name}”, or you may not see it.") from error

    def locked_rows(self) -> QuerySet[Any] | None:
        rows = self.get_queryset()
        found = rows.filter(**{self.lookup_field: self.kwargs[self.lookup_field]})
        ids = list(found.values_list("pk", flat=True))
        locked: QuerySet[Any] = rows.model._base_manager.filter(pk__in=ids)
        return locked

    def in_workspace(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Rows of the workspace; a thing with an id of its own is found without naming one."""
        if self.detail and not self.workspace_slug:
            return rows
        return rows.filter(workspace=self.workspace)

    def validated(self, input_class: type[serializers.Serializer[Any]], **kwargs: Any) -> Any:
        """The request's body, checked."""
        body = input_class(data=self.request.data, **kwargs)
        body.is_valid(raise_exception=True)
        return body.validated_data

    def page(self, rows: QuerySet[Any]) -> Response:
        """The page of `rows` that the request asks for."""
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def answer(self, row: Any, *, status: int = 200) -> Response:
        """One thing."""
        return Response(self.get_serializer(row).data, status=status)


def once(handler: Handler) -> Handler:
    """A handler of a `WorkspaceView` that obeys `Idempotency-Key`: the same request again gets the
    first answer.

    What the site failed at (5xx), and what depends on who asks, is not kept.
    """

    @wraps(handler)
    def guarded(self: WorkspaceView, *args: Any, **kwargs: Any) -> Response:
        key = self.request.headers.get(IDEMPOTENCY_KEY)
        if key is None:
            return handler(self, *args, **kwargs)
        idempotency.check_key(key)
        turn = idempotency.begin(
            user=self.request.user,
            workspace=self.workspace,
            key=key,
            fingerprint=fingerprint(self.request),
        )
        if isinstance(turn, idempotency.Answer):
            return _again(turn)
        return _first(turn, self, handler, *args, **kwargs)

    guarded.is_once = True  # type: ignore[attr-defined]  # for the description
    return guarded


def _first(
    turn: idempotency.Turn, view: WorkspaceView, handler: Handler, *args: Any, **kwargs: Any
) -> Response:
    try:
        with idempotency.kept(turn):
            response = _handled(view, handler, *args, **kwargs)
    except BaseException:
        idempotency.give_up(turn)
        raise
    if response.status_code >= 500 or response.status_code in NOT_KEPT:
        idempotency.give_up(turn)
    else:
        idempotency.finish(turn, _answer(response))
    return response


def _handled(view: WorkspaceView, handler: Handler, *args: Any, **kwargs: Any) -> Response:
    try:
        return handler(view, *args, **kwargs)
    except Exception as error:
        return view.handle_exception(error)


def _answer(response: Response) -> idempotency.Answer:
    body = "" if response.data is None else JSONRenderer().render(response.data).decode()
    return idempotency.Answer(response.status_code, body, response.headers.get("Location", ""))


def _again(answer: idempotency.Answer) -> Response:
    headers = {"Idempotency-Replayed": "true"}
    if answer.location:
        headers["Location"] = answer.location
    data = json.loads(answer.body) if answer.body else None
    return Response(data, status=answer.status, headers=headers)


def fingerprint(request: Request) -> str:
    """SHA-256 of what a request asks for: address and body. Of a form its fields and files, because
    what lies between those differs each time that the same form is sent."""
    digest = sha256()

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
                for part in _file_parts(value) if isinstance(value, UploadedFile) else [value]:
                    add(part)
    return digest.hexdigest()


def _file_parts(file: "UploadedFile[Any]") -> list[Any]:
    digest = sha256()
    for piece in file.chunks():
        digest.update(piece)
    file.seek(0)
    return [file.name, file.size, digest.digest()]
