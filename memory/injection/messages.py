"""Blocks in a conversation: put into the last user message, and taken out of all. Pure.

Messages are mappings as OpenAI's API has them, their content a text or a list of parts. Nothing is
changed in place; what need not change comes back as the same object.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from memory.injection.entries import Injected
from memory.injection.sealing import Keys, sealed_block, without_own_block

Message = Mapping[str, Any]


def inject_into(messages: Sequence[Message], injected: Injected, *, keys: Keys) -> list[Message]:
    """`messages` with the block behind the last user message, after a blank line.

    A list of parts gets it as a text part of its own. A block of ours that is there already, from
    an earlier request, is replaced; earlier messages are left as they came, whatever they hold.
    """
    at = last_user_index(messages)
    if at is None or not injected:
        return list(messages)
    own = _stripped(messages[at]["content"], keys)
    block = sealed_block(injected, before=text_of_content(own), keys=keys)
    content = own + block if isinstance(own, str) else [*own, {"type": "text", "text": block}]
    return [*messages[:at], {**messages[at], "content": content}, *messages[at + 1 :]]


def strip_from(messages: Sequence[Message], *, keys: Keys) -> list[Message]:
    """`messages` as their users wrote them: without our own blocks, to the byte.

    What only looks like a block stays, and so does a block whose message was changed after it was
    put there. `strip_from(inject_into(m)) == strip_from(m)`, which is `m` itself unless it came
    with a block of ours.
    """
    return [_stripped_message(message, keys) for message in messages]


def last_user_index(messages: Sequence[Message]) -> int | None:
    """Where the last user message is; None where there is none, or none with text or parts."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].get("role") == "user":
            return at if isinstance(messages[at].get("content"), (str, list)) else None
    return None


def text_of_content(content: object) -> str:
    """What a message says: its text, or that of its text parts; empty for anything else."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if _is_text(part))


def _stripped_message(message: Message, keys: Keys) -> Message:
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, (str, list)):
        return message
    own = _stripped(content, keys)
    return message if own is content else {**message, "content": own}


def _stripped(content: Any, keys: Keys) -> Any:
    """Content without our block; the same object if it has none."""
    text = text_of_content(content)
    own = without_own_block(text, keys=keys)
    if own == text:
        return content
    if isinstance(content, str):
        return own
    return _without_end(content, len(text) - len(own))


def _without_end(parts: list[Any], length: int) -> list[Any]:
    """Parts without the last `length` characters of their text, where one part holds them all.

    A client that turned a text into parts leaves our block at the end of the user's own part.
    """
    at = max(index for index, part in enumerate(parts) if _is_text(part))
    text = parts[at]["text"]
    if len(text) < length:
        return parts
    rest = [{**parts[at], "text": text[:-length]}] if len(text) > length else []
    return [*parts[:at], *rest, *parts[at + 1 :]]


def _is_text(part: object) -> bool:
    return (
        isinstance(part, Mapping)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
    )
