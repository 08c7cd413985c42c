"""Anthropic's Messages API.

https://docs.anthropic.com/en/api/messages
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from inference.interfaces import (
    ChatMessage,
    ChatOptions,
    InferenceError,
    MalformedAnswer,
    replace_surrogates,
)
from inference.remote import chat
from inference.remote.chat import Fields, PartialAnswer, RemoteChat, text_field
from inference.remote.client import JsonClient, provider_key, with_version

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


# Of an answer's tokens; those read from and written to the cache are input too.
USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
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
    """`POST {base}/v1/messages`. A model's reasoning is no part of the answer."""

    path = "/messages"
    protocol = "Anthropic's protocol"
    last_field = ("type", "message_stop")

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
        context_tokens: int | None = None,
        transport: chat.Transport | None = None,
    ) -> None:
        """`api_key`: None takes ANTHROPIC_API_KEY from the environment, "" sends none.

        `extra` are further fields of every request, such as {"thinking": {"type": "disabled"}}; the
        rest is as for OpenAIChat. A temperature above 1 is sent as 1, and `top_p` only where there
        is no temperature: newer models refuse both at once. Raises BackendUnavailable.
        """
        super().__init__(
            JsonClient(
                with_version(base_url),
                api_key=provider_key("Anthropic", api_key, base_url),
                key_header="x-api-key",
                headers={"anthropic-version": VERSION},
                cures=CURES,
                late=chat.LATE_CURE,
                transport=transport,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
            context_tokens=context_tokens,
        )
        self._extra = dict(extra or {})

    def _payload(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, stream: bool
    ) -> dict[str, object]:
        cool = None if (wished := options["temperature"]) is None else min(wished, MAX_TEMPERATURE)
        # Tools that were called before must be named, even if none may be called now.
        called = dict.fromkeys(call.name for message in messages for call in message.tool_calls)
        tools = list(options["tools"]) or [{"name": name} for name in called]
        choice = options["tool_choice"] if options["tools"] else "none"
        return {
            **self._extra,
            **chat.without_empty(
                model=self.model_name,
                system=system_text(messages) or None,
                messages=request_messages(messages),
                tools=request_tools(tools),
                tool_choice=request_tool_choice(choice) if tools and choice else None,
                max_tokens=options["max_tokens"],
                temperature=cool,
                top_p=options["top_p"] if cool is None else None,
                stop_sequences=[text for text in options["stop"] if text.strip()],
                stream=True if stream else None,
            ),
        }

    @staticmethod
    def read(fields: Fields, answer: PartialAnswer) -> None:
        """An event of a stream, or a complete answer. Unknown kinds are skipped."""
        if answer.is_complete:
            blocks = fields.get("content")
            if not isinstance(blocks, list) or not all(isinstance(each, dict) for each in blocks):
                raise MalformedAnswer(
                    "the answer holds no list `content`: is base_url that of a server of"
                    " Anthropic's protocol?"
                )
            answer.finish_reason = text_field(fields, "stop_reason")
            answer.count_usage(fields.get("usage"), *USAGE)
            for at, block in enumerate(blocks):
                _read_block(at, block, answer)
            return
        if not isinstance(fields.get("type"), str):
            raise MalformedAnswer(
                "an event of the stream has no type: is base_url that of a server of Anthropic's"
                " protocol?"
            )
        match fields["type"]:
            case "message_start":
                answer.count_usage(_object(_object(fields, "message"), "usage"), *USAGE)
            case "content_block_start":
                _read_block(fields.get("index"), _object(fields, "content_block"), answer)
            case "content_block_delta":
                delta = _object(fields, "delta")
                if delta.get("type") == "input_json_delta":
                    answer.add_arguments(fields.get("index"), text_field(delta, "partial_json"))
                if delta.get("type") == "text_delta":
                    answer.add_text(text_field(delta, "text"))
                if delta.get("type") == "thinking_delta":
                    answer.add_reasoning(text_field(delta, "thinking"))
            case "message_delta":
                answer.count_usage(_object(fields, "usage"), *USAGE)
                reason = text_field(_object(fields, "delta"), "stop_reason")
                answer.finish_reason = reason or answer.finish_reason
            case "message_stop":
                answer.has_ended = True


def _read_block(index: object, block: Fields, answer: PartialAnswer) -> None:
    """A text, reasoning, or a tool call whose arguments may come later."""
    if block.get("type") == "tool_use":
        given = block.get("input")
        answer.add_call(
            index,
            id=text_field(block, "id"),
            name=block.get("name"),
            arguments=json.dumps(given, ensure_ascii=False) if given else "",
        )
    if block.get("type") == "text":
        answer.add_text(text_field(block, "text"))
    if block.get("type") == "thinking":
        answer.add_reasoning(text_field(block, "thinking"))


def _object(fields: Fields, key: str) -> dict[str, Any]:
    """{} where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, dict):
        raise MalformedAnswer(f"the answer's {key!r} is no object: update the server.")
    return value or {}
