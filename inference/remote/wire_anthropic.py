"""The messages that Anthropic's Messages API answers with.

https://docs.anthropic.com/en/api/messages
"""

import json
from collections.abc import Generator, Iterable, Mapping
from typing import Any

from inference.base import ChatMessage, MalformedAnswer, ToolCall, Usage
from inference.remote.answers import (
    broken_off,
    ended_early,
    has_field,
    read_event,
    settled,
    text_of,
    usage_of,
)
from inference.remote.errors import PassingFailure
from inference.remote.tool_calls import NAMELESS, GrowingCalls, distinct

PROTOCOL = "Anthropic's protocol"
PASSING = ("overloaded_error", "rate_limit_error", "api_error", "timeout_error")
CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
Fields = Mapping[str, Any]
TRUNCATED = {"max_tokens", "model_context_window_exceeded"}


def whole_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of an answer. `secrets` are left out where the server is quoted.

    Raises MalformedAnswer, EmptyAnswer, AnswerRefused, or BackendUnavailable for an error that the
    server calls a success.
    """
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise broken_off(answer, secrets)
    blocks = fields.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise MalformedAnswer(
            f"the answer holds no list `content`: is base_url that of a server of {PROTOCOL}?"
        )
    return _settled(
        content="".join(text_of(block, "text") for block in blocks if block.get("type") == "text"),
        tool_calls=distinct(
            [
                ToolCall(
                    text_of(block, "id"),
                    _name(block),
                    json.dumps(block.get("input") or {}, ensure_ascii=False),
                )
                for block in blocks
                if block.get("type") == "tool_use"
            ]
        ),
        stop_reason=text_of(fields, "stop_reason"),
        usage=_usage(fields.get("usage")),
    )


def streamed_message(
    events: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text out of a stream's events; returns the whole message.

    Thoughts and kinds of events that are not known here are passed over. Raises as `whole_message`
    does, and BackendUnavailable for a stream without its end.
    """
    reading = _Reading()
    for data in events:
        event = read_event(data, secrets, protocol=PROTOCOL)
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise MalformedAnswer(
                f"an event of the stream has no type: is base_url that of a server of {PROTOCOL}?"
            )
        if event["type"] == "error":
            raise broken_off(event, secrets)
        if piece := reading.take(event):
            yield piece
        if reading.ended:
            break
    return reading.whole()


def passing_failure(data: str, *, secrets: tuple[str, ...] = ()) -> PassingFailure | None:
    """The failure, where an event says that there is too much to do just now."""
    if any(kind in data for kind in PASSING) and has_field(data, "type", "error"):
        return PassingFailure(str(broken_off(json.loads(data), secrets)))
    return None


class _Reading:
    """What a stream has said so far."""

    def __init__(self) -> None:
        self.ended = False
        self._pieces: list[str] = []
        self._calls = GrowingCalls()
        self._calling: set[object] = set()  # the numbers of the blocks that are calls
        self._counted: dict[str, Any] = {}
        self._reason = ""

    def take(self, event: Fields) -> str:
        """The text in an event, mostly none."""
        match event["type"]:
            case "message_start":
                self._counted |= _object(_object(event, "message"), "usage")
            case "content_block_start":
                return self._begin(event.get("index"), _object(event, "content_block"))
            case "content_block_delta":
                return self._grow(event.get("index"), _object(event, "delta"))
            case "message_delta":
                self._counted |= _object(event, "usage")
                self._reason = text_of(_object(event, "delta"), "stop_reason") or self._reason
            case "message_stop":
                self.ended = True
        return ""

    def whole(self) -> ChatMessage:
        if not self.ended and not self._reason:
            raise ended_early()
        return _settled(
            content="".join(self._pieces),
            tool_calls=self._calls.whole(),
            stop_reason=self._reason,
            usage=_usage(self._counted),
        )

    def _begin(self, index: object, block: Fields) -> str:
        if block.get("type") == "tool_use":
            self._calling.add(index)
            arguments = json.dumps(block["input"]) if block.get("input") else ""
            self._calls.add(
                index, id=text_of(block, "id"), name=text_of(block, "name"), arguments=arguments
            )
        return self._say(block, "text") if block.get("type") == "text" else ""

    def _grow(self, index: object, delta: Fields) -> str:
        if delta.get("type") == "input_json_delta" and index in self._calling:
            self._calls.add(index, arguments=text_of(delta, "partial_json"))
        return self._say(delta, "text") if delta.get("type") == "text_delta" else ""

    def _say(self, fields: Fields, key: str) -> str:
        piece = text_of(fields, key)
        self._pieces.append(piece)
        return piece


def _settled(
    *, content: str, tool_calls: tuple[ToolCall, ...], stop_reason: str, usage: Usage | None
) -> ChatMessage:
    return settled(
        content=content,
        tool_calls=tool_calls,
        refused=stop_reason == "refusal",
        truncated=stop_reason in TRUNCATED,
        usage=usage,
    )


def _name(block: Fields) -> str:
    if not (name := text_of(block, "name")):
        raise MalformedAnswer(NAMELESS)
    return name


def _object(fields: Fields, key: str) -> dict[str, Any]:
    """{} where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's {key!r} is no object: update the server.")
    return value or {}


def _usage(counted: Any) -> Usage | None:
    """What was read from a cache and written into one was read, too."""
    usage = usage_of(counted, "input_tokens", "output_tokens")
    if usage is None:
        return None
    cached = (counted.get(key) for key in CACHED)
    read = usage.input_tokens + sum(count for count in cached if type(count) is int)
    return Usage(input_tokens=read, output_tokens=usage.output_tokens)
