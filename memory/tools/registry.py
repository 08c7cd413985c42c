"""The tools by name, each with what a model reads of it, and the one way to call them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from common.errors import NotFound, RagsiteError
from memory.scopes import UserScope
from memory.services.searching import MAX_QUERY_CHARACTERS
from memory.tools import contexts, facts
from memory.tools.wording import shortened

_WRONG_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call. `parameters` is a JSON Schema; `writes` says whether it changes
    anything. `run` takes the scope and those arguments by keyword."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    writes: bool
    run: Callable[..., str]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the model is told."""

    text: str
    is_error: bool = False


def call(name: str, arguments: Mapping[str, Any], *, scope: UserScope | None) -> ToolAnswer:
    """Run a tool with what a model sent. What is wrong with that is an answer, too.

    Raises NotFound for a name that is no tool's, and what no argument is to blame for.
    """
    tool = TOOLS.get(name)
    if tool is None:
        raise NotFound(f"There is no memory tool “{name}”. There are: {', '.join(TOOLS)}.")
    wrong = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if wrong is not None:
        where = "".join(f"{part}: " for part in wrong.absolute_path)
        return ToolAnswer(
            f"Error: {where}{shortened(wrong.message, _WRONG_CHARACTERS)}", is_error=True
        )
    try:
        return ToolAnswer(tool.run(scope=scope, **arguments))
    except RagsiteError as error:
        return ToolAnswer(f"Error: {error}", is_error=True)


_TEXT = {"type": "string", "minLength": 1}
_KEY = {**_TEXT, "description": "What the fact is about, in snake_case, such as favourite_color."}
_AS_OF = {
    "type": "string",
    "format": "date-time",
    "description": "A moment in the past, such as 2026-05-01T12:00:00Z. Default: now.",
}


def _schema(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


_TOOLS = (
    Tool(
        "archive_turn",
        "Archive a turn of this conversation, so that it can be found in later ones.",
        _schema(
            "user_message",
            user_message={**_TEXT, "description": "What the user said, word for word."},
            assistant_response={"type": "string", "description": "What was answered."},
        ),
        writes=True,
        run=contexts.archive_turn,
    ),
    Tool(
        "search_memory",
        "Search what this user said in earlier conversations, by words and by meaning. Use it when"
        " the user refers to something that is not in this conversation.",
        _schema(
            "query",
            query={
                **_TEXT,
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
        _schema(
            "question answer",
            question={**_TEXT, "description": "The question."},
            answer={**_TEXT, "description": "Its answer."},
        ),
        writes=True,
        run=contexts.store_memory,
    ),
    Tool(
        "clear_memory",
        "Forget every archived conversation in which the user said exactly this.",
        _schema("question", question={**_TEXT, "description": "What the user said."}),
        writes=True,
        run=contexts.clear_memory,
    ),
    Tool(
        "set_fact",
        "Note a durable fact about this user, such as where they live or what they prefer. A new"
        " value takes the place of the former one, which stays in the history.",
        _schema("key value", key=_KEY, value={**_TEXT, "description": "What is true."}),
        writes=True,
        run=facts.set_fact,
    ),
    Tool(
        "get_fact",
        "One fact about this user, as it is now or as it was at a moment.",
        _schema("key", key=_KEY, as_of=_AS_OF),
        writes=False,
        run=facts.get_fact,
    ),
    Tool(
        "has_fact",
        "Whether a fact about this user is known.",
        _schema("key", key=_KEY),
        writes=False,
        run=facts.has_fact,
    ),
    Tool(
        "get_all_facts",
        "All facts about this user by key, as they are now or as they were at a moment.",
        _schema("", as_of=_AS_OF),
        writes=False,
        run=facts.get_all_facts,
    ),
    Tool(
        "clear_fact",
        "Note that a fact about this user is true no longer. It stays in the history.",
        _schema("key", key=_KEY),
        writes=True,
        run=facts.clear_fact,
    ),
    Tool(
        "history",
        "All values that a fact about this user ever had, the latest first.",
        _schema("key", key=_KEY),
        writes=False,
        run=facts.history,
    ),
)

#: By name, in the order in which a model is shown them.
TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TOOLS}
