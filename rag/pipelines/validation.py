"""Read a pipeline definition from JSON and report every fault with its path; the shipped templates.
Begin with `parse_definition`. Without Django.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from common import bounded_json
from common.errors import InvalidInput
from common.text import truncated
from rag.pipelines.conditions import NODE_TYPES_WITH_NAME, ConditionError, parse_condition
from rag.pipelines.definition import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TEMPERATURE,
    EDGE_TYPES,
    MAX_CONDITION_CHARACTERS,
    MAX_DESCRIPTION_CHARACTERS,
    MAX_EDGES,
    MAX_ID_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_NODES,
    MAX_PROMPT_CHARACTERS,
    MAX_ROUNDS,
    MAX_TIMEOUT,
    MAX_TOOLS,
    MAX_TURNS,
    MAX_WORKERS,
    NODE_TYPES,
    Definition,
    Edge,
    EdgeType,
    Fault,
    FaultList,
    ModelOptions,
    Node,
    NodeOption,
    NodeType,
    PipelineError,
    Worker,
    check_structure,
)

_NODE_ID_PATTERN = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{MAX_ID_CHARACTERS - 1}}}")
_SLUG_PATTERN = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{MAX_ID_CHARACTERS - 1}}}")
NODE_ID_FORMAT = f"a letter, then letters, digits, _ and -, at most {MAX_ID_CHARACTERS} together"
SLUG_FORMAT = f"small letters, digits and -, at most {MAX_ID_CHARACTERS} together"


def is_node_id(value: Any) -> bool:
    """Whether it is a valid node id."""
    return isinstance(value, str) and _NODE_ID_PATTERN.fullmatch(value) is not None


class FieldReader:
    """Reads the fields of one JSON object at `path`. Invalid values are reported, and a default is
    returned so that the rest is checked too."""

    def __init__(
        self,
        value: Any,
        path: str,
        faults: FaultList,
        *,
        known: Sequence[str],
        cure: Callable[[str], str] = lambda name: "",
    ) -> None:
        """`cure` returns, for an unknown field, where it belongs, "" for nowhere."""
        self._path = path
        self._faults = faults
        self._values: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            faults.add(path, f"This must be an object with {', '.join(known)}.")
        for name in self._values:
            if name not in known:
                message = (
                    f"This field is not known here. Known are: {', '.join(known)}. {cure(name)}"
                )
                self.fault(name, message.rstrip())

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self._path}.{name}" if self._path else name

    def fault(self, name: str, message: str) -> None:
        """Report a fault of a field."""
        self._faults.add(self.at(name), message)

    def has(self, name: str) -> bool:
        """Whether it is given and not null."""
        return self._values.get(name) is not None

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def text(self, name: str, *, most: int, default: str = "", required: bool = False) -> str:
        """A string of at most `most` characters."""
        value = self._values.get(name)
        if value is None:
            value = default
        if not isinstance(value, str):
            self.fault(name, "This must be a text.")
            return default
        if required and not value.strip():
            self.fault(name, "This is missing.")
        if len(value) > most:
            self.fault(name, f"At most {most:,} characters, and here are {len(value):,}.")
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str) -> str:
        """One of `choices`, or the default."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in choices:
            text = truncated(value if isinstance(value, str) else repr(value), 60)
            self.fault(name, f"“{text}” is none of {', '.join(choices)}.")
            return default
        return str(value)

    def number(
        self, name: str, low: float, high: float, *, default: Any, integer: bool = False
    ) -> Any:
        """A number from `low` to `high`; with `integer` a whole one."""
        value = self._values.get(name)
        if value is None:
            return default
        is_number = isinstance(value, int if integer else int | float)
        if not is_number or isinstance(value, bool) or not low <= value <= high:
            kind = "whole number" if integer else "number"
            self.fault(name, f"This must be a {kind} from {low:g} to {high:g}.")
            return default
        return value if integer else float(value)

    def items(self, name: str, *, most: int) -> list[Any]:
        """The entries of a list."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, "This must be a list.")
            return []
        if len(value) > most:
            self.fault(name, f"At most {most}, and here are {len(value)}.")
        return value[:most]


EDGE_FIELDS = ("from", "to", "type", "condition", "name", "max_iter")


def read_edges(definition: FieldReader, types: Mapping[str, str], faults: FaultList) -> list[Edge]:
    """Read all of `edges`, between nodes of these `types` by id; faults are added to `faults`."""
    edges: list[Edge] = []
    taken: set[tuple[str, str, bool]] = set()
    routes: set[tuple[str, str]] = set()
    for at, value in enumerate(definition.items("edges", most=MAX_EDGES)):
        reader = FieldReader(value, f"edges.{at}", faults, known=EDGE_FIELDS)
        edge = _read_edge(reader, types)
        ends = (edge.source, edge.target, edge.type == "loop")
        if ends in taken:
            faults.add(
                f"edges.{at}",
                f"Another edge leads from “{edge.source}” to “{edge.target}”. Join their conditions"
                " by “or”.",
            )
        taken.add(ends)
        if types.get(edge.source) == "router":
            if (edge.source, edge.route) in routes:
                reader.fault("name", f"The router has another edge called “{edge.route}”.")
            routes.add((edge.source, edge.route))
        edges.append(edge)
    for at, (id, type) in enumerate(types.items()):
        if type == "router" and not any(edge.source == id for edge in edges):
            faults.add(f"nodes.{at}", f"The router “{id}” has no edge to choose. Add some.")
    return edges


def _read_edge(reader: FieldReader, types: Mapping[str, str]) -> Edge:
    for end in ("from", "to"):
        id = reader.text(end, most=MAX_ID_CHARACTERS, required=True)
        if id and id not in types:
            known = ", ".join(types) or "none"
            reader.fault(end, f"There is no node “{id}”. There are: {known}.")
    edge = Edge(
        source=_text_or_empty(reader, "from"),
        target=_text_or_empty(reader, "to"),
        type=cast("EdgeType", reader.choice("type", EDGE_TYPES, default="direct")),
        condition=reader.text("condition", most=MAX_CONDITION_CHARACTERS).strip(),
        name=reader.text("name", most=MAX_NAME_CHARACTERS).strip(),
        max_iter=reader.number("max_iter", 1, MAX_ROUNDS, default=None, integer=True),
    )
    _check_edge_condition(reader, edge, types.get(edge.source, ""))
    if edge.type != "loop" and edge.max_iter is not None:
        reader.fault("max_iter", "Only loops have rounds. Leave it out, or make it a loop.")
    return edge


def _text_or_empty(reader: FieldReader, name: str) -> str:
    value: Any = reader.raw(name)
    return value if isinstance(value, str) else ""


def _check_edge_condition(reader: FieldReader, edge: Edge, type: str) -> None:
    if type == "router":
        if edge.type == "loop":
            reader.fault("type", "A router does not lead back. Let a gate or an evaluator do it.")
        elif edge.condition:
            reader.fault("condition", "A router chooses by name: give the edge a name instead.")
        return
    if edge.name:
        reader.fault("name", "Only the edges of a router have names. Leave it out.")
    if edge.type == "conditional" and not edge.condition:
        reader.fault("condition", "A conditional edge needs one, such as: output contains “yes”.")
    if edge.type == "direct" and edge.condition:
        reader.fault("condition", "A direct edge has none. Make the edge conditional.")
    for name in sorted(_condition_names(reader, "condition", edge.condition)):
        if type not in NODE_TYPES_WITH_NAME.get(name, (type,)):
            reader.fault(
                "condition",
                f"A node of type {type} has no {name}. Put a node of type"
                f" {' or '.join(NODE_TYPES_WITH_NAME[name])} before this edge.",
            )


def _condition_names(reader: FieldReader, field: str, text: str) -> frozenset[str]:
    """The names in a condition; a fault is reported if it cannot be parsed."""
    try:
        return parse_condition(text)[1] if text.strip() else frozenset()
    except ConditionError as error:
        reader.fault(field, str(error))
        return frozenset()


DEFINITION_FIELDS = ("id", "name", "description", "nodes", "edges", "entry_node", "timeout")


@dataclass(frozen=True, slots=True)
class SiteCapabilities:
    """The tools and models that a definition may name. `tools` None means they are not
    checked; `model_fault` returns what is wrong with a chat model's name, "" for nothing."""

    tools: Collection[str] | None = None
    model_fault: Callable[[str], str] = lambda name: ""


ANY_SITE = SiteCapabilities()


def parse_definition(value: Any, *, site: SiteCapabilities = ANY_SITE) -> Definition:
    """Parse and validate the JSON `value`. Raises PipelineError with all faults."""
    try:
        bounded_json.check(value)
    except InvalidInput as error:
        raise PipelineError([Fault(error.field, str(error))]) from error
    faults = FaultList()
    reader = FieldReader(value, "", faults, known=DEFINITION_FIELDS)
    id = reader.text("id", most=MAX_ID_CHARACTERS, required=True)
    if reader.has("id") and not _SLUG_PATTERN.fullmatch(id):
        reader.fault("id", f"An id is {SLUG_FORMAT}.")
    nodes = [
        read_node(node, f"nodes.{at}", faults, site)
        for at, node in enumerate(reader.items("nodes", most=MAX_NODES))
    ]
    if not nodes:
        reader.fault("nodes", "A pipeline has one node at least.")
    types: dict[str, str] = {}
    for at, node in enumerate(nodes):
        if node.id in types:
            faults.add(f"nodes.{at}.id", f"There is another node “{node.id}”. Name one otherwise.")
        types.setdefault(node.id, node.type)
    edges = read_edges(reader, types, faults)
    entry = reader.text("entry_node", most=MAX_ID_CHARACTERS, required=True)
    if entry and entry not in types:
        known = ", ".join(types) or "none"
        reader.fault("entry_node", f"There is no node “{entry}”. There are: {known}.")
    timeout = reader.number("timeout", 1, MAX_TIMEOUT, default=None)
    name = reader.text("name", most=MAX_NAME_CHARACTERS, default=id)
    description = reader.text("description", most=MAX_DESCRIPTION_CHARACTERS)
    if (
        len(types) == len(nodes)
        and entry in types
        and not any(edge.source not in types or edge.target not in types for edge in edges)
    ):
        check_structure(list(types), edges, entry, faults)
    faults.check()
    return Definition(id, name or id, description, tuple(nodes), tuple(edges), entry, timeout)


MODEL_FIELDS = ("name", "temperature", "max_tokens", "top_p")
WORKER_FIELDS = ("name", "prompt", "tools")
MAX_MODEL_TOKENS = 200_000
#: Stands in for an unknown type, so that its other fields are checked too.
_UNKNOWN_TYPE = NodeType("", "", "never", tools=True, turns=1)


def read_node(value: Any, path: str, faults: FaultList, site: SiteCapabilities) -> Node:
    """Read one of `nodes`; faults are added to `faults`."""
    type_name = value.get("type") if isinstance(value, dict) else None
    kind = NODE_TYPES.get(type_name, _UNKNOWN_TYPE) if isinstance(type_name, str) else _UNKNOWN_TYPE
    all_fields = dict.fromkeys(name for kind in NODE_TYPES.values() for name in kind.fields)
    known = kind.fields if kind.name else tuple(all_fields)

    def types_with_field(name: str) -> str:
        takers = [kind.name for kind in NODE_TYPES.values() if name in kind.fields]
        return f"It belongs to a node of type {' or '.join(takers)}." if takers else ""

    reader = FieldReader(value, path, faults, known=known, cure=types_with_field)
    if not kind.name:
        known_types = ", ".join(NODE_TYPES)
        reader.fault("type", f"“{type_name}” is no type of node. There are: {known_types}.")
    id = reader.text("id", most=MAX_ID_CHARACTERS, required=True)
    if id and not is_node_id(id):
        reader.fault("id", f"An id is {NODE_ID_FORMAT}.")
    model = ModelOptions()
    if "model" in known and reader.has("model"):
        given = FieldReader(reader.raw("model"), reader.at("model"), faults, known=MODEL_FIELDS)
        name = given.text("name", most=200)
        if problem := site.model_fault(name) if name else "":
            given.fault("name", problem)
        model = ModelOptions(
            name=name,
            temperature=given.number("temperature", 0, 2, default=DEFAULT_TEMPERATURE),
            max_tokens=given.number(
                "max_tokens", 1, MAX_MODEL_TOKENS, default=DEFAULT_MAX_TOKENS, integer=True
            ),
            top_p=given.number("top_p", 0.001, 1, default=None),
        )
    return Node(
        id=id,
        type=kind.name,
        prompt=reader.text("prompt", most=MAX_PROMPT_CHARACTERS) if kind.prompt else "",
        model=model,
        tools=_read_tools(reader, site) if kind.tools else (),
        max_iter=reader.number("max_iter", 1, MAX_TURNS, default=kind.turns, integer=True)
        if kind.turns
        else 0,
        timeout=reader.number("timeout", 1, MAX_TIMEOUT, default=None),
        options={
            option.name: _read_option(reader, option, faults, site) for option in kind.options
        },
    )


def _read_tools(reader: FieldReader, site: SiteCapabilities) -> tuple[str, ...]:
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


def _read_option(
    reader: FieldReader, option: NodeOption, faults: FaultList, site: SiteCapabilities
) -> Any:
    name = option.name
    match option.kind:
        case "number" | "integer":
            integer = option.kind == "integer"
            low, high = option.low, option.high
            return reader.number(name, low, high, default=option.default, integer=integer)
        case "choice":
            return reader.choice(name, option.choices, default=option.default)
        case "workers":
            found: dict[str, Worker] = {}
            for at, value in enumerate(reader.items(name, most=MAX_WORKERS)):
                one = FieldReader(value, reader.at(f"{name}.{at}"), faults, known=WORKER_FIELDS)
                called = one.text("name", most=MAX_ID_CHARACTERS, required=True)
                if called and not is_node_id(called):
                    one.fault("name", f"A name is {NODE_ID_FORMAT}.")
                if called in found:
                    one.fault("name", f"There is another worker “{called}”.")
                prompt = one.text("prompt", most=MAX_PROMPT_CHARACTERS)
                found.setdefault(called, Worker(called, prompt, _read_tools(one, site)))
            if not found:
                reader.fault(
                    name, "A coordinator has one worker at least: {“name”: …, “tools”: […]}."
                )
            return tuple(found.values())
        case "condition":
            text = reader.text(name, most=MAX_CONDITION_CHARACTERS, required=option.required)
            for unknown in sorted(_condition_names(reader, name, text) & {"score", "passed"}):
                reader.fault(name, f"A gate looks at what it is given, and that has no {unknown}.")
            return text
        case _:
            return reader.text(name, most=int(option.high), default=option.default)


TEMPLATES_FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Mapping[str, Definition]:
    """The shipped templates by id, ordered by file name."""
    parsed = [
        parse_definition(json.loads(path.read_text()))
        for path in sorted(TEMPLATES_FOLDER.glob("*.json"))
    ]
    return {each.id: each for each in parsed}
