"""Calls of functions out of a stream, where they come in pieces."""

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from inference.base import MalformedAnswer, ToolCall
from inference.texts import sendable

NAMELESS = "the answer's `tool_calls` are no functions with a name: update the server."


@dataclass(slots=True)
class _Growing:
    id: str = ""
    name: str = ""
    arguments: str = ""


class GrowingCalls:
    """Puts pieces of calls together; `key` tells which call a piece is of."""

    def __init__(self) -> None:
        self._calls: list[_Growing] = []
        self._by_key: dict[Hashable, _Growing] = {}

    def add(self, key: Hashable, *, id: str = "", name: str = "", arguments: str = "") -> None:
        """A piece. An id that differs from the call's begins another one: some servers number all
        calls 0."""
        call = self._by_key.get(key)
        if call is None or (id and call.id and id != call.id):
            call = self._by_key[key] = _Growing()
            self._calls.append(call)
        call.id = call.id or id
        call.name = call.name or name
        call.arguments += arguments

    def whole(self) -> tuple[ToolCall, ...]:
        """The calls, in the order in which they began. Raises MalformedAnswer for one without a
        name."""
        if not all(call.name for call in self._calls):
            raise MalformedAnswer(NAMELESS)
        return distinct([ToolCall(call.id, call.name, call.arguments) for call in self._calls])


def arguments_sent(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call that is sent back, for protocols in which they are an object: what a
    model wrote that is none becomes a field of one."""
    try:
        arguments = json.loads(sendable(call.arguments))
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {"arguments": sendable(call.arguments)}


def distinct(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """`calls` with an id for each that has none of its own, and {} for no arguments at all."""
    seen: set[str] = set()
    told_apart = []
    for call in calls:
        own = call.id if call.id and call.id not in seen else f"call_{uuid4().hex[:24]}"
        seen.add(own)
        told_apart.append(
            ToolCall(own, call.name, call.arguments if call.arguments.strip() else "{}")
        )
    return tuple(told_apart)
