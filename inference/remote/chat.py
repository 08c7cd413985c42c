"""Conversations as servers of OpenAI's protocol are sent them, and the messages they answer with.

https://platform.openai.com/docs/api-reference/chat
"""

import json
from collections.abc import Generator, Iterable, Mapping
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
from inference.texts import sendable

END = "[DONE]"  # the last event of a stream


def sent(message: ChatMessage) -> dict[str, object]:
    """`message` as a request holds it."""
    fields: dict[str, object] = {"role": message.role, "content": sendable(message.content)}
    if message.tool_calls:
        fields["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": sendable(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return fields


def whole_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of a chat completion. `secrets` are left out where the server is quoted.

    Raises MalformedAnswer, EmptyAnswer, AnswerRefused, or BackendUnavailable for an error that the
    server calls a success.
    """
    choice = _choice(answer, secrets)
    if choice is None:
        raise MalformedAnswer("the answer's list `choices` is empty: see the server's log.")
    message = _object(choice, "message")
    return _settled(
        content=_text(message, "content"),
        refusal=_text(message, "refusal"),
        tool_calls=_tool_calls(message),
        finish=_text(choice, "finish_reason"),
        usage=_usage(answer),
    )


def streamed_message(
    events: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text out of a stream's events; returns the whole message.

    Raises as `whole_message` does, and BackendUnavailable for a stream without its end.
    """
    pieces: list[str] = []
    refusal, finish, usage, ended = "", "", None, False
    for data in events:
        if data == END:
            ended = True
            break
        chunk = _chunk(data, secrets)
        usage = _usage(chunk) or usage
        if (choice := _choice(chunk, secrets)) is None:
            continue
        delta = _object(choice, "delta")
        refusal += _text(delta, "refusal")
        finish = _text(choice, "finish_reason") or finish
        if piece := _text(delta, "content"):
            pieces.append(piece)
            yield piece
    if not ended and not finish:
        raise BackendUnavailable(
            "the stream ended before the answer did: ask again, or see the server's log."
        )
    return _settled(
        content="".join(pieces), refusal=refusal, tool_calls=(), finish=finish, usage=usage
    )


def _settled(
    *,
    content: str,
    refusal: str,
    tool_calls: tuple[ToolCall, ...],
    finish: str,
    usage: Usage | None,
) -> ChatMessage:
    if refusal or finish == "content_filter":
        raise AnswerRefused(
            f"the model declines to answer: {refusal or 'a filter stopped it'}. Ask in other words,"
            " or another model."
        )
    truncated = finish == "length"
    if not content.strip() and not tool_calls:
        raise EmptyAnswer(
            "the model used up its tokens before the first word, as models do that think first:"
            " raise max_tokens, or switch its thinking off."
            if truncated
            else "the model answers with nothing: ask in other words, or another model."
        )
    return ChatMessage(
        role="assistant", content=content, tool_calls=tool_calls, truncated=truncated, usage=usage
    )


def _chunk(data: str, secrets: tuple[str, ...]) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(
            f"an event of the stream is no JSON: {server_text(data.encode(), secrets)}. Is base_url"
            " that of an OpenAI-compatible server?"
        ) from error


def _choice(answer: Any, secrets: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The first of `choices`, of which one was asked for; None where the list is empty."""
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        said = server_text(json.dumps(answer).encode(), secrets)
        raise BackendUnavailable(f"the server breaks off: {said}. See its log.")
    choices = fields.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise MalformedAnswer(
            "the answer holds no list `choices`: is base_url that of an OpenAI-compatible server?"
        )
    return choices[0] if choices else None


def _object(choice: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = choice.get(key)
    if not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's choice has no {key!r}: update the server.")
    return value


def _text(fields: Mapping[str, Any], key: str) -> str:
    """ "" where the field is missing or null."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedAnswer(f"the answer's {key!r} is no text: update the server.")
    return value or ""


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(map(_names_function, calls)):
        raise MalformedAnswer(
            "the answer's `tool_calls` are no functions with a name: update the server."
        )
    return tuple(
        ToolCall(
            id=_text(call, "id"),
            name=call["function"]["name"],
            arguments=_text(call["function"], "arguments"),
        )
        for call in calls
    )


def _names_function(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return isinstance(name, str) and bool(name)


def _usage(answer: Any) -> Usage | None:
    """None where the server does not count: an answer is none the worse for it."""
    counted = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(counted, dict):
        return None
    read, written = counted.get("prompt_tokens"), counted.get("completion_tokens")
    if type(read) is not int or type(written) is not int:
        return None
    return Usage(input_tokens=read, output_tokens=written)
