"""Conversations as servers of OpenAI's protocol are sent them, and the messages they answer with.

https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Generator, Iterable, Mapping
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
from inference.remote.tool_calls import NAMELESS, GrowingCalls, distinct
from inference.texts import sendable

PROTOCOL = "OpenAI's protocol"
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


def sent_choice(tool_choice: str) -> object:
    if tool_choice in {"auto", "none", "required"}:
        return tool_choice
    return {"type": "function", "function": {"name": tool_choice}}


def whole_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of a chat completion. `secrets` are left out where the server is quoted.

    Raises MalformedAnswer, EmptyAnswer, AnswerRefused, or BackendUnavailable for an error that the
    server calls a success.
    """
    choice = _choice(answer, secrets)
    if choice is None:
        raise MalformedAnswer("the answer's list `choices` is empty: see the server's log.")
    message = _object(choice, "message")
    finish = text_of(choice, "finish_reason")
    return settled(
        content=text_of(message, "content"),
        tool_calls=_tool_calls(message),
        refused=finish == "content_filter",
        refusal=text_of(message, "refusal"),
        truncated=finish == "length",
        usage=_usage(answer),
    )


def streamed_message(
    events: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text out of a stream's events; returns the whole message.

    Raises as `whole_message` does, and BackendUnavailable for a stream without its end.
    """
    pieces: list[str] = []
    calls = GrowingCalls()
    refusal, finish, usage, ended = "", "", None, False
    for data in events:
        if data == END:
            ended = True
            break
        chunk = read_event(data, secrets, protocol=PROTOCOL)
        usage = _usage(chunk) or usage
        if (choice := _choice(chunk, secrets)) is None:
            continue
        delta = _object(choice, "delta")
        refusal += text_of(delta, "refusal")
        finish = text_of(choice, "finish_reason") or finish
        _grow(calls, delta)
        if piece := text_of(delta, "content"):
            pieces.append(piece)
            yield piece
    if not ended and not finish:
        raise ended_early()
    return settled(
        content="".join(pieces),
        tool_calls=calls.whole(),
        refused=finish == "content_filter",
        refusal=refusal,
        truncated=finish == "length",
        usage=usage,
    )


def _choice(answer: Any, secrets: tuple[str, ...]) -> Mapping[str, Any] | None:
    """The first of `choices`, of which one was asked for; None where the list is empty."""
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise broken_off(answer, secrets)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise MalformedAnswer(
            f"the answer holds no list `choices`: is base_url that of a server of {PROTOCOL}?"
        )
    return choices[0] if choices else None


def _object(choice: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = choice.get(key)
    if not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's choice has no {key!r}: update the server.")
    return value


def _grow(calls: GrowingCalls, delta: Mapping[str, Any]) -> None:
    for at, (call, function) in enumerate(_functions(delta)):
        index = call.get("index")
        calls.add(
            index if isinstance(index, int) else at,
            id=text_of(call, "id"),
            name=text_of(function, "name"),
            arguments=text_of(function, "arguments"),
        )


def _tool_calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    functions = _functions(message)
    names = [function.get("name") for _, function in functions]
    if not all(isinstance(name, str) and name for name in names):
        raise MalformedAnswer(NAMELESS)
    return distinct(
        [
            ToolCall(text_of(call, "id"), function["name"], text_of(function, "arguments"))
            for call, function in functions
        ]
    )


def _functions(message: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each call, or piece of one, with its function."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(
        isinstance(call, dict) and isinstance(call.get("function"), dict) for call in calls
    ):
        raise MalformedAnswer(NAMELESS)
    return [(call, call["function"]) for call in calls]


def _usage(answer: Any) -> Usage | None:
    counted = answer.get("usage") if isinstance(answer, dict) else None
    return usage_of(counted, "prompt_tokens", "completion_tokens")
