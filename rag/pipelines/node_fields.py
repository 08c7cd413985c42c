"""The nodes of a definition, read from JSON."""

from collections.abc import Callable, Collection
from typing import Any, Protocol

from rag.pipelines.conditions import ConditionError, parse
from rag.pipelines.definition import MAX_TOKENS, TEMPERATURE, ModelOptions, Node, Worker
from rag.pipelines.faults import Faults
from rag.pipelines.fields import NODE_ID, Reader, is_node_id
from rag.pipelines.kinds import KINDS, Kind, Option
from rag.pipelines.limits import (
    MAX_CONDITION_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_PROMPT_CHARACTERS,
    MAX_TIMEOUT,
    MAX_TOOLS,
    MAX_TURNS,
    MAX_WORKERS,
)

MODEL_FIELDS = ("name", "temperature", "max_tokens", "top_p")
WORKER_FIELDS = ("name", "prompt", "tools")
MOST_TOKENS = 200_000
#: Of a type that is not known, so that its other fields are looked at, too.
_UNKNOWN = Kind("", "", "never", tools=True, turns=1)


class Site(Protocol):
    """See `rag.pipelines.parsing.Site`."""

    @property
    def tools(self) -> Collection[str] | None: ...

    @property
    def model_fault(self) -> Callable[[str], str]: ...


def read_node(value: Any, path: str, faults: Faults, site: Site) -> Node:
    """One of `nodes`. What is wrong is in `faults`."""
    given = value.get("type") if isinstance(value, dict) else None
    kind = KINDS.get(given, _UNKNOWN) if isinstance(given, str) else _UNKNOWN
    known = kind.fields if kind.name else _all_fields()
    reader = Reader(value, path, faults, known=known, cure=_who_takes)
    if not kind.name:
        reader.fault("type", f"“{given}” is no type of node. There are: {', '.join(KINDS)}.")
    id = reader.text("id", most=MAX_ID_CHARACTERS, required=True)
    if id and not is_node_id(id):
        reader.fault("id", f"An id is {NODE_ID}.")
    return Node(
        id=id,
        type=kind.name,
        prompt=reader.text("prompt", most=MAX_PROMPT_CHARACTERS) if kind.prompt else "",
        model=_model(reader, faults, site) if "model" in known else ModelOptions(),
        tools=_tools(reader, site) if kind.tools else (),
        max_iter=reader.integer("max_iter", 1, MAX_TURNS, default=kind.turns) if kind.turns else 0,
        timeout=reader.number("timeout", 1, MAX_TIMEOUT, default=None),
        options={option.name: _option(reader, option, faults, site) for option in kind.options},
    )


def _who_takes(name: str) -> str:
    takers = [kind.name for kind in KINDS.values() if name in kind.fields]
    return f"It belongs to a node of type {' or '.join(takers)}." if takers else ""


def _all_fields() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.fields))


def _model(reader: Reader, faults: Faults, site: Site) -> ModelOptions:
    if not reader.has("model"):
        return ModelOptions()
    model = Reader(reader.raw("model"), reader.at("model"), faults, known=MODEL_FIELDS)
    name = model.text("name", most=200)
    if problem := site.model_fault(name) if name else "":
        model.fault("name", problem)
    return ModelOptions(
        name=name,
        temperature=model.number("temperature", 0, 2, default=TEMPERATURE),
        max_tokens=model.integer("max_tokens", 1, MOST_TOKENS, default=MAX_TOKENS),
        top_p=model.number("top_p", 0.001, 1, default=None),
    )


def _tools(reader: Reader, site: Site) -> tuple[str, ...]:
    found: list[str] = []
    for at, name in enumerate(reader.items("tools", most=MAX_TOOLS)):
        place = f"tools.{at}"
        if not isinstance(name, str):
            reader.fault(place, "A tool is given by its name.")
        elif site.tools is not None and name not in site.tools:
            known = ", ".join(sorted(site.tools))
            reader.fault(place, f"There is no tool “{name[:60]}”. There are: {known}.")
        elif name in found:
            reader.fault(place, f"“{name}” is listed twice.")
        else:
            found.append(name)
    return tuple(found)


def _option(reader: Reader, option: Option, faults: Faults, site: Site) -> Any:
    name = option.name
    match option.kind:
        case "number":
            return reader.number(name, option.low, option.high, default=option.default)
        case "integer":
            return reader.integer(name, int(option.low), int(option.high), default=option.default)
        case "choice":
            return reader.choice(name, option.choices, default=option.default)
        case "workers":
            return _workers(reader, name, faults, site)
        case "condition":
            text = reader.text(name, most=MAX_CONDITION_CHARACTERS, required=option.required)
            _check_condition(reader, name, text)
            return text
        case _:
            return reader.text(name, most=int(option.high), default=option.default)


def _check_condition(reader: Reader, name: str, text: str) -> None:
    if not text.strip():
        return
    try:
        names = parse(text).names
    except ConditionError as error:
        reader.fault(name, str(error))
        return
    for unknown in sorted(names & {"score", "passed"}):
        reader.fault(name, f"A gate looks at what it is given, and that has no {unknown}.")


def _workers(reader: Reader, name: str, faults: Faults, site: Site) -> tuple[Worker, ...]:
    found: dict[str, Worker] = {}
    for at, value in enumerate(reader.items(name, most=MAX_WORKERS)):
        one = Reader(value, reader.at(f"{name}.{at}"), faults, known=WORKER_FIELDS)
        called = one.text("name", most=MAX_ID_CHARACTERS, required=True)
        if called and not is_node_id(called):
            one.fault("name", f"A name is {NODE_ID}.")
        if called in found:
            one.fault("name", f"There is another worker “{called}”.")
        prompt = one.text("prompt", most=MAX_PROMPT_CHARACTERS)
        found.setdefault(called, Worker(called, prompt, _tools(one, site)))
    if not found:
        reader.fault(name, "A coordinator has one worker at least: {“name”: …, “tools”: […]}.")
    return tuple(found.values())
