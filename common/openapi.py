"""The OpenAPI description: what every operation has in common is added here, once."""

from dataclasses import dataclass
from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema as SpectacularAutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import Direction, OpenApiExample, OpenApiResponse

from common.api import ErrorSerializer
from common.serializers import StrictSerializer


@dataclass(frozen=True, slots=True)
class ErrorStatus:
    """What one status means, with the code and the detail of an example."""

    name: str
    description: str
    code: str
    detail: str
    attr: str | None = None

    def documented(self, status: str) -> OpenApiResponse:
        """The response in OpenAPI."""
        fault = {"code": self.code, "detail": self.detail, "attr": self.attr}
        kind = "server_error" if status >= "500" else "client_error"
        kind = "validation_error" if self.attr else kind
        value = {"type": kind, "code": self.code, "detail": self.detail, "errors": [fault]}
        example = OpenApiExample(self.name, value=value, status_codes=[status])
        return OpenApiResponse(ErrorSerializer, description=self.description, examples=[example])


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
        "You may read this, not change it; or a session's CSRF token is missing.",
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
        "Unsupported media type “text/csv” in request.",
    ),
    "422": ErrorStatus(
        "KeyReused",
        "The Idempotency-Key belongs to another request.",
        "idempotency_key_reused",
        "This Idempotency-Key belongs to another request: its address or its body was different."
        " Use a new key.",
    ),
    "429": ErrorStatus(
        "TooMuchWaits",
        "So much waits that no more is taken. Try again as `Retry-After` says.",
        "extraction_queue_full",
        "10,000 messages wait to be read in this workspace, and 10,000 are allowed. Send the"
        " conversation again later: nothing of it is lost until then.",
    ),
    "503": ErrorStatus(
        "Unavailable",
        "Something that the site needs does not work just now. Try again later.",
        "embedder_unavailable",
        "Search by meaning does not work just now. Search by words still does.",
    ),
}


SUCCESSES = {
    "200": "Found.",
    "201": "Made.",
    "202": "Taken on: ask the run how far it is.",
    "204": "Deleted.",
}


class AutoSchema(SpectacularAutoSchema):
    """Adds the view's query parameters and the statuses that any operation may answer with."""

    def get_override_parameters(self) -> list[Any]:
        return [*getattr(self.view, "documented_parameters", list)()]

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        for status, response in responses.items():
            response["description"] = SUCCESSES.get(status, "")
        errors = {status: self._error_response(status) for status in self._error_statuses()}
        # These are named by the operations that have them; the others follow from the method.
        for status in {"409", "429", "503"} & responses.keys():
            errors[status] = self._error_response(status)
        return dict(sorted({**responses, **errors}.items()))

    def _error_statuses(self) -> list[str]:
        statuses = ["400", "401", "404", "406"]
        if self.method != "GET":
            statuses.append("403")
        if self.method in ("POST", "PUT", "PATCH"):
            statuses += ["413", "415"]
        return statuses + getattr(self.view, "documented_statuses", list)()

    def _error_response(self, status: str) -> dict[str, str]:
        """A reference to the one description of this status, which is made when first asked for."""
        error = ERRORS[status]
        response = self._get_response_for_code(error.documented(status), status)  # type: ignore[no-untyped-call]
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            error.name, "responses", schema=response, object=error
        )
        self.registry.register_on_missing(component)
        reference: dict[str, str] = component.ref
        return reference


class StrictSerializerExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Says that an input takes no other names."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(
            self.target, direction, bypass_extensions=True
        )
        return {**schema, "additionalProperties": False}
