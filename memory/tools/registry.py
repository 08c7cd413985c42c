"""The tools by name, each with what a model reads of it, and the one way to call them."""

from collections.abc import Mapping
from typing import Any

from common.tools import TEXT, Tool, ToolAnswer, by_name, object_schema
from common.tools import call as call_tool
from memory.scopes import UserScope
from memory.services.searching import MAX_QUERY_CHARACTERS
from memory.tools import contexts, facts

_KEY = {**TEXT, "description": "What the fact is about, in snake_case, such as favourite_color."}
_AS_OF = {
    "type": "string",
    "format": "date-time",
    "description": "A moment in the past, such as 2026-05-01T12:00:00Z. Default: now.",
}

_TOOLS = (
    Tool(
        "archive_turn",
        "Archive a turn of this conversation, so that it can be found in later ones.",
        object_schema(
            "user_message",
            user_message={**TEXT, "description": "What the user said, word for word."},
            assistant_response={"type": "string", "description": "What was answered."},
        ),
        writes=True,
        run=contexts.archive_turn,
    ),
    Tool(
        "search_memory",
        "Search what this user said in earlier conversations, by words and by meaning. Use it when"
        " the user refers to something that is not in this conversation.",
        object_schema(
            "query",
            query={
                **TEXT,
                "maxLength": MAX_QUERY_CHARACTERS,
                "description": "A question or some words.",
            },
            max_results={
                "type": "integer",
                "minimum": 1,
                "maximum": contexts.MAX_RESULTS,
                "default": 5,
                "description": "How many conversations at most.",
            },
        ),
        writes=False,
        run=contexts.search_memory,
    ),
    Tool(
        "store_memory",
        "Store a question with its answer, so that it can be found in later conversations.",
        object_schema(
            "question answer",
            question={**TEXT, "description": "The question."},
            answer={**TEXT, "description": "Its answer."},
        ),
        writes=True,
        run=contexts.store_memory,
    ),
    Tool(
        "clear_memory",
        "Forget every archived conversation in which the user said exactly this.",
        object_schema("question", question={**TEXT, "description": "What the user said."}),
        writes=True,
        run=contexts.clear_memory,
    ),
    Tool(
        "set_fact",
        "Note a durable fact about this user, such as where they live or what they prefer. A new"
        " value takes the place of the former one, which stays in the history.",
        object_schema("key value", key=_KEY, value={**TEXT, "description": "What is true."}),
        writes=True,
        run=facts.set_fact,
    ),
    Tool(
        "get_fact",
        "One fact about this user, as it is now or as it was at a moment.",
        object_schema("key", key=_KEY, as_of=_AS_OF),
        writes=False,
        run=facts.get_fact,
    ),
    Tool(
        "has_fact",
        "Whether a fact about this user is known.",
        object_schema("key", key=_KEY),
        writes=False,
        run=facts.has_fact,
    ),
    Tool(
        "get_all_facts",
        "All facts about this user by key, as they are now or as they were at a moment.",
        object_schema("", as_of=_AS_OF),
        writes=False,
        run=facts.get_all_facts,
    ),
    Tool(
        "clear_fact",
        "Note that a fact about this user is true no longer. It stays in the history.",
        object_schema("key", key=_KEY),
        writes=True,
        run=facts.clear_fact,
    ),
    Tool(
        "history",
        "All values that a fact about this user ever had, the latest first.",
        object_schema("key", key=_KEY),
        writes=False,
        run=facts.history,
    ),
)

#: In the order in which a model is shown them.
TOOLS = by_name(_TOOLS)


def call(name: str, arguments: Mapping[str, Any], *, scope: UserScope | None) -> ToolAnswer:
    """Run a tool with what a model sent: see `common.tools.call`."""
    return call_tool(TOOLS, name, arguments, scope=scope)
