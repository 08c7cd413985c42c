"""A block's tag: how we know our own blocks from what a user typed or pasted. Pure.

The tag is a keyed digest of the block and of the text before it. Nobody without the key can write
one that holds, and one that was copied behind other words does not hold there. It has no time and
no chance in it: the same question with the same memory gives the same text, which prompt caches
like. Why so: docs/decisions/0026.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256

from memory.injection.entries import Injected
from memory.injection.rendering import TAG_LENGTH, find_block, render, render_body

#: The first signs; those that signed before it are still recognised.
Keys = Sequence[bytes]


def sealed_block(injected: Injected, *, before: str, keys: Keys) -> str:
    """The block that goes behind the text `before`; empty for nothing."""
    return render(injected, tag=_tag(keys[0], before, render_body(injected)))


def without_own_block(text: str, *, keys: Keys) -> str:
    """`text` as its user wrote it: without the block at its end, if one of `keys` made it for this
    very text, and unchanged otherwise."""
    block = find_block(text)
    if block is None or not any(
        hmac.compare_digest(block.tag, _tag(key, block.before, block.body)) for key in keys
    ):
        return text
    return block.before


def _tag(key: bytes, before: str, body: str) -> str:
    # Clients may send half a surrogate pair, which UTF-8 proper has no bytes for.
    parts = [part.encode("utf-8", "surrogatepass") for part in (before, body)]
    signed = b"%d:" % len(parts[0]) + b"".join(parts)
    return hmac.new(key, signed, sha256).hexdigest()[:TAG_LENGTH]
