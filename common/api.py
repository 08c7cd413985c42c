"""Errors of the API in one shape, `{type, code, detail, errors[]}`, and negotiation for streams."""

from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from drf_standardized_errors.formatter import ExceptionFormatter
from drf_standardized_errors.handler import ExceptionHandler
from drf_standardized_errors.types import ErrorResponse
from rest_framework import exceptions, serializers, status
from rest_framework.exceptions import ErrorDetail
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.response import Response
from rest_framework.settings import api_settings

from common.errors import InvalidInput, RagsiteError
from common.leases import DatabaseUnavailable


class StreamNegotiation(DefaultContentNegotiation):
    """For streamed answers: errors are JSON, whatever the client accepts."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


ERROR_TYPES = ("validation_error", "client_error", "server_error")


class ErrorDetailSerializer(serializers.Serializer[Any]):
    """One error of a request."""

    code = serializers.CharField(help_text="Stable and machine-readable.")
    detail = serializers.CharField(help_text="What is wrong and, where there is one, the cure.")
    attr = serializers.CharField(
        allow_null=True,
        help_text="Where: a parameter or field, with dots into nested ones (`files.2.name`);"
        " `non_field_errors` for the request as a whole. Null unless the request is invalid.",
    )


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every answer with status 400 or above."""

    type = serializers.ChoiceField(
        choices=ERROR_TYPES,
        help_text="`validation_error`: fields of the request are wrong. `client_error`: the"
        " request as a whole is. `server_error`: the site is at fault.",
    )
    code = serializers.CharField(help_text="Code of the first fault.")
    detail = serializers.CharField(help_text="Detail of the first fault.")
    errors = ErrorDetailSerializer(  # type: ignore[assignment]  # DRF's metaclass takes it out
        many=True, help_text="Every fault, at least one."
    )


class ErrorFormatter(ExceptionFormatter):
    """The library's format, with the first error also at the top level."""

    def format_error_response(self, error_response: ErrorResponse) -> dict[str, Any]:
        shaped: dict[str, Any] = super().format_error_response(error_response)
        first = shaped["errors"][0]
        return {
            "type": shaped["type"],
            "code": first["code"],
            "detail": first["detail"],
            "errors": shaped["errors"],
        }


class ErrorHandler(ExceptionHandler):
    """The library's handler, extended by our errors and Django's own request errors."""

    def convert_known_exceptions(self, exc: Exception) -> Exception:
        if isinstance(exc, DatabaseUnavailable.CAUSES) and not isinstance(exc, RagsiteError):
            exc = DatabaseUnavailable()
        if isinstance(exc, InvalidInput):
            field = exc.field or api_settings.NON_FIELD_ERRORS_KEY
            return exceptions.ValidationError({field: [str(exc)]}, code=exc.code)
        if isinstance(exc, RagsiteError):
            converted = _with_status(str(exc), code=exc.code, http_status=exc.status)
            converted.wait = exc.retry_after  # type: ignore[attr-defined]  # as DRF's Throttled has
            return converted
        if isinstance(exc, RequestDataTooBig):
            return _with_status(
                "The form fields are too large. Send long texts as files.",
                code="too_large",
                http_status=status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
            )
        if isinstance(exc, SuspiciousOperation):
            return exceptions.ParseError(str(exc))
        if isinstance(exc, exceptions.MethodNotAllowed | exceptions.UnsupportedMediaType):
            exc.detail = _allowed_instead(exc, self.context["view"])
        known: Exception = super().convert_known_exceptions(exc)
        return known

    def format_exception(self, exc: exceptions.APIException) -> dict[str, Any]:
        shaped: dict[str, Any] = ErrorFormatter(exc, self.context, self.exc).run()
        return shaped


def _allowed_instead(error: exceptions.APIException, view: Any) -> ErrorDetail:
    """Which methods or content types the view accepts instead."""
    if isinstance(error, exceptions.MethodNotAllowed):
        methods = ", ".join(view.allowed_methods)
        return ErrorDetail(f"This address takes {methods}.", code=error.default_code)
    types = " or ".join(each.media_type for each in view.parser_classes)
    said = view.request.content_type
    fault = f"A body of type “{said}” is not read here." if said else "The body's type is missing."
    cure = f"Send {types}, and say so in the header Content-Type."
    return ErrorDetail(f"{fault} {cure}", code=error.default_code)


def _with_status(detail: str, *, code: str, http_status: int) -> exceptions.APIException:
    error = exceptions.APIException(detail=detail, code=code)
    error.status_code = http_status
    return error


def exception_handler(error: Exception, context: Any) -> Response | None:
    """Convert an exception into the API's error response."""
    response: Response | None = ErrorHandler(error, context).run()
    return response
