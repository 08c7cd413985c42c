"""Base views of the API: workspace, rights, parameters, lists, and operations. Begin with
`operation` and `WorkspaceViewSet`.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, wraps
from types import MappingProxyType
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts.api.etags import CONDITIONS, READ_METHODS, WRITE_METHODS, conditional
from accounts.api.idempotent import IDEMPOTENCY_HEADER, idempotent
from accounts.audit import Channel, set_actor
from accounts.current_workspace import request_memberships
from accounts.models import ApiKey, Workspace
from accounts.services import current_workspace, require_editor, shard_to_work_on
from common.errors import NotFound
from common.openapi import Operation
from common.serializers import PageParameters, QuerySerializer
from common.shards import choose_shard

WORKSPACE_HEADER = OpenApiParameter(
    "X-Workspace",
    {"type": "string", "maxLength": 63, "pattern": "^[-a-zA-Z0-9_]*$"},
    OpenApiParameter.HEADER,
    description="The same as the parameter `workspace`, which takes precedence.",
)


class WorkspaceParameters(QuerySerializer):
    """The workspace that a request works in."""

    workspace = serializers.SlugField(
        required=False,
        max_length=63,
        help_text="Slug of the workspace. Default: the API key's, or the first that you belong to.",
    )


class ListParameters(PageParameters, WorkspaceParameters):
    """Query parameters of a list."""


def operation(*, once: bool = False, **described: Any) -> Callable[..., Callable[..., Any]]:
    """Make a method the handler of requests: it takes what they send as arguments, and returns
    what they are answered with.

    `described` are the fields of `common.openapi.Operation`. The fields of a body are keyword
    arguments; a PATCH need not have all. In a viewset the first argument of a handler for one thing
    is the row, which the user may see or, where the request changes it and `editors_only`, change.
    Returned are the row, the rows of a page, or None: a DELETE is answered with 204, another
    request with the row as it is now. Responses are passed on.

    With `once` the handler obeys `Idempotency-Key`; its answer is stored, so it has no secret.
    """
    made = Operation(**described)
    if once and made.shows_secret:
        raise TypeError("The answer of an operation that is done once would keep its secret.")

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        def handle(view: "WorkspaceView", request: Request, *args: Any, **kwargs: Any) -> Any:
            arguments = [*view.operation_arguments(kwargs), *args]
            if made.takes is not None and not isinstance(made.takes, Mapping):
                is_partial = request.method == "PATCH"
                kwargs |= view.validated(made.takes, partial=is_partial)
            return view.respond(handler(view, *arguments, **kwargs), made)

        handle.operation = made  # type: ignore[attr-defined]  # for `common.openapi.AutoSchema`
        return idempotent(handle) if once else handle

    return decorate


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
    #: Tag of its operations in the description; by default the first part of the address.
    tag: ClassVar[str] = ""
    #: Serializer of answers, unless an operation names another.
    serializer_class: Any = None
    #: Whether only editors of the workspace may send what is no GET.
    editors_only: ClassVar[bool] = False
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

    def documented_parameters(self) -> Sequence[Any]:
        """Query parameters and headers for `common.openapi.AutoSchema`."""
        headers = (
            [WORKSPACE_HEADER, IDEMPOTENCY_HEADER] if self._is_idempotent else [WORKSPACE_HEADER]
        )
        if self.is_detail_request:
            headers += CONDITIONS.get(str(self.request.method), ())
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

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        """The first arguments of an operation. Parts of the address that they stand for are taken
        out of `kwargs`. Raises Forbidden, and NotFound for what is not there."""
        if self.is_for_editors:
            self.require_editor(self.workspace)
        return []

    @property
    def is_for_editors(self) -> bool:
        """Whether only an editor may send this request."""
        return self.editors_only and self.request.method not in READ_METHODS

    def get_serializer_context(self) -> dict[str, Any]:
        """What serializers of answers know of the request."""
        return {"request": self.request, "format": self.format_kwarg, "view": self}

    def respond(self, result: Any, made: Operation) -> HttpResponseBase:
        """The response with what an operation returned."""
        if isinstance(result, HttpResponseBase):
            return result
        if result is None and self.request.method == "DELETE":
            return Response(status=204)
        gives = made.gives or self.serializer_class
        serialized = gives(result, many=made.many, context=self.get_serializer_context()).data
        response = Response(serialized, status=made.status)
        if made.shows_secret:
            response.headers["Cache-Control"] = "no-store"
        elif made.status in (201, 202) and "url" in serialized:
            response.headers["Location"] = serialized["url"]
        return response


class WorkspaceViewSet(WorkspaceView, GenericViewSet[Any]):
    """A viewset of rows in a workspace: those of `queryset` that the user may see.

    Lists are filtered by their parameters, which are fields of the rows or have a lookup in
    `lookups`.
    """

    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {"list": ListParameters}
    lookups: ClassVar[Mapping[str, str]] = {}
    lookup_value_converter = "int"
    #: What one row and several are called in the description of reading and listing them.
    nouns: ClassVar[tuple[str, str]] = ("", "")

    @property
    def _lookup_name(self) -> str:
        """The name of the address's part that says which row it is."""
        return self.lookup_url_kwarg or self.lookup_field

    def get_queryset(self) -> QuerySet[Any]:
        rows: Any = super().get_queryset()
        return self.in_workspace(rows.visible_to(self.request.user))

    def in_workspace(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """`rows` limited to the workspace; an object with a global id is found without
        naming one.
        """
        if self.detail and not self.workspace_slug and self.lookup_field == "pk":
            return rows
        return rows.filter(workspace=self.workspace)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of a list that its parameters ask for."""
        return self.narrowed(queryset, **self.parameters) if self.action == "list" else queryset

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        """`rows` with these values of parameters."""
        found = {
            self.lookups.get(name, name): value
            for name, value in wanted.items()
            if name not in ListParameters._declared_fields
        }
        return rows.filter(**found)

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
            name = self.kwargs[self._lookup_name]
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

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        if not self.detail:
            return super().operation_arguments(kwargs)
        del kwargs[self._lookup_name]
        return [self.editable_object() if self.is_for_editors else self.get_object()]

    def locked_rows(self) -> QuerySet[Any] | None:
        rows = self.get_queryset()
        found = rows.filter(**{self.lookup_field: self.kwargs[self._lookup_name]})
        ids = list(found.values_list("pk", flat=True))
        locked: QuerySet[Any] = rows.model._base_manager.filter(pk__in=ids)
        return locked

    def respond(self, result: Any, made: Operation) -> HttpResponseBase:
        if result is None and self.request.method != "DELETE":
            result = self.get_object()
        if not made.many or self.paginator is None or isinstance(result, HttpResponseBase):
            return super().respond(result, made)
        response: Any = super().respond(self.paginate_queryset(result), made)
        return self.get_paginated_response(response.data)

    def reloaded(self, row: Any) -> Any:
        """The row as this view reads rows, with all that its answers need."""
        return self.get_queryset().get(pk=row.pk)


class ResourceViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """A viewset whose rows are listed and read."""
