"""The OpenAPI description: what all operations share is added here. Begin with `Operation`."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema as SpectacularAutoSchema
from drf_spectacular.plumbing import ResolvedComponent, get_doc
from drf_spectacular.utils import Direction, OpenApiExample, OpenApiResponse

from common.api import ErrorSerializer
from common.serializers import StrictSerializer


def _read_yaml(package: str, name: str) -> Any:
    text = files(package).joinpath(name).read_text("utf-8")
    return yaml.load(text, Loader=yaml.CSafeLoader)  # ten times as fast as the other


@dataclass(frozen=True, slots=True)
class Operation:
    """The declaration of a handler: its input, its answer, and what OpenAPI says of it.

    The first paragraph of the handler's docstring is the summary, the others are the description.
    The `examples.yaml` beside the module has the examples, each with the ids of its `operations`.
    """

    #: Serializer of the body. A mapping by content type if the handler reads the body itself.
    takes: Any = None
    #: Serializer of the answer; by default that of the view, and none for DELETE. A mapping by
    #: status, or by status and content type, if the handler makes the response itself.
    gives: Any = None
    #: Whether the answer is a page of rows, or in views without pages a list.
    many: bool = False
    #: Status of the answer.
    status: int = 200
    #: Headers in addition to those of the view.
    parameters: tuple[Any, ...] = ()
    #: Which of the errors 409, 424 and 502 are possible. The others follow from the method.
    errors: tuple[int, ...] = ()
    #: Whether the answer contains a secret, so that no cache may store it.
    shows_secret: bool = False
    deprecated: bool = False
    #: By default made from the address and the method.
    operation_id: str = ""


@cache
def _examples_by_operation(package: str) -> Mapping[str, list[OpenApiExample]]:
    """The examples whose `operations` in `examples.yaml` name one."""
    found: dict[str, list[OpenApiExample]] = {}
    if files(package).joinpath("examples.yaml").is_file():
        for options in _read_yaml(package, "examples.yaml").values():
            for operation in options.pop("operations", ()):
                found.setdefault(operation, []).append(OpenApiExample(**options))
    return found


_SHARED = _read_yaml("common", "openapi.yaml")
#: By status: `name` and `description`, and `code`, `detail` and perhaps `attr` of an example.
ERRORS: dict[str, dict[str, str]] = _SHARED["errors"]
#: Headers of the caller's quota, which any answer may have.
QUOTA_HEADERS = ("RateLimit-Policy", "RateLimit")


class AutoSchema(SpectacularAutoSchema):
    """Adds the view's query parameters, statuses that any operation may return, and response
    headers.
    """

    @property
    def _handler(self) -> Any:
        name = getattr(self.view, "action", None) or self.method.lower()
        return getattr(self.view, name, None)

    @property
    def _operation(self) -> Operation | None:
        return getattr(self._handler, "operation", None)

    def _paragraphs(self) -> list[str]:
        """Those of the docstring of an operation, each in one line."""
        if self._operation is None:
            return []
        text = inspect.getdoc(self._handler) or ""
        return [" ".join(each.split()) for each in text.split("\n\n")]

    def get_summary(self) -> str | None:
        if paragraphs := self._paragraphs():
            return paragraphs[0].removesuffix(".")
        one, many = getattr(self.view, "nouns", ("", ""))
        match getattr(self.view, "action", ""):
            case "list" if many:
                is_by_change = "-updated_at" in getattr(self.view, "ordering", ())
                return f"List {many}, {'last changed' if is_by_change else 'newest'} first"
            case "retrieve" if one:
                return f"Read {'an' if one[0] in 'AEIOUaeiou' else 'a'} {one}"
        return None

    def get_description(self) -> str:  # type: ignore[override]  # as the library's
        if self._operation is None:
            described: str = super().get_description()
            return described
        return "\n\n".join(self._paragraphs()[1:]) or get_doc(type(self.view))

    def get_tags(self) -> list[str]:
        tag = getattr(self.view, "tag", "")
        return [tag] if tag else super().get_tags()

    def get_operation_id(self) -> str:
        operation = self._operation
        return (operation and operation.operation_id) or super().get_operation_id()

    def is_deprecated(self) -> bool:
        return self._operation is not None and self._operation.deprecated

    def get_request_serializer(self) -> Any:
        return self._operation.takes if self._operation else super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        operation = self._operation
        if operation is None:
            return super().get_response_serializers()
        gives: Any = operation.gives or getattr(self.view, "serializer_class", None)
        if self.method == "DELETE" and not operation.gives:
            gives = {204: None}
        elif not isinstance(gives, Mapping):
            gives = {operation.status: gives(many=True) if operation.many else gives}
        return {**gives, **dict.fromkeys(operation.errors, ErrorSerializer)}

    def get_examples(self) -> list[OpenApiExample]:
        package = type(self.view).__module__.rpartition(".")[0]
        return [*_examples_by_operation(package).get(self.get_operation_id(), ())]

    def get_override_parameters(self) -> list[Any]:
        own = self._operation.parameters if self._operation else ()
        return [*getattr(self.view, "documented_parameters", list)(), *own]

    def _get_parameters(self) -> list[dict[str, Any]]:
        parameters: list[dict[str, Any]] = super()._get_parameters()
        for parameter in parameters:
            if parameter["in"] == "query":
                parameter["schema"] = _in_an_address(parameter["schema"])
                if not parameter.get("required"):
                    parameter["allowEmptyValue"] = True  # `QuerySerializer`: it is not given
        return parameters

    def _get_request_body(self, direction: Direction = "request") -> dict[str, Any] | None:
        body: dict[str, Any] | None = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        # Whether it has alternatives that each require fields.
        if body is not None and (len(body.get("content", {})) > 1):
            body["required"] = True  # which is only known of bodies with one form
        return body

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        named = [*getattr(self.view, "documented_statuses", list)()]
        for status, response in responses.items():
            response["description"] = _SHARED["successes"].get(status, "")
            headers = {name: self._header(name) for name in QUOTA_HEADERS}
            if not {"304", "412"}.isdisjoint(named) and status in ("200", "201"):
                headers["ETag"] = self._header("ETag")
            response.setdefault("headers", {}).update(headers)
        statuses = ["400", "401", "403", "404", "406", "429", "503"]
        if self.method in ("POST", "PUT", "PATCH"):
            statuses += ["413", "415"]
        statuses += [status for status in named if status in ERRORS]
        # These are named by the operations that have them; the others follow from the method.
        statuses += {"409", "424", "502"} & responses.keys()
        errors = {status: self._error_response(status) for status in statuses}
        # Responses without a body, and 414, which the web server sends itself.
        bare_responses: dict[str, Any] = {"414": {"description": _SHARED["too_long"]}}
        if "304" in named:
            headers = {"ETag": self._header("ETag")}
            bare_responses["304"] = {
                "description": "It is what you have already.",
                "headers": headers,
            }
        return dict(sorted({**responses, **errors, **bare_responses}.items()))

    def _header(self, name: str) -> dict[str, str]:
        """A reference to the shared component, created on first use."""
        header = _SHARED["headers"][name]
        schema = {"type": "string", "example": header["example"]}
        return self._reference(
            header["name"],
            ResolvedComponent.HEADER,
            {"description": header["description"], "schema": schema},
        )

    def _error_response(self, status: str) -> dict[str, str]:
        """A reference to the shared response of this status, created on first use."""
        error = ERRORS[status]
        fault = {name: error.get(name) for name in ("code", "detail", "attr")}
        kind = "server_error" if status >= "500" else "client_error"
        kind = "validation_error" if fault["attr"] else kind
        value = {"type": kind, "code": fault["code"], "detail": fault["detail"], "errors": [fault]}
        example = OpenApiExample(error["name"], value=value, status_codes=[status])
        documented = OpenApiResponse(
            ErrorSerializer, description=error["description"], examples=[example]
        )
        response = self._get_response_for_code(documented, status)  # type: ignore[no-untyped-call]
        if status in ("429", "503"):
            response["headers"] = {"Retry-After": self._header("Retry-After")}
        return self._reference(error["name"], "responses", response)

    def _reference(self, name: str, kind: str, schema: dict[str, Any]) -> dict[str, str]:
        component = ResolvedComponent(name, kind, schema=schema, object=name)  # type: ignore[no-untyped-call]
        self.registry.register_on_missing(component)
        reference: dict[str, str] = component.ref
        return reference


def _in_an_address(schema: dict[str, Any]) -> dict[str, Any]:
    """Objects are passed as text in a query string."""
    for form in schema.get("oneOf", ()):
        if form.get("type") == "string":
            return dict(form)
    return {"type": "string"} if schema.get("type") == "object" else schema


class StrictSerializerExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Declares `additionalProperties: false` for strict inputs."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return {**schema, "additionalProperties": False}
