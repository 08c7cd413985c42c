"""Conversations as Anthropic's Messages API is sent them.

https://docs.anthropic.com/en/api/messages
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from inference.base import ChatMessage, InferenceError
from inference.remote.tool_calls import arguments_sent
from inference.texts import sendable

Block = dict[str, object]
CHOICES = {"auto": "auto", "none": "none", "required": "any"}
# A conversation must begin with its user; this one was cut off at its start.
EARLIER = {"type": "text", "text": "(What was said before is left out.)"}


def sent_system(messages: Sequence[ChatMessage]) -> str:
    """What all system messages say: there it stands apart from the conversation."""
    texts = [message.content.strip() for message in messages if message.role == "system"]
    return sendable("\n\n".join(filter(None, texts)))


def sent(messages: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The turns of user and assistant by turns: messages of one side in a row become one.

    Raises InferenceError where nothing is left to be answered.
    """
    spoken = [message for message in messages if message.role != "system" and _blocks(message)]
    turns: list[dict[str, object]] = []
    for role, group in groupby(spoken, key=_side):
        blocks = [block for message in group for block in _blocks(message)]
        # Results of tools must stand before what else the user says.
        blocks.sort(key=lambda block: block["type"] != "tool_result")
        turns.append({"role": role, "content": blocks})
    if not turns:
        raise InferenceError("a conversation in which the user says nothing: pass a question.")
    if turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [EARLIER]})
    return turns


def sent_tools(tools: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    return [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "input_schema": tool.get("parameters") or {"type": "object"},
        }
        for tool in tools
    ]


def sent_choice(tool_choice: str) -> dict[str, object]:
    kind = CHOICES.get(tool_choice)
    return {"type": kind} if kind else {"type": "tool", "name": tool_choice}


def _side(message: ChatMessage) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _blocks(message: ChatMessage) -> list[Block]:
    """`message` in the parts that it has there; blank text would be refused."""
    text = sendable(message.content)
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": _sent_id(message.tool_call_id or "")}
        return [{**result, "content": text} if text.strip() else {**result}]
    if message.role == "assistant":
        text = text.rstrip()  # the last message may not end in a blank
    blocks: list[Block] = [{"type": "text", "text": text}] if text.strip() else []
    return blocks + [
        {
            "type": "tool_use",
            "id": _sent_id(call.id),
            "name": call.name,
            "input": arguments_sent(call),
        }
        for call in message.tool_calls
    ]


def _sent_id(number: str) -> str:
    """Ids of other makers' models may hold what is refused here."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", number) or "_"
