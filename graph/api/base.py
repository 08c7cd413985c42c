"""What every API view of the graph shares: whose eyes look at it, and how it is shown."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qsl

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from accounts.api import WorkspaceView
from accounts.api.conditional import READING
from common.errors import InvalidInput, NotFound
from graph.scopes import GraphScope, graph_scope
from graph.services import MissingNode

InputClass = type[serializers.Serializer[Any]]


class GraphView(WorkspaceView):
    """A view of the graph of one workspace, as the user may see it."""

    #: Parameters, or fields of the body, that together name one thing.
    names: ClassVar[tuple[str, ...]] = ()

    @property
    def has_thing(self) -> bool:
        is_list = self.request.method in READING and hasattr(self, "parameters")
        return super().has_thing and not (is_list and set(self.names) - self.parameters.keys())

    def named(self, name: str) -> str:
        """What the request calls the thing; empty where it does not say."""
        body: Any = self.request.data
        given = self.parameters.get(name) or body.get(name)
        return given if isinstance(given, str) else ""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        _check_encoding(request)
        super().initial(request, *args, **kwargs)

    @cached_property
    def scope(self) -> GraphScope:
        """What the user may see. Raises NotFound."""
        return graph_scope(user=self.request.user, workspace=self.workspace)

    @property
    def editable(self) -> GraphScope:
        """The same, for those who may change it. Raises Forbidden."""
        scope = self.scope
        self.require_editor(self.workspace)
        return scope

    def body(self, input_class: InputClass) -> dict[str, Any]:
        """The request's body, checked."""
        body = input_class(data=self.request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def asked(self, input_class: InputClass) -> dict[str, Any]:
        """The parameters that the body of a POST has, too."""
        names = input_class().fields
        return {name: self.parameters[name] for name in names & self.parameters.keys()}

    def address_of(self, cursor: str) -> str | None:
        """This address with another cursor; None without one."""
        if not cursor:
            return None
        return str(replace_query_param(self.request.build_absolute_uri(), "cursor", cursor))


@contextmanager
def naming(values: Mapping[str, Any], *fields: str) -> Iterator[None]:
    """Let MissingNode say in which of the fields the missing one stands."""
    try:
        yield
    except MissingNode as error:
        error.field = next((each for each in fields if values[each] in error.ids), "")
        raise


def no_node() -> NotFound:
    """There is none, or the user may not see it: both look the same."""
    return NotFound("There is no node with this id, or you may not see it.")


def _check_encoding(request: Request) -> None:
    """Raise InvalidInput for what came out of broken UTF-8: it would make one id of two."""
    try:
        parse_qsl(request.META.get("QUERY_STRING", ""), errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidInput("The address is not UTF-8. Percent-encode it as UTF-8.") from error
