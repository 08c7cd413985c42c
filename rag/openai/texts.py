"""Fields of requests whose values come in several forms."""

from collections.abc import Sequence
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MAX_TEXTS = 2_048
#: Of one text: some 8,192 tokens, which is OpenAI's own limit. Ten times as many take a minute.
MAX_TEXT_CHARACTERS = 32_768
#: Of all texts of one request together.
MAX_CHARACTERS = 1_000_000
_TOKENS = (
    "Token numbers are not taken: they stand for other words to this model. Send the text itself."
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
    """One text or several."""

    def to_internal_value(self, data: Any) -> list[str]:
        texts = [data] if isinstance(data, str) else data
        if not isinstance(texts, list) or not texts:
            raise serializers.ValidationError("Send a text, or a list of at least one.")
        if _holds_tokens(texts):
            raise serializers.ValidationError(_TOKENS, code="tokens")
        for at, text in enumerate(texts):
            if not isinstance(text, str):
                raise serializers.ValidationError(f"Item {at} is no text.")
            if not text.strip():
                raise serializers.ValidationError(f"Text {at} is empty. Leave it out.")
        check_amount(texts)
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
    """Texts, each by itself or as {"text": …}."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or not data:
            raise serializers.ValidationError("Send a list of at least one document.")
        texts: list[str] = []
        for at, each in enumerate(data):
            text = each.get("text") if isinstance(each, dict) else each
            if not isinstance(text, str):
                raise serializers.ValidationError(
                    f"Document {at} is neither a text nor an object with a `text`."
                )
            texts.append(text)
        check_amount(texts)
        return texts


@extend_schema_field(OpenApiTypes.ANY)
class AnyField(serializers.Field[Any, Any, Any, Any]):
    """Handed on as it is, to be checked where it is understood."""

    def to_internal_value(self, data: Any) -> Any:
        return data


def check_amount(texts: Sequence[str]) -> None:
    """Raise ValidationError for more than one request, or one text in it, may bring."""
    if len(texts) > MAX_TEXTS:
        raise serializers.ValidationError(
            f"At most {MAX_TEXTS:,} texts are taken at once, these are {len(texts):,}."
        )
    if (characters := sum(map(len, texts))) > MAX_CHARACTERS:
        raise serializers.ValidationError(
            f"At most {MAX_CHARACTERS:,} characters are taken at once, these are {characters:,}."
            " Send them in parts."
        )
    for at, text in enumerate(texts):
        if len(text) > MAX_TEXT_CHARACTERS:
            raise serializers.ValidationError(
                f"Text {at} has {len(text):,} characters; {MAX_TEXT_CHARACTERS:,} are taken. Cut it"
                " into passages.",
                code="max_length",
            )


def _holds_tokens(texts: list[Any]) -> bool:
    first = texts[0]
    return isinstance(first, int) or (
        isinstance(first, list) and all(isinstance(each, int) for each in first)
    )
