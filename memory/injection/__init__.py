"""What is remembered, put behind the last user message and told apart from it again.

Pure: no Django, no Celery, no database. The service that searches is `memory.services.inject`.
"""

from memory.injection.asking import asking_part
from memory.injection.budget import estimated_tokens, fit
from memory.injection.entries import Injected, Pair, Turn
from memory.injection.lookalikes import without_blocks
from memory.injection.messages import (
    Message,
    inject_into,
    last_user_index,
    strip_from,
    text_of_content,
)
from memory.injection.rendering import parse_block, render
from memory.injection.sealing import Keys, sealed_block, without_own_block

__all__ = [
    "Injected",
    "Keys",
    "Message",
    "Pair",
    "Turn",
    "asking_part",
    "estimated_tokens",
    "fit",
    "inject_into",
    "last_user_index",
    "parse_block",
    "render",
    "sealed_block",
    "strip_from",
    "text_of_content",
    "without_blocks",
    "without_own_block",
]
