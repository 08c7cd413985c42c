"""Tools of a chat model: what each app says of its own, and the one way to call them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from common.errors import NotFound, RagsiteError
from common.wording import shortened

_WRONG_CHARACTERS = 200
_CURE_CHARACTERS = 200

#: JSON Schema of a text that says something.
TEXT = {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call. `parameters` is a JSON Schema; `writes` says whether it changes
    anything. `run` takes the scope, which is the caller's and never the model's, and those
    arguments by keyword."""

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


def by_name(tools: Iterable[Tool]) -> Mapping[str, Tool]:
    """In the order in which a model is shown them."""
    return {tool.name: tool for tool in tools}


def object_schema(required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of arguments; `required` names those that are needed."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def call(
    tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any], *, scope: Any
) -> ToolAnswer:
    """Run one of `tools` with what a model sent. What is wrong with that is an answer, too.

    Raises NotFound for a name that is no tool's, and what no argument is to blame for.
    """
    tool = tools.get(name)
    if tool is None:
        raise NotFound(f"There is no tool “{name}”. There are: {', '.join(tools)}.")
    wrong = best_match(Draft202012Validator(tool.parameters).iter_errors(arguments))
    if wrong is not None:
        return ToolAnswer(f"Error: {_told(wrong, tool)}", is_error=True)
    try:
        return ToolAnswer(tool.run(scope=scope, **arguments))
    except RagsiteError as error:
        return ToolAnswer(f"Error: {error}", is_error=True)


def _told(wrong: ValidationError, tool: Tool) -> str:
    """Where what is wrong, and what belongs there."""
    where = "".join(f"{part}: " for part in wrong.absolute_path)
    meant = wrong.schema.get("description") if isinstance(wrong.schema, Mapping) else None
    cure = meant or f"{tool.name} takes: {', '.join(tool.parameters['properties']) or 'nothing'}."
    said = f"{where}{shortened(wrong.message, _WRONG_CHARACTERS)}"
    return f"{said}. {shortened(str(cure), _CURE_CHARACTERS)}"
