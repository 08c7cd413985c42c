"""The edges of a definition, read from JSON."""

from collections.abc import Mapping
from typing import Any, cast

from rag.pipelines.conditions import KNOWN_OF, ConditionError, parse
from rag.pipelines.definition import EDGE_TYPES, Edge, EdgeType
from rag.pipelines.faults import Faults
from rag.pipelines.fields import Reader
from rag.pipelines.limits import (
    MAX_CONDITION_CHARACTERS,
    MAX_EDGES,
    MAX_ID_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_ROUNDS,
)

FIELDS = ("from", "to", "type", "condition", "name", "max_iter")


def read_edges(whole: Reader, types: Mapping[str, str], faults: Faults) -> list[Edge]:
    """All of `edges`, between nodes of these `types` by id. What is wrong is in `faults`."""
    edges: list[Edge] = []
    taken: set[tuple[str, str, bool]] = set()
    routes: set[tuple[str, str]] = set()
    for at, value in enumerate(whole.items("edges", most=MAX_EDGES)):
        reader = Reader(value, f"edges.{at}", faults, known=FIELDS)
        edge = _read(reader, types)
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


def _read(reader: Reader, types: Mapping[str, str]) -> Edge:
    for end in ("from", "to"):
        id = reader.text(end, most=MAX_ID_CHARACTERS, required=True)
        if id and id not in types:
            known = ", ".join(types) or "none"
            reader.fault(end, f"There is no node “{id}”. There are: {known}.")
    edge = Edge(
        source=_text(reader, "from"),
        target=_text(reader, "to"),
        type=cast("EdgeType", reader.choice("type", EDGE_TYPES, default="direct")),
        condition=reader.text("condition", most=MAX_CONDITION_CHARACTERS).strip(),
        name=reader.text("name", most=MAX_NAME_CHARACTERS).strip(),
        max_iter=reader.integer("max_iter", 1, MAX_ROUNDS, default=None),
    )
    _check_condition(reader, edge, types.get(edge.source, ""))
    if edge.type != "loop" and edge.max_iter is not None:
        reader.fault("max_iter", "Only loops have rounds. Leave it out, or make it a loop.")
    return edge


def _text(reader: Reader, name: str) -> str:
    value: Any = reader.raw(name)
    return value if isinstance(value, str) else ""


def _check_condition(reader: Reader, edge: Edge, type: str) -> None:
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
    if not edge.condition:
        return
    try:
        names = parse(edge.condition).names
    except ConditionError as error:
        reader.fault("condition", str(error))
        return
    for name in sorted(names):
        if type not in KNOWN_OF.get(name, (type,)):
            reader.fault(
                "condition",
                f"A node of type {type} has no {name}. Put a node of type"
                f" {' or '.join(KNOWN_OF[name])} before this edge.",
            )
