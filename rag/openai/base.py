"""What the endpoints for OpenAI's clients share: who may ask, the shape of errors."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request

from accounts.api import WorkspaceView
from accounts.authentication import BasicAuthentication, KeyAuthentication
from common.errors import NotFound
from common.negotiation import ErrorsAsJson
from common.openapi import ERRORS, AutoSchema
from rag.openai.errors import exception_handler


@extend_schema_serializer(component_name="OpenAIErrorDetail")
class ErrorDetailSerializer(serializers.Serializer[Any]):
    """What went wrong."""

    message = serializers.CharField(help_text="What is wrong and, where there is one, the cure.")
    type = serializers.CharField(help_text="`invalid_request_error`, `server_error` and others.")
    param = serializers.CharField(allow_null=True, help_text="The field that is to blame.")
    code = serializers.CharField(help_text="Stable and machine-readable.")


@extend_schema_serializer(component_name="OpenAIError")
class ErrorSerializer(serializers.Serializer[Any]):
    """An error as OpenAI's clients read it."""

    error = ErrorDetailSerializer()


class OpenAISchema(AutoSchema):
    """Describes errors in their shape here."""

    def _error_response(self, status: str) -> dict[str, Any]:
        response = self._get_response_for_code(ErrorSerializer, status)  # type: ignore[no-untyped-call]
        return {**response, "description": ERRORS[status].description}


class OpenAIView(WorkspaceView):
    """Any `Accept` and `Content-Type` will do: bodies and errors are JSON. Browsers' sessions are
    not heeded, so that no page of another site can ask."""

    authentication_classes = [KeyAuthentication, BasicAuthentication]
    content_negotiation_class = ErrorsAsJson
    required_scope = "chat"
    schema = OpenAISchema()

    def get_exception_handler(self) -> Callable[..., Any]:
        return exception_handler

    def body(self, input_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked. Names that are not known are passed over, as clients send
        many."""
        body = input_class(data=self.request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values


@extend_schema(exclude=True)
class NothingHere(OpenAIView):
    """Any other address below `/v1/`: the error in this shape rather than a page."""

    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            f"There is nothing at {request.path}. There are: /v1/models, /v1/embeddings,"
            " /v1/chat/completions, /v1/rerank and /v2/rerank, without a slash at the end."
        )
