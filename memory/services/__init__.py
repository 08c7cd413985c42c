"""What can be done with a user's memory. Every function works on one scope, and on no other."""

from memory.extraction.recording import QueueFull, Recorded
from memory.services.contexts import (
    archive_turn,
    clear_memory,
    forget_contexts,
    store_memory,
)
from memory.services.extraction import record_messages, retry_extractions
from memory.services.facts import (
    clear_fact,
    forget_fact,
    get_all_facts,
    get_fact,
    has_fact,
    history,
    set_fact,
)
from memory.services.injecting import Injection, inject, strip_injected
from memory.services.portability import Erased, erase_memory, export_memory
from memory.services.quotas import Usage, prune, usage
from memory.services.searching import (
    FactHit,
    MemoryHit,
    MemoryResult,
    rank_facts,
    search_memory,
)
from memory.storing.contexts import Archived
from memory.storing.facts import FactChange, TooManyFacts

__all__ = [
    "Archived",
    "Erased",
    "FactChange",
    "FactHit",
    "Injection",
    "MemoryHit",
    "MemoryResult",
    "QueueFull",
    "Recorded",
    "TooManyFacts",
    "Usage",
    "archive_turn",
    "clear_fact",
    "clear_memory",
    "erase_memory",
    "export_memory",
    "forget_contexts",
    "forget_fact",
    "get_all_facts",
    "get_fact",
    "has_fact",
    "history",
    "inject",
    "prune",
    "rank_facts",
    "record_messages",
    "retry_extractions",
    "search_memory",
    "set_fact",
    "store_memory",
    "strip_injected",
    "usage",
]
