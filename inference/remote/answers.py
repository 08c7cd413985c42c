"""Reading a chat model's answer, whatever its protocol: fields of JSON, and the settled message."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from inference.base import (
    AnswerRefused,
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    MalformedAnswer,
    ToolCall,
    Usage,
)
from inference.remote.errors import server_text


def settled(
    *,
    content: str,
    tool_calls: tuple[ToolCall, ...] = (),
    refused: bool = False,
    refusal: str = "",
    truncated: bool = False,
    usage: Usage | None = None,
) -> ChatMessage:
    """The message of an answer that has ended. Raises AnswerRefused or EmptyAnswer."""
    if refused or refusal:
        raise AnswerRefused(
            f"the model declines to answer: {refusal or 'a filter stopped it'}. Ask in other words,"
            " or another model."
        )
    if not content.strip() and not tool_calls:
        raise EmptyAnswer(
            "the model used up its tokens before the first word, as models do that think first:"
            " raise max_tokens, or switch its thinking off."
            if truncated
            else "the model answers with nothing: ask in other words, or another model."
        )
    return ChatMessage("assistant", content, tool_calls, truncated=truncated, usage=usage)


def broken_off(answer: Any, secrets: tuple[str, ...]) -> BackendUnavailable:
    """The error for an `answer` that holds the server's own. `secrets` are left out of it."""
    said = server_text(json.dumps(answer).encode(), secrets)
    return BackendUnavailable(f"the server breaks off: {said}. See its log.")


def ended_early() -> BackendUnavailable:
    return BackendUnavailable(
        "the stream ended before the answer did: ask again, or see the server's log."
    )


def read_event(data: str, secrets: tuple[str, ...], *, protocol: str) -> Any:
    """The JSON of an event. Raises MalformedAnswer."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(
            f"an event of the stream is no JSON: {server_text(data.encode(), secrets)}. Is base_url"
            f" that of a server of {protocol}?"
        ) from error


def has_field(data: str, key: str, value: object) -> bool:
    """Whether `data` is a JSON object with that field."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(data)
        return isinstance(fields, dict) and fields.get(key) == value
    return False


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """ "" where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedAnswer(f"the answer's {key!r} is no text: update the server.")
    return value or ""


def usage_of(fields: Any, read: str, written: str) -> Usage | None:
    """None where the server does not count: an answer is none the worse for it."""
    counted = fields if isinstance(fields, dict) else {}
    inwards, outwards = counted.get(read), counted.get(written)
    if type(inwards) is not int or type(outwards) is not int:
        return None
    return Usage(input_tokens=inwards, output_tokens=outwards)
