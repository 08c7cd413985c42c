"""Shared by the endpoints for clients of other services: authentication, the error format, request
fields. Begin with `OpenAIView`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from accounts.api import WorkspaceView
from accounts.authentication import (
    BasicAuthentication,
    HeaderKeyAuthentication,
    KeyAuthentication,
)
from common.api import StreamNegotiation
from common.api import exception_handler as ours
from common.errors import NotFound, RagsiteError
from common.openapi import ERRORS, AutoSchema
from common.translation import format_number

MAX_LISTED_MODELS = 20
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
#: Request fields by the names our services use.
_PARAM_OF_FIELD = {
    api_settings.NON_FIELD_ERRORS_KEY: None,
    f"ragsite.{api_settings.NON_FIELD_ERRORS_KEY}": "ragsite",
    "message": "messages",
    "filter": "ragsite.filter",
}
_CODES = {"authentication_failed": "invalid_api_key", "invalid": "invalid_value"}
#: Makes an error of its message, code, HTTP status and the request field that is to blame.
MakeError = Callable[[str, str, int, str | None], dict[str, Any]]


class ModelNotFound(RagsiteError):
    """No model of this site has this name, or none for this endpoint."""

    code = "model_not_found"
    status = 404
    field = "model"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        there = list(known)
        more = (
            f" and {len(there) - MAX_LISTED_MODELS} more" if len(there) > MAX_LISTED_MODELS else ""
        )
        super().__init__(
            f"There is no model “{name[:200]}” for this. There are:"
            f" {', '.join(there[:MAX_LISTED_MODELS]) or 'none'}{more}."
        )


def exception_handler(error: Exception, context: Any, *, make: MakeError) -> Response | None:
    """The JSON API's error response, converted by `make`."""
    response = ours(error, context)
    if response is not None:
        field = getattr(error, "field", "")
        where = response.data["errors"][0]["attr"]
        param = _PARAM_OF_FIELD.get(where, where)
        response.data = make(
            response.data["detail"],
            response.data["code"],
            response.status_code,
            param or field or None,
        )
    return response


def error_data(message: str, code: str, status: int, param: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's format."""
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    error = {"message": message, "type": kind, "param": param, "code": _CODES.get(code, code)}
    return {"error": error}


class OpenAIErrorDetailSerializer(serializers.Serializer[Any]):
    """What went wrong, in OpenAI's fields."""

    message = serializers.CharField(help_text="What is wrong and, where there is one, the cure.")
    type = serializers.CharField(help_text="`invalid_request_error`, `server_error` and others.")
    param = serializers.CharField(allow_null=True, help_text="The field that is to blame.")
    code = serializers.CharField(help_text="Stable and machine-readable.")


class OpenAIErrorSerializer(serializers.Serializer[Any]):
    """An error in the format of OpenAI's API."""

    error = OpenAIErrorDetailSerializer()


class OpenAISchema(AutoSchema):
    """Describes errors in OpenAI's format."""

    error_serializer: ClassVar[type[serializers.Serializer[Any]]] = OpenAIErrorSerializer

    def _error_response(self, status: str) -> dict[str, Any]:
        response = self._get_response_for_code(self.error_serializer, status)  # type: ignore[no-untyped-call]
        return {**response, "description": ERRORS[status]["description"]}


class OpenAIView(WorkspaceView):
    """Base of these endpoints: any `Accept` and `Content-Type` is accepted, bodies and errors are
    JSON. Session cookies are ignored, so that no page of another site can send requests."""

    tag = "openai"
    for_limited_keys = True
    authentication_classes = [KeyAuthentication, HeaderKeyAuthentication, BasicAuthentication]
    content_negotiation_class = StreamNegotiation
    required_scope = "chat"
    schema = OpenAISchema()

    def get_exception_handler(self) -> Callable[..., Any]:
        return partial(exception_handler, make=error_data)


class UnknownEndpoint(OpenAIView):
    """Any other path below `/v1/`: an error in this format instead of a page."""

    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            gettext(
                "There is nothing at {path}. The endpoints are /v1/models, /v1/embeddings,"
                " /v1/chat/completions, /v1/messages, /v1/rerank and /v2/rerank, without a trailing"
                " slash."
            ).format(path=request.path)
        )


class NullMeansLeftOut(serializers.Serializer[Any]):
    """For input of these endpoints: clients send null for what they leave open."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        for field in fields.values():
            field.allow_null = not field.required
        return fields

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            data = {name: value for name, value in data.items() if value is not None}
        return super().to_internal_value(data)


MAX_TEXTS = 2_048
#: Of one text: some 8,192 tokens, which is OpenAI's own limit. Ten times as many take a minute.
MAX_TEXT_CHARACTERS = 32_768
#: Of all texts of one request together.
MAX_CHARACTERS = 1_000_000
_NUMBERS_REFUSED = (
    "Token numbers are not taken: they stand for other words to this model. Send the text itself;"
    " LangChain's OpenAIEmbeddings does so with check_embedding_ctx_length=False."
)


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "maxItems": MAX_TEXTS},
        ]
    }
)
class TextsField(serializers.Field[list[str], Any, Any, Any]):
    """One text or a list of texts."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not texts:
            raise serializers.ValidationError(
                gettext("Send a text, or a list of at least one text.")
            )
        first = texts[0]
        are_token_numbers = isinstance(first, int) or (
            isinstance(first, list) and all(isinstance(each, int) for each in first)
        )
        if are_token_numbers:
            raise serializers.ValidationError(_NUMBERS_REFUSED, code="tokens")
        for at, text in enumerate(texts):
            if not isinstance(text, str):
                raise serializers.ValidationError(gettext("Item {at} is not text.").format(at=at))
            if not text.strip():
                raise serializers.ValidationError(
                    gettext("Text {at} is empty. Leave it out.").format(at=at)
                )
        check_text_limits(texts)
        return texts


@extend_schema_field(
    {
        "type": "array",
        "items": {
            "oneOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                },
            ]
        },
    }
)
class DocumentsField(serializers.Field[list[str], Any, Any, Any]):
    """Texts, each a string or {"text": …}."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or not data:
            raise serializers.ValidationError(gettext("Send a list of at least one document."))
        texts: list[str] = []
        for at, each in enumerate(data):
            text = each.get("text") if isinstance(each, dict) else each
            if not isinstance(text, str):
                raise serializers.ValidationError(
                    gettext("Document {at} is neither a text nor an object with a `text`.").format(
                        at=at
                    )
                )
            texts.append(text)
        check_text_limits(texts)
        return texts


@extend_schema_field(OpenApiTypes.ANY)
class AnyField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON, passed on unchanged and validated where it is used."""

    def to_internal_value(self, data: Any) -> Any:
        return data


def check_text_limits(texts: Sequence[str]) -> None:
    """Raise ValidationError if there are too many texts or characters."""
    if len(texts) > MAX_TEXTS:
        raise serializers.ValidationError(
            gettext("The request has {count} texts; {limit} are allowed at once.").format(
                count=format_number(len(texts)), limit=format_number(MAX_TEXTS)
            )
        )
    if (characters := sum(map(len, texts))) > MAX_CHARACTERS:
        raise serializers.ValidationError(
            gettext(
                "The request has {count} characters; {limit} are allowed at once. Send it in parts."
            ).format(count=format_number(characters), limit=format_number(MAX_CHARACTERS))
        )
    for at, text in enumerate(texts):
        if len(text) > MAX_TEXT_CHARACTERS:
            raise serializers.ValidationError(
                gettext(
                    "Text {at} has {length} characters; {limit} are allowed. Split it into"
                    " passages."
                ).format(
                    at=at, length=format_number(len(text)), limit=format_number(MAX_TEXT_CHARACTERS)
                ),
                code="max_length",
            )
