"""Tools of a chat model: functions whose signature and docstring say what a model is told. Begin
with `tools_by_name` and `run_tool`.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, get_type_hints

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import Field

from common.errors import NotFound, RagsiteError
from common.options import Options, option_fields
from common.options.schema import json_schema, option_schemas
from common.text import truncated
from common.translation import gettext

_MAX_QUOTED_CHARACTERS = 200
_MAX_CURE_CHARACTERS = 200

ToolFamily = Literal["documents", "memory", "graph"]


@dataclass(frozen=True)
class Tool:
    """A function that a model may call. `run` takes the caller's scope, never chosen by the model,
    and the arguments by keyword. `writes` says whether it changes anything."""

    family: ToolFamily
    run: Callable[..., str]
    writes: bool

    @property
    def name(self) -> str:
        return self.run.__name__

    @cached_property
    def description(self) -> str:
        """What a model is told of it: its docstring, on one line."""
        return " ".join((self.run.__doc__ or "").split())

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments, from their annotations."""
        hints = get_type_hints(self.run, include_extras=True)
        required: list[str] = []
        properties: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.run).parameters.items():
            if name == "scope":
                continue
            if _is_options(hints[name]):
                properties |= option_schemas(hints[name])
                fields = option_fields(hints[name]).values()
                required += [field.name for field in fields if field.is_required]
                continue
            properties[name] = json_schema(hints[name])
            if parameter.default is parameter.empty:
                required.append(name)
            elif parameter.default not in (None, "", ()):
                properties[name]["default"] = parameter.default
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def call(self, scope: Any, arguments: Mapping[str, Any]) -> str:
        """Run it, with arguments that fit `parameters`."""
        given = dict(arguments)
        for argument, model in get_type_hints(self.run).items():
            if _is_options(model):
                names = given.keys() & option_fields(model).keys()
                given[argument] = model.pick(
                    {name: _without_fraction(given.pop(name)) for name in names}
                )
        return self.run(scope=scope, **given)


def _is_options(hint: Any) -> bool:
    """Whether callers of a tool give the fields of this argument by name."""
    return isinstance(hint, type) and issubclass(hint, Options)


def _without_fraction(value: Any) -> Any:
    """JSON has one kind of numbers: 9.0 is the integer 9."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def nonempty(description: str, *, most: int | None = None) -> Any:
    """What annotates an argument that is a text, not empty and of at most `most` characters."""
    return Field(min_length=1, max_length=most, description=description)


def between(least: float, most: float, description: str) -> Any:
    """What annotates an argument that is a number."""
    return Field(ge=least, le=most, description=description)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text returned to the model."""

    text: str
    is_error: Annotated[
        bool, "Whether the tool did nothing; the text then says why, and the cure."
    ] = False


def tools_by_name(
    family: ToolFamily,
    runs: Iterable[Callable[..., str]],
    *,
    writing: Collection[Callable[..., str]],
) -> dict[str, Tool]:
    """Tools by name, in the order shown to a model; `writing` are those that change something."""
    return {run.__name__: Tool(family, run, run in writing) for run in runs}


#: Former names of arguments, which are still accepted.
_FORMER_ARGUMENTS = {"top_k": "k", "max_results": "k"}


def run_tool(
    tools: Mapping[str, Tool],
    name: str,
    arguments: Mapping[str, Any],
    *,
    scope: Any,
    scope_for: Callable[[Tool, Any], Any] = lambda tool, scope: scope,
) -> ToolAnswer:
    """Run one of `tools` with a model's arguments. Invalid arguments give an error answer.
    `scope_for` makes the tool's scope of the caller's.

    Raises NotFound for an unknown tool, and errors that no argument caused.
    """
    tool = tools.get(name)
    if tool is None:
        raise NotFound(
            gettext("The tool “{name}” does not exist. Choose one of: {tools}.").format(
                name=name, tools=", ".join(tools)
            )
        )
    if isinstance(arguments, Mapping):  # a model may send anything
        arguments = {_FORMER_ARGUMENTS.get(name, name): each for name, each in arguments.items()}
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
        return ToolAnswer(tool.call(scope_for(tool, scope), arguments))
    except RagsiteError as error:
        return ToolAnswer(f"Error: {error}", is_error=True)
