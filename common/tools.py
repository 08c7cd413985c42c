"""Tools of a chat model: description with JSON Schema, and one function to call them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from common.errors import NotFound, RagsiteError
from common.text import truncated

_MAX_QUOTED_CHARACTERS = 200
_MAX_CURE_CHARACTERS = 200

#: JSON Schema of a non-empty text.
TEXT_SCHEMA = {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. `parameters` is a JSON Schema; `writes` says whether it
    changes anything. `run` takes the caller's scope, never chosen by the model, and the arguments
    by keyword.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    writes: bool
    run: Callable[..., str]


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text returned to the model."""

    text: str
    is_error: bool = False


def tools_by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    """Tools by name, in the order shown to a model."""
    return {tool.name: tool for tool in tools}


def object_schema(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of the arguments; `required` lists the required names, separated by spaces."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def run_tool(
    tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any], *, scope: Any
) -> ToolAnswer:
    """Run one of `tools` with a model's arguments. Invalid arguments give an error answer.

    Raises NotFound for an unknown tool, and errors that no argument caused.
    """
    tool = tools.get(name)
    if tool is None:
        raise NotFound(f"There is no tool “{name}”. There are: {', '.join(tools)}.")
    wrong = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if wrong is not None:
        # The path of the invalid value, and what is expected there.
        where = "".join(f"{part}: " for part in wrong.absolute_path)
        meant = wrong.schema.get("description") if isinstance(wrong.schema, Mapping) else None
        cure = (
            meant or f"{tool.name} takes: {', '.join(tool.parameters['properties']) or 'nothing'}."
        )
        said = truncated(wrong.message, _MAX_QUOTED_CHARACTERS)
        text = f"Error: {where}{said}. {truncated(str(cure), _MAX_CURE_CHARACTERS)}"
        return ToolAnswer(text, is_error=True)
    try:
        return ToolAnswer(tool.run(scope=scope, **arguments))
    except RagsiteError as error:
        return ToolAnswer(f"Error: {error}", is_error=True)
