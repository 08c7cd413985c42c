"""The OpenAPI description: what all operations share is added here."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from django.conf import settings
from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema as SpectacularAutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import Direction, OpenApiExample, OpenApiResponse

from common.api import ErrorSerializer
from common.serializers import StrictSerializer


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """Meaning of a status, with an example."""

    name: str
    description: str
    code: str
    detail: str
    attr: str | None = None

    def documented(self, status: str) -> OpenApiResponse:
        """OpenAPI response with an example."""
        fault = {"code": self.code, "detail": self.detail, "attr": self.attr}
        kind = "server_error" if status >= "500" else "client_error"
        kind = "validation_error" if self.attr else kind
        value = {"type": kind, "code": self.code, "detail": self.detail, "errors": [fault]}
        example = OpenApiExample(self.name, value=value, status_codes=[status])
        return OpenApiResponse(ErrorSerializer, description=self.description, examples=[example])


@dataclass(frozen=True, slots=True)
class ResponseHeader:
    """A response header with an example. `name` is that of its shared component."""

    name: str
    description: str
    example: str

    def documented(self) -> dict[str, Any]:
        """OpenAPI header object with an example."""
        schema = {"type": "string", "example": self.example}
        return {"description": self.description, "schema": schema}


ERRORS = {
    "400": ErrorStatus(
        "Invalid",
        "The request is wrong; `errors` says where.",
        "max_value",
        "Ensure this value is less than or equal to 100.",
        attr="k",
    ),
    "401": ErrorStatus(
        "Unauthenticated",
        "Nobody is logged in.",
        "not_authenticated",
        "Authentication credentials were not provided.",
    ),
    "403": ErrorStatus(
        "Forbidden",
        "You may read this, not change it; or the API key lacks the scope; or a session's CSRF"
        " token is missing.",
        "permission_denied",
        "You may read “Research”, not change it. Ask an owner for the editor role.",
    ),
    "404": ErrorStatus(
        "NotFound",
        "There is no such thing, or you may not see it.",
        "not_found",
        "There is no collection “leaflet”. There are: leaflets, notes.",
    ),
    "406": ErrorStatus(
        "NotAcceptable",
        "Another format than JSON is asked for.",
        "not_acceptable",
        "Could not satisfy the request Accept header.",
    ),
    "409": ErrorStatus(
        "Conflict",
        "It conflicts with what is there, or with a request that is being worked on.",
        "conflict",
        "There is a collection “leaflets” already. Choose another name.",
    ),
    "412": ErrorStatus(
        "PreconditionFailed",
        "It is not what `If-Match` or `If-None-Match` says; nothing was done.",
        "precondition_failed",
        "This has changed since you read it. Read it again, and send your change with the new ETag"
        " in If-Match.",
    ),
    "413": ErrorStatus(
        "TooLarge",
        "The body is too large.",
        "too_large",
        "A JSON body may have 10,485,760 bytes. Send a longer text as a file.",
    ),
    "415": ErrorStatus(
        "UnsupportedMediaType",
        "The body is in another format than those listed.",
        "unsupported_media_type",
        "A body of type “text/csv” is not read here. Send application/json, and say so in the"
        " header Content-Type.",
    ),
    "422": ErrorStatus(
        "KeyReused",
        "The Idempotency-Key belongs to another request.",
        "idempotency_key_reused",
        "This Idempotency-Key belongs to another request: its address or its body was different."
        " Use a new key.",
    ),
    "429": ErrorStatus(
        "TooManyRequests",
        "Too many requests, or so much waits that no more is taken. Try again as `Retry-After`"
        " says.",
        "throttled",
        "You have made 3,000 requests within a minute, which is what you may. Try again in 2"
        " seconds.",
    ),
    "502": ErrorStatus(
        "ModelFailed",
        "A model's server answered with something that is of no use.",
        "model_empty",
        "The model answers with nothing: ask in other words, or another model.",
    ),
    "503": ErrorStatus(
        "Unavailable",
        "Something that the site needs does not work just now. Try again later.",
        "embedder_unavailable",
        "Search by meaning does not work just now. Search by words still does.",
    ),
}

#: Headers of the caller's quota, which any answer may have.
HEADERS = {
    "RateLimit-Policy": ResponseHeader(
        "RateLimitPolicy",
        "The quota that this request counts towards: its name, the requests `q` that may be made"
        " within the window of `w` seconds. Not there where no limit is set.",
        '"requests";q=3000;w=60',
    ),
    "RateLimit": ResponseHeader(
        "RateLimit",
        "What is left of it: `r` requests now, and all of them again in `t` seconds.",
        '"requests";r=2998;t=1',
    ),
}
ETAG = ResponseHeader(
    "ETag",
    "Names this state of the thing: for `If-None-Match`, and `If-Match` of a change.",
    '"5d1f0c2a9be47713.77a01f6c3d5e2b90"',
)
RETRY_AFTER = ResponseHeader("RetryAfter", "Seconds after which it may be worth another try.", "2")

TOO_LONG = (
    "The address has more than 8,190 bytes. The web server says so, without JSON: send long"
    " questions in a body where there is a POST."
)
SUCCESSES = {
    "200": "Found.",
    "201": "Made.",
    "202": "Taken on: ask the run how far it is.",
    "204": "Deleted.",
}


class AutoSchema(SpectacularAutoSchema):
    """Adds the view's query parameters, statuses that any operation may return, and response
    headers.
    """

    def get_override_parameters(self) -> list[Any]:
        return [*getattr(self.view, "documented_parameters", list)()]

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
            response["description"] = SUCCESSES.get(status, "")
            headers = {name: self._header(header) for name, header in HEADERS.items()}
            if not {"304", "412"}.isdisjoint(named) and status in ("200", "201"):
                headers["ETag"] = self._header(ETAG)
            response.setdefault("headers", {}).update(headers)
        statuses = ["400", "401", "403", "404", "406", "429", "503"]
        if self.method in ("POST", "PUT", "PATCH"):
            statuses += ["413", "415"]
        statuses += [status for status in named if status in ERRORS]
        # These are named by the operations that have them; the others follow from the method.
        statuses += {"409", "502"} & responses.keys()
        errors = {status: self._error_response(status) for status in statuses}
        # Responses without a body, and 414, which the web server sends itself.
        bare_responses: dict[str, Any] = {"414": {"description": TOO_LONG}}
        if "304" in named:
            headers = {"ETag": self._header(ETAG)}
            bare_responses["304"] = {
                "description": "It is what you have already.",
                "headers": headers,
            }
        return dict(sorted({**responses, **errors, **bare_responses}.items()))

    def _header(self, header: ResponseHeader) -> dict[str, str]:
        """A reference to the shared component."""
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            header.name, ResolvedComponent.HEADER, schema=header.documented(), object=header
        )
        self.registry.register_on_missing(component)
        reference: dict[str, str] = component.ref
        return reference

    def _error_response(self, status: str) -> dict[str, str]:
        """A reference to the shared response of this status, created on first use."""
        error = ERRORS[status]
        response = self._get_response_for_code(error.documented(status), status)  # type: ignore[no-untyped-call]
        if status in ("429", "503"):
            response["headers"] = {"Retry-After": self._header(RETRY_AFTER)}
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            error.name, "responses", schema=response, object=error
        )
        self.registry.register_on_missing(component)
        reference: dict[str, str] = component.ref
        return reference


def _in_an_address(schema: dict[str, Any]) -> dict[str, Any]:
    """Objects are passed as text in a query string."""
    for form in schema.get("oneOf", ()):
        if form.get("type") == "string":
            return dict(form)
    return {"type": "string"} if schema.get("type") == "object" else schema


@cache
def load_examples(app: str) -> dict[str, OpenApiExample]:
    """The examples in `api/examples.yaml` of an app, by name."""
    text = (settings.BASE_DIR / app / "api" / "examples.yaml").read_text()
    read: dict[str, dict[str, Any]] = yaml.load(text, Loader=yaml.CSafeLoader)
    return {name: OpenApiExample(**fields) for name, fields in read.items()}


class StrictSerializerExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Declares `additionalProperties: false` for strict inputs."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return {**schema, "additionalProperties": False}
