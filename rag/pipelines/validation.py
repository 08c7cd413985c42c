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
from common.translation import format_number, gettext, gettext_noop
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
#: Formats of ids, with {limit}.
NODE_ID_FORMAT = gettext_noop("a letter, then letters, digits, _ and -, at most {limit} together")
SLUG_FORMAT = gettext_noop("small letters, digits and -, at most {limit} together")


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
            faults.add(
                path, gettext("This must be an object with {names}.").format(names=", ".join(known))
            )
        for name in self._values:
            if name not in known:
                message = gettext("This field is unknown. Use {known}. {cure}").format(
                    known=", ".join(known), cure=cure(name)
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
            self.fault(name, gettext("This must be a text."))
            return default
        if required and not value.strip():
            self.fault(name, gettext("This is missing."))
        if len(value) > most:
            self.fault(
                name,
                gettext("This has {length} characters; {most} are allowed.").format(
                    most=format_number(most),
                    length=format_number(len(value)),
                ),
            )
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str) -> str:
        """One of `choices`, or the default."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in choices:
            text = truncated(value if isinstance(value, str) else repr(value), 60)
            self.fault(
                name,
                gettext("“{text}” is none of {names}.").format(text=text, names=", ".join(choices)),
            )
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
            text = (
                gettext("This must be a whole number from {low} to {high}.")
                if integer
                else gettext("This must be a number from {low} to {high}.")
            )
            self.fault(
                name,
                text.format(low=format(low, "g"), high=format(high, "g")),
            )
            return default
        return value if integer else float(value)

    def items(self, name: str, *, most: int) -> list[Any]:
        """The entries of a list."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, gettext("This must be a list."))
            return []
        if len(value) > most:
            self.fault(
                name,
                gettext("The list has {length} entries; the limit is {most}.").format(
                    most=most, length=len(value)
                ),
            )
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
                gettext(
                    "Another edge leads from “{source}” to “{target}”. Join their conditions"
                    " by “or”."
                ).format(source=edge.source, target=edge.target),
            )
        taken.add(ends)
        if types.get(edge.source) == "router":
            if (edge.source, edge.route) in routes:
                reader.fault(
                    "name",
                    gettext("The router has another edge named “{route}”.").format(
                        route=edge.route
                    ),
                )
            routes.add((edge.source, edge.route))
        edges.append(edge)
    for at, (id, type) in enumerate(types.items()):
        if type == "router" and not any(edge.source == id for edge in edges):
            faults.add(
                f"nodes.{at}",
                gettext("The router “{name}” has no edges to choose from. Add some.").format(
                    name=id
                ),
            )
    return edges


def _read_edge(reader: FieldReader, types: Mapping[str, str]) -> Edge:
    for end in ("from", "to"):
        id = reader.text(end, most=MAX_ID_CHARACTERS, required=True)
        if id and id not in types:
            known = ", ".join(types) or "none"
            reader.fault(
                end,
                gettext("The node “{name}” does not exist. Choose from: {known}.").format(
                    name=id, known=known
                ),
            )
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
        reader.fault(
            "max_iter", gettext("Only loops have rounds. Leave this out, or make the edge a loop.")
        )
    return edge


def _text_or_empty(reader: FieldReader, name: str) -> str:
    value: Any = reader.raw(name)
    return value if isinstance(value, str) else ""


def _check_edge_condition(reader: FieldReader, edge: Edge, type: str) -> None:
    if type == "router":
        if edge.type == "loop":
            reader.fault("type", gettext("A router cannot lead back. Use a gate or an evaluator."))
        elif edge.condition:
            reader.fault(
                "condition", gettext("A router chooses by name. Give the edge a name instead.")
            )
        return
    if edge.name:
        reader.fault("name", gettext("Only the edges of a router have names. Leave this out."))
    if edge.type == "conditional" and not edge.condition:
        reader.fault(
            "condition",
            gettext("A conditional edge needs a condition, such as: output contains “yes”."),
        )
    if edge.type == "direct" and edge.condition:
        reader.fault(
            "condition", gettext("A direct edge has no condition. Make the edge conditional.")
        )
    for name in sorted(_condition_names(reader, "condition", edge.condition)):
        if type not in NODE_TYPES_WITH_NAME.get(name, (type,)):
            reader.fault(
                "condition",
                gettext(
                    "A node of type {type} has no {name}. Put a node of type {names} before"
                    " this edge."
                ).format(
                    type=type, name=name, names=gettext(" or ").join(NODE_TYPES_WITH_NAME[name])
                ),
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
        reader.fault(
            "id",
            gettext("An id is {format}.").format(
                format=gettext(SLUG_FORMAT).format(limit=MAX_ID_CHARACTERS)
            ),
        )
    nodes = [
        read_node(node, f"nodes.{at}", faults, site)
        for at, node in enumerate(reader.items("nodes", most=MAX_NODES))
    ]
    if not nodes:
        reader.fault("nodes", gettext("A pipeline needs at least one node."))
    types: dict[str, str] = {}
    for at, node in enumerate(nodes):
        if node.id in types:
            faults.add(
                f"nodes.{at}.id",
                gettext("Another node is named “{name}”. Rename one of them.").format(name=node.id),
            )
        types.setdefault(node.id, node.type)
    edges = read_edges(reader, types, faults)
    entry = reader.text("entry_node", most=MAX_ID_CHARACTERS, required=True)
    if entry and entry not in types:
        known = ", ".join(types) or "none"
        reader.fault(
            "entry_node",
            gettext("The node “{entry}” does not exist. Choose from: {known}.").format(
                entry=entry, known=known
            ),
        )
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
        if not takers:
            return ""
        return gettext("This field belongs to nodes of type {names}.").format(
            names=gettext(" or ").join(takers)
        )

    reader = FieldReader(value, path, faults, known=known, cure=types_with_field)
    if not kind.name:
        known_types = ", ".join(NODE_TYPES)
        reader.fault(
            "type",
            gettext("“{type_name}” is not a node type. Choose from: {known_types}.").format(
                type_name=type_name, known_types=known_types
            ),
        )
    id = reader.text("id", most=MAX_ID_CHARACTERS, required=True)
    if id and not is_node_id(id):
        reader.fault(
            "id",
            gettext("An id is {format}.").format(
                format=gettext(NODE_ID_FORMAT).format(limit=MAX_ID_CHARACTERS)
            ),
        )
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
            reader.fault(place, gettext("A tool is given by its name."))
        elif site.tools is not None and name not in site.tools:
            known = ", ".join(sorted(site.tools))
            reader.fault(
                place,
                gettext("The tool “{name}” does not exist. Choose from: {known}.").format(
                    name=name[:60], known=known
                ),
            )
        elif name in found:
            reader.fault(place, gettext("“{name}” is listed twice.").format(name=name))
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
                    one.fault(
                        "name",
                        gettext("A name is {format}.").format(
                            format=gettext(NODE_ID_FORMAT).format(limit=MAX_ID_CHARACTERS)
                        ),
                    )
                if called in found:
                    one.fault(
                        "name", gettext("Another worker is named “{called}”.").format(called=called)
                    )
                prompt = one.text("prompt", most=MAX_PROMPT_CHARACTERS)
                found.setdefault(called, Worker(called, prompt, _read_tools(one, site)))
            if not found:
                reader.fault(
                    name,
                    gettext("A coordinator needs at least one worker: {“name”: …, “tools”: […]}."),
                )
            return tuple(found.values())
        case "condition":
            text = reader.text(name, most=MAX_CONDITION_CHARACTERS, required=option.required)
            for unknown in sorted(_condition_names(reader, name, text) & {"score", "passed"}):
                reader.fault(
                    name,
                    gettext("The input of a gate has no {unknown}.").format(unknown=unknown),
                )
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
