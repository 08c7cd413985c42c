"""Conversations as Ollama is sent them, and the messages it answers with.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from inference.base import ChatMessage, MalformedAnswer, ToolCall, Usage
from inference.remote.answers import (
    broken_off,
    ended_early,
    read_event,
    settled,
    text_of,
    usage_of,
)
from inference.remote.tool_calls import NAMELESS, arguments_sent, distinct
from inference.texts import sendable

PROTOCOL = "Ollama's protocol"
Fields = Mapping[str, Any]


def sent(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """`messages` as a request holds them. Results of tools name the tool, where others name the
    call."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return [_sent(message, names) for message in messages]


def whole_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of an answer. `secrets` are left out where the server is quoted.

    Raises MalformedAnswer, EmptyAnswer, or BackendUnavailable for an error that the server calls a
    success.
    """
    message = _message(answer, secrets)
    return _settled(text_of(message, "content"), _calls(message), answer)


def streamed_message(
    lines: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text out of a stream's lines; returns the whole message.

    Raises as `whole_message` does, and BackendUnavailable for a stream without its end.
    """
    pieces: list[str] = []
    calls: list[ToolCall] = []
    for line in lines:
        part = read_event(line, secrets, protocol=PROTOCOL)
        message = _message(part, secrets)
        calls += _calls(message)
        if piece := text_of(message, "content"):
            pieces.append(piece)
            yield piece
        if part.get("done") is True:
            return _settled("".join(pieces), calls, part)
    raise ended_early()


def _sent(message: ChatMessage, names: Mapping[str, str]) -> dict[str, object]:
    fields: dict[str, object] = {"role": message.role, "content": sendable(message.content)}
    if message.tool_calls:
        fields["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_sent(call)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id and (name := names.get(message.tool_call_id)):
        fields["tool_name"] = name
    return fields


def _message(answer: Any, secrets: tuple[str, ...]) -> Fields:
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise broken_off(answer, secrets)
    message = fields.get("message")
    if not isinstance(message, dict):
        raise MalformedAnswer(
            "the answer holds no object `message`: is base_url that of Ollama, without a path?"
        )
    return message


def _calls(message: Fields) -> list[ToolCall]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise MalformedAnswer(NAMELESS)
    return [_call(call) for call in calls]


def _call(call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise MalformedAnswer(NAMELESS)
    arguments = function.get("arguments") or {}
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(text_of(call, "id"), name, arguments)


def _settled(content: str, calls: list[ToolCall], last: Fields) -> ChatMessage:
    return settled(
        content=content,
        tool_calls=distinct(calls),
        truncated=text_of(last, "done_reason") == "length",
        usage=_usage(last),
    )


def _usage(last: Fields) -> Usage | None:
    """Ollama leaves out a count of what it had in its cache as a whole."""
    return usage_of({"prompt_eval_count": 0, **last}, "prompt_eval_count", "eval_count")
