"""Messages and tools of a request, read as chat models take them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from common.errors import InvalidInput
from inference.base import ChatMessage, ToolCall

Tool = Mapping[str, object]
ROLES: Mapping[str, Literal["system", "user", "assistant", "tool"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
CHOICES = ("auto", "none", "required")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
NO_PARAMETERS: Mapping[str, object] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a question out of documents is made of: the last message, those before it, and what the
    caller demands of the answer."""

    question: str
    history: tuple[ChatMessage, ...]
    instructions: str


def read_messages(given: list[Any]) -> list[ChatMessage]:
    """Raises InvalidInput with the place of what cannot be read."""
    return [_message(each, f"messages.{at}") for at, each in enumerate(given)]


def read_tools(given: list[Any]) -> list[Tool]:
    """Functions as {"name", "description", "parameters"}. Raises InvalidInput."""
    return [_tool(each, f"tools.{at}") for at, each in enumerate(given)]


def read_choice(given: Any, tools: list[Tool]) -> str | None:
    """ "auto", "none", "required", the name of one of `tools`, or None. Raises InvalidInput."""
    if given is None or given in CHOICES:
        return given if tools else None
    function = given.get("function") if isinstance(given, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name not in [tool["name"] for tool in tools]:
        raise InvalidInput(
            f"Choose {', '.join(CHOICES)}, or one of `tools` as {{“type”: “function”, “function”:"
            " {“name”: …}}.",
            field="tool_choice",
        )
    return str(name)


def conversation_of(messages: list[ChatMessage]) -> Conversation:
    """Raises InvalidInput where the last message is not the user's.

    What tools were asked and said is left out of the history: the answer rests on documents.
    """
    instructions = "\n\n".join(each.content for each in messages if each.role == "system")
    turns = [each for each in messages if each.role in ("user", "assistant") and each.content]
    if not messages or messages[-1].role != "user" or not messages[-1].content.strip():
        raise InvalidInput(
            "Out of documents the last message is answered, which must be the user's and hold"
            " text.",
            field="messages",
        )
    return Conversation(turns[-1].content, tuple(turns[:-1]), instructions)


def _message(given: Any, place: str) -> ChatMessage:
    role = ROLES.get(str(given.get("role"))) if isinstance(given, dict) else None
    if role is None:
        raise InvalidInput(
            f"A message is an object whose role is one of: {', '.join(ROLES)}.", field=place
        )
    calls = _calls(given.get("tool_calls") or [], f"{place}.tool_calls")
    return ChatMessage(
        role=role,
        content=_text(given.get("content"), f"{place}.content"),
        tool_calls=calls if role == "assistant" else (),
        tool_call_id=_call_id(given, place) if role == "tool" else None,
    )


def _text(content: Any, place: str) -> str:
    """Of a string, or of parts of text; "" for nothing, as beside tool calls."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidInput("Content is a text or a list of parts.", field=place)
    return "\n".join(_part(part, f"{place}.{at}") for at, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get({"text": "text", "refusal": "refusal"}.get(str(kind), "")) if kind else None
    if not isinstance(text, str):
        raise InvalidInput(
            f"Only parts of type “text” are read here, not “{str(kind)[:40]}”. Leave images, sound"
            " and files out.",
            field=place,
        )
    return text


def _calls(given: Any, place: str) -> tuple[ToolCall, ...]:
    if not isinstance(given, list):
        raise InvalidInput("This is a list of calls.", field=place)
    return tuple(_call(each, f"{place}.{at}") for at, each in enumerate(given))


def _call(given: Any, place: str) -> ToolCall:
    function = given.get("function") if isinstance(given, dict) else None
    fields = function if isinstance(function, dict) else {}
    parts = (given.get("id") if function else None, fields.get("name"), fields.get("arguments"))
    if not all(isinstance(part, str) for part in parts):
        raise InvalidInput(
            "A call has an `id`, and a `function` with `name` and `arguments`.", field=place
        )
    return ToolCall(*map(str, parts))


def _call_id(given: Mapping[str, Any], place: str) -> str:
    id = given.get("tool_call_id")
    if not isinstance(id, str):
        raise InvalidInput(
            "A message of a tool says which call it answers.", field=f"{place}.tool_call_id"
        )
    return id


def _tool(given: Any, place: str) -> Tool:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or given.get("type", "function") != "function":
        raise InvalidInput(
            "A tool is {“type”: “function”, “function”: {“name”: …, “parameters”: …}}.", field=place
        )
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput(
            "A name has up to 64 letters, digits, hyphens and underscores.",
            field=f"{place}.function.name",
        )
    if parameters is not None and not isinstance(parameters, dict):
        raise InvalidInput("This is a JSON schema.", field=f"{place}.function.parameters")
    return {
        "name": name,
        "description": str(function.get("description") or ""),
        "parameters": parameters or NO_PARAMETERS,
    }
