"""Base views of the API. Rows of a table are a viewset, whose handlers are operations:

    class SavedSearchViewSet(ResourceViewSet):  # lists and reads the rows
        nouns = ("saved search", "saved searches")
        queryset = SavedSearch.objects.all()
        serializer_class = SavedSearchSerializer  # of answers

        @operation(takes=NewSavedSearchSerializer, status=201, errors=(409,))
        def create(self, **values: Any) -> SavedSearch:
            "Save a search."
            return save_search(user=self.request.user, workspace=self.workspace, **values)

        @operation()
        def destroy(self, saved: SavedSearch) -> None:
            "Delete a saved search."
            saved.delete()

`operation` finds the row, validates the body, calls the method, and serializes what it returns.
OpenAPI describes the operation by the same declaration and by the docstring of the method. What is
not a table of rows is a `WorkspaceView` with `get` or `post`.
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
    """Decorate a handler, which gets the input of a request as arguments and returns its result.

    `described` are the fields of `common.openapi.Operation`.

    Arguments: the row that the address names, in detail routes of a viewset. The user may see
    it and, if the request changes it and the view is `editors_only`, change it; else NotFound or
    Forbidden is raised. As keywords, other parts of the address, and the fields of the body,
    validated by `takes`. A PATCH may leave out any field.

    Result: an object that `gives` serializes, or the rows of a page with `many`. None is answered
    with 204 if the method is DELETE, else with the row, read again. A response is returned as it
    is.

    With `once` the handler obeys `Idempotency-Key`. The response is then stored, so together with
    `shows_secret` it raises TypeError.
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
    """A view that works in one workspace and rejects unknown query parameters.

    `parameters_class` declares the query parameters of all handlers, and `action_parameters` those
    of single ones, by the name of the action or, in views without actions, of the method.
    `self.parameters` are the validated ones. `required_scope` and `action_scopes` say in the same
    way which scope an API key needs; by default `read` for safe methods and `write` for others.
    """

    #: Without OPTIONS: /api/schema/ describes all addresses.
    http_method_names = [name for name in APIView.http_method_names if name != "options"]
    parameters_class: ClassVar[type[QuerySerializer]] = WorkspaceParameters
    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {}
    required_scope: ClassVar[str] = ""
    action_scopes: ClassVar[dict[str, str]] = {}
    #: Order of lists. The cursor of a page is the value of the first field in its last row.
    ordering: ClassVar[str | tuple[str, ...]] = "-id"
    #: Tag of its operations in the description; by default the first part of the address.
    tag: ClassVar[str] = ""
    #: Serializer of answers, unless an operation names another.
    serializer_class: Any = None
    #: Whether requests other than GET need the editor role.
    editors_only: ClassVar[bool] = False
    #: Whether requests run a chat model, an embedder or a reranker, and count for that quota.
    asks_model: ClassVar[bool] = False
    #: Whether the address names one object, which has an ETag. Viewsets know this by the action.
    is_detail: ClassVar[bool] = False
    #: Whether API keys that are limited to collections are accepted, or the names of the handlers
    #: that accept them. These show only what belongs to a collection, or to nobody at all.
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
        """Positional arguments of a handler. Removes the parts of the address that they replace
        from `kwargs`. Raises Forbidden, and NotFound if there is no such row."""
        if self.is_for_editors:
            self.require_editor(self.workspace)
        return []

    @property
    def is_for_editors(self) -> bool:
        """Whether only an editor may send this request."""
        return self.editors_only and self.request.method not in READ_METHODS

    def get_serializer_context(self) -> dict[str, Any]:
        """Context of the serializers of answers; the name is that of DRF."""
        return {"request": self.request, "format": self.format_kwarg, "view": self}

    def respond(self, result: Any, made: Operation) -> HttpResponseBase:
        """The response for the result of a handler; `operation` describes what that may be."""
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
    """A viewset of those rows of `queryset` that are in the workspace and that the user may see.

    Each parameter of a list filters by the field of its name, or by its lookup in `lookups`.
    """

    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {"list": ListParameters}
    lookups: ClassVar[Mapping[str, str]] = {}
    lookup_value_converter = "int"
    #: What one row and several are called in the summaries: "Read an API key", "List API keys".
    nouns: ClassVar[tuple[str, str]] = ("", "")

    @property
    def _lookup_name(self) -> str:
        """The part of the address that identifies a row."""
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
        """`queryset` filtered by the parameters, if it is listed."""
        return self.narrowed(queryset, **self.parameters) if self.action == "list" else queryset

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        """`rows` filtered by these parameters of a list. Those that all lists have are ignored."""
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
        """The row, read again with the annotations of `get_queryset`."""
        return self.get_queryset().get(pk=row.pk)


class ResourceViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """A viewset that lists and reads its rows; operations add what else can be done to them."""
