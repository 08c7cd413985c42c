"""Shared by the endpoints for Anthropic's clients: the error format. Begin with `AnthropicView`."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rest_framework import serializers

from rag.openai.protocol import OpenAISchema, OpenAIView, exception_handler

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def error_data(message: str, code: str, status: int, param: str | None = None) -> dict[str, Any]:
    """An error in Anthropic's format, with the fields `param` and `code` of OpenAI's."""
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    named = f"{param}: {message}" if param else message
    error = {"type": kind, "message": named, "param": param, "code": code}
    return {"type": "error", "error": error}


class AnthropicErrorDetailSerializer(serializers.Serializer[Any]):
    """What went wrong."""

    type = serializers.CharField(help_text="`invalid_request_error`, `api_error` and others.")
    message = serializers.CharField(help_text="Where and what is wrong, and perhaps the cure.")
    param = serializers.CharField(
        allow_null=True, help_text="Not Anthropic's: the field that is to blame."
    )
    code = serializers.CharField(help_text="Not Anthropic's: stable and machine-readable.")


class AnthropicErrorSerializer(serializers.Serializer[Any]):
    """An error in the format of Anthropic's API."""

    type = serializers.CharField(help_text="`error`.")
    error = AnthropicErrorDetailSerializer()


class AnthropicSchema(OpenAISchema):
    """Describes errors in Anthropic's format."""

    error_serializer = AnthropicErrorSerializer


class AnthropicView(OpenAIView):
    """Base of these endpoints: as for OpenAI's clients, but for the form of errors."""

    tag = "anthropic"
    schema = AnthropicSchema()

    def get_exception_handler(self) -> Callable[..., Any]:
        return partial(exception_handler, make=error_data)
