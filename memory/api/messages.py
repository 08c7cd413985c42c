"""Conversations as chat clients send them: checked where we read them, passed on as they are."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

_PARTS = {"type": "array", "items": {"type": "object", "additionalProperties": {}}}
MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"type": "string", "description": "`user`, `assistant`, `system` or another."},
        "content": {
            "nullable": True,
            "oneOf": [{"type": "string"}, _PARTS],
            "description": "A text, or a list of parts of which `text` parts are read.",
        },
    },
    "required": ["role"],
    "additionalProperties": {},
}


@extend_schema_field(MESSAGE)
class MessageField(serializers.Field[Any, Any, Any, Any]):
    """A message in the form of OpenAI's API; what else stands in it comes back as it was."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or not isinstance(data.get("role"), str):
            raise serializers.ValidationError(
                "A message is an object with a “role” and a “content”."
            )
        content = data.get("content")
        if not (content is None or isinstance(content, str) or _are_parts(content)):
            raise serializers.ValidationError("A content is a text, or a list of parts.")
        return data

    def to_representation(self, value: Mapping[str, Any]) -> Any:
        return value


@extend_schema_field(
    {
        **MESSAGE,
        "properties": {
            **MESSAGE["properties"],  # type: ignore[dict-item]
            "at": {"type": "string", "format": "date-time", "description": "When it was said."},
        },
    }
)
class SaidField(MessageField):
    """A message that may say when it was said."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        message = super().to_internal_value(data)
        if message.get("at") is None:
            return message
        return {**message, "at": serializers.DateTimeField().run_validation(message["at"])}


def _are_parts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) for part in content)
