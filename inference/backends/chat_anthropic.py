"""Anthropic's Messages API as a chat backend: requests, answers, streams.

https://docs.anthropic.com/en/api/messages. Begin with `AnthropicChat`.
"""

import json
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from inference.interfaces import (
    ChatMessage,
    InferenceError,
    MalformedAnswer,
    ToolCall,
    Usage,
    replace_surrogates,
)
from inference.remote import chat
from inference.remote.chat import ChatRequest, RemoteChat
from inference.remote.client import StreamClient, provider_key, with_version
from inference.remote.retry import RetryableError

Block = dict[str, object]
CHOICES = {"auto": "auto", "none": "none", "required": "any"}
# A conversation must begin with its user; this one was cut off at its start.
OMITTED_TURN = {"type": "text", "text": "(What was said before is left out.)"}


def system_text(messages: Sequence[ChatMessage]) -> str:
    """The text of all system messages, which is a separate field there."""
    texts = [message.content.strip() for message in messages if message.role == "system"]
    return replace_surrogates("\n\n".join(filter(None, texts)))


def request_messages(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """Alternating turns of user and assistant: consecutive messages of one side are merged.

    Raises InferenceError where no user message is left.
    """
    spoken = [message for message in messages if message.role != "system" and _blocks(message)]
    turns: list[dict[str, object]] = []
    for is_assistant, group in groupby(spoken, key=lambda message: message.role == "assistant"):
        blocks = [block for message in group for block in _blocks(message)]
        # Tool results must come before other content of the user.
        blocks.sort(key=lambda block: block["type"] != "tool_result")
        turns.append({"role": "assistant" if is_assistant else "user", "content": blocks})
    if not turns:
        raise InferenceError("a conversation in which the user says nothing: pass a question.")
    if turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [OMITTED_TURN]})
    return turns


def request_tools(tools: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "input_schema": tool.get("parameters") or {"type": "object"},
        }
        for tool in tools
    ]


def request_tool_choice(tool_choice: str) -> dict[str, object]:
    kind = CHOICES.get(tool_choice)
    return {"type": kind} if kind else {"type": "tool", "name": tool_choice}


def _blocks(message: ChatMessage) -> list[Block]:
    """Content blocks of `message`; blank text, which would be rejected, is left out."""
    text = replace_surrogates(message.content)
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": _valid_id(message.tool_call_id or "")}
        return [{**result, "content": text} if text.strip() else {**result}]
    if message.role == "assistant":
        text = text.rstrip()  # the last message may not end in a blank
    blocks: list[Block] = [{"type": "text", "text": text}] if text.strip() else []
    return blocks + [
        {
            "type": "tool_use",
            "id": _valid_id(call.id),
            "name": call.name,
            "input": chat.arguments_object(call),
        }
        for call in message.tool_calls
    ]


def _valid_id(number: str) -> str:
    """Replace characters that are not allowed in ids here, from other providers' models."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", number) or "_"


PROTOCOL = "Anthropic's protocol"
RETRYABLE_ERRORS = ("overloaded_error", "rate_limit_error", "api_error", "timeout_error")
CACHED = ("cache_creation_input_tokens", "cache_read_input_tokens")
Fields = Mapping[str, Any]
TRUNCATED = {"max_tokens", "model_context_window_exceeded"}


def parse_message(answer: Any, *, secrets: tuple[str, ...] = ()) -> ChatMessage:
    """The message of a complete answer. `secrets` are removed from quotations of the server.

    Raises MalformedAnswer, EmptyAnswer, AnswerRefused, or BackendUnavailable for an error with
    status 200.
    """
    fields = answer if isinstance(answer, dict) else {}
    if fields.get("error"):
        raise chat.stream_error(answer, secrets)
    blocks = fields.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise MalformedAnswer(
            f"the answer holds no list `content`: is base_url that of a server of {PROTOCOL}?"
        )
    calls = [
        ToolCall(
            chat.text_field(block, "id"),
            chat.text_field(block, "name"),
            json.dumps(block.get("input") or {}, ensure_ascii=False),
        )
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    if not all(call.name for call in calls):
        raise MalformedAnswer(chat.NAMELESS_CALL)
    return _finish(
        content="".join(
            chat.text_field(block, "text") for block in blocks if block.get("type") == "text"
        ),
        tool_calls=chat.with_unique_ids(calls),
        stop_reason=chat.text_field(fields, "stop_reason"),
        usage=_usage(fields.get("usage")),
    )


def parse_stream(
    events: Iterable[str], *, secrets: tuple[str, ...] = ()
) -> Generator[str, None, ChatMessage]:
    """Pieces of text from a stream's events; returns the whole message.

    Reasoning and unknown kinds of events are skipped. Raises as for a complete answer, and
    BackendUnavailable for a truncated stream.
    """
    reading = _StreamState()
    for data in events:
        event = chat.read_event(data, secrets, protocol=PROTOCOL)
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise MalformedAnswer(
                f"an event of the stream has no type: is base_url that of a server of {PROTOCOL}?"
            )
        if event["type"] == "error":
            raise chat.stream_error(event, secrets)
        if piece := reading.take(event):
            yield piece
        if reading.ended:
            break
    return reading.finished()


def retryable_error(data: str, *, secrets: tuple[str, ...] = ()) -> RetryableError | None:
    """The retryable error, where an event reports an overload."""
    if any(kind in data for kind in RETRYABLE_ERRORS) and chat.has_field(data, "type", "error"):
        return RetryableError(str(chat.stream_error(json.loads(data), secrets)))
    return None


class _StreamState:
    """State of a stream that is being read."""

    def __init__(self) -> None:
        self.ended = False
        self._pieces: list[str] = []
        self._calls = chat.ToolCallAccumulator()
        self._calling: set[object] = set()  # the numbers of the blocks that are calls
        self._counted: dict[str, Any] = {}
        self._reason = ""

    def take(self, event: Fields) -> str:
        """The text in an event, mostly empty."""
        match event["type"]:
            case "message_start":
                self._counted |= _object(_object(event, "message"), "usage")
            case "content_block_start":
                block = _object(event, "content_block")
                if block.get("type") == "tool_use":
                    self._calling.add(event.get("index"))
                    self._calls.add(
                        event.get("index"),
                        id=chat.text_field(block, "id"),
                        name=chat.text_field(block, "name"),
                        arguments=json.dumps(block["input"]) if block.get("input") else "",
                    )
                return self._say(block, "text") if block.get("type") == "text" else ""
            case "content_block_delta":
                index = event.get("index")
                delta = _object(event, "delta")
                if delta.get("type") == "input_json_delta" and index in self._calling:
                    self._calls.add(index, arguments=chat.text_field(delta, "partial_json"))
                return self._say(delta, "text") if delta.get("type") == "text_delta" else ""
            case "message_delta":
                self._counted |= _object(event, "usage")
                self._reason = (
                    chat.text_field(_object(event, "delta"), "stop_reason") or self._reason
                )
            case "message_stop":
                self.ended = True
        return ""

    def finished(self) -> ChatMessage:
        if not self.ended and not self._reason:
            raise chat.incomplete_stream_error()
        return _finish(
            content="".join(self._pieces),
            tool_calls=self._calls.finished(),
            stop_reason=self._reason,
            usage=_usage(self._counted),
        )

    def _say(self, fields: Fields, key: str) -> str:
        piece = chat.text_field(fields, key)
        self._pieces.append(piece)
        return piece


def _finish(
    *, content: str, tool_calls: tuple[ToolCall, ...], stop_reason: str, usage: Usage | None
) -> ChatMessage:
    return chat.finished_message(
        content=content,
        tool_calls=tool_calls,
        refused=stop_reason == "refusal",
        truncated=stop_reason in TRUNCATED,
        usage=usage,
    )


def _object(fields: Fields, key: str) -> dict[str, Any]:
    """{} where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's {key!r} is no object: update the server.")
    return value or {}


def _usage(counted: Any) -> Usage | None:
    """Input tokens include those read from and written to the cache."""
    usage = chat.token_usage(counted, "input_tokens", "output_tokens")
    if usage is None:
        return None
    cached = (counted.get(key) for key in CACHED)
    read = usage.input_tokens + sum(count for count in cached if type(count) is int)
    return Usage(input_tokens=read, output_tokens=usage.output_tokens)


ANTHROPIC_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"  # of the protocol, the only one so far
MAX_TOKENS = 4096  # the protocol wants a number; all models can write as much
MAX_TEMPERATURE = 1.0  # temperature; elsewhere 2
BAD_ANTHROPIC_KEY = "Check ANTHROPIC_API_KEY, or api_key in OPTIONS."
CURES = {
    400: chat.BAD_REQUEST_CURE,
    401: BAD_ANTHROPIC_KEY,
    403: BAD_ANTHROPIC_KEY,
    404: "Check the model's name and base_url.",
    413: "Send a shorter conversation.",
    429: "Ask less at once, or wait.",
    529: "Wait, or name another model.",
}


class AnthropicChat(RemoteChat):
    """`POST {base}/v1/messages`. A model's reasoning is not part of the answer."""

    path = "/messages"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC_URL,
        api_key: str | None = None,
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
        send_temperature: bool = True,
        extra: Mapping[str, object] | None = None,
        timeout: float = chat.TIMEOUT,
        attempts: int = chat.ATTEMPTS,
    ) -> None:
        """`api_key`: None takes ANTHROPIC_API_KEY from the environment, "" sends none.

        `extra` are further fields of every request, such as {"thinking": {"type": "disabled"}}; the
        rest is as for OpenAIChat. A temperature above 1 is sent as 1, and `top_p` only where there
        is no temperature: newer models refuse both at once. Raises BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                with_version(base_url),
                api_key=provider_key("Anthropic", api_key, base_url),
                key_header="x-api-key",
                headers={"anthropic-version": VERSION},
                cures=CURES,
                late=chat.LATE_CURE,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._extra = dict(extra or {})

    def _payload(self, wish: ChatRequest, *, stream: bool) -> dict[str, object]:
        cool = None if wish.temperature is None else min(wish.temperature, MAX_TEMPERATURE)
        return {
            **self._extra,
            **chat.without_empty(
                model=self.model_name,
                system=system_text(wish.messages) or None,
                messages=request_messages(wish.messages),
                **_tool_fields(wish),
                max_tokens=wish.max_tokens,
                temperature=cool,
                top_p=wish.top_p if cool is None else None,
                stop_sequences=[text for text in wish.stop if text.strip()],
                stream=True if stream else None,
            ),
        }

    def _is_last(self, event: str) -> bool:
        return "message_stop" in event and chat.has_field(event, "type", "message_stop")

    def _passing(self, first: str) -> RetryableError | None:
        return retryable_error(first, secrets=self._client.secrets)

    def _parse_answer(self, answer: Any) -> ChatMessage:
        return parse_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return parse_stream(events, secrets=self._client.secrets)


def _tool_fields(wish: ChatRequest) -> dict[str, object]:
    """The tools and the tool choice. Tools that were called before must be named, even if none may
    be called now.
    """
    called = dict.fromkeys(call.name for message in wish.messages for call in message.tool_calls)
    tools = list(wish.tools) or [{"name": name} for name in called]
    choice = wish.tool_choice if wish.tools else "none"
    if not tools:
        return {}
    return chat.without_empty(
        tools=request_tools(tools), tool_choice=request_tool_choice(choice) if choice else None
    )
