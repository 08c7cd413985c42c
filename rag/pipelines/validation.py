"""Read a pipeline definition from JSON and report every fault with its path; the shipped templates.
Begin with `parse_definition`. Without Django.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from common import bounded_json
from common.errors import InvalidInput
from common.options import invalid_inputs, option_fields
from common.translation import gettext
from rag.pipelines.conditions import NODE_TYPES_WITH_NAME, ConditionError, parse_condition
from rag.pipelines.definition import (
    NODE_TYPES,
    CoordinatorNode,
    Definition,
    Edge,
    Fault,
    FaultList,
    GateNode,
    ModelOptions,
    Node,
    Part,
    PipelineError,
    Worker,
    check_structure,
)

PartOf = TypeVar("PartOf", bound=Part)


def read_part(
    model: type[PartOf],
    value: Any,
    path: str,
    faults: FaultList,
    /,
    *,
    names: Sequence[str] = (),
    cure: Callable[[str], str] = lambda name: "",
    **parts: Any,
) -> PartOf:
    """The part at `path` of the JSON `value`, with `parts` that are read already.

    Faults are reported; a text at fault stays and another value becomes the default, so that the
    rest is checked too. `names` are the known fields, by default those of `model`, and `cure` says
    where an unknown one belongs, "" for nowhere.
    """
    names = names or tuple(option_fields(model))
    given: dict[str, Any] = {}
    if isinstance(value, Mapping):
        given = {name: each for name, each in value.items() if each is not None}
    else:
        faults.add(
            path, gettext("This must be an object with {names}.").format(names=", ".join(names))
        )
    for name in [name for name in given if name not in names]:
        message = gettext("This field is unknown. Use {known}. {cure}").format(
            known=", ".join(names), cure=cure(name)
        )
        faults.add(_join(path, name), message.rstrip())
    taken = option_fields(model).keys() & set(names)
    given = {name: each for name, each in given.items() if name in taken} | parts
    try:
        return model.model_validate(given)
    except ValidationError as error:
        for problem in invalid_inputs(error, model):
            faults.add(_join(path, problem.field), str(problem))
            name = problem.field.partition(".")[0]
            if not isinstance(given.get(name), str):
                given.pop(name, None)
        open_fields = {
            name: "" for name, option in option_fields(model).items() if option.is_required
        }
        return model.model_construct(**{**open_fields, **given})


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _entries(value: Any, name: str, path: str, faults: FaultList) -> list[Any]:
    """The entries of a list in the object `value`."""
    entries = value.get(name) if isinstance(value, Mapping) else None
    if entries is not None and not isinstance(entries, list):
        faults.add(_join(path, name), gettext("This must be a list."))
    return entries if isinstance(entries, list) else []


def read_edges(values: list[Any], types: Mapping[str, str], faults: FaultList) -> list[Edge]:
    """Read all of `edges`, between nodes of these `types` by id; faults are added to `faults`."""
    edges: list[Edge] = []
    taken: set[tuple[str, str, bool]] = set()
    routes: set[tuple[str, str]] = set()
    for at, value in enumerate(values):
        path = f"edges.{at}"
        edge = read_part(Edge, value, path, faults)
        for end, id in (("from", edge.source), ("to", edge.target)):
            if id and id not in types:
                faults.add(
                    f"{path}.{end}",
                    gettext("The node “{name}” does not exist. Choose from: {known}.").format(
                        name=id, known=", ".join(types) or "none"
                    ),
                )
        _check_edge(edge, path, types.get(edge.source, ""), faults)
        ends = (edge.source, edge.target, edge.type == "loop")
        if ends in taken:
            faults.add(
                path,
                gettext(
                    "Another edge leads from “{source}” to “{target}”. Join their conditions"
                    " by “or”."
                ).format(source=edge.source, target=edge.target),
            )
        taken.add(ends)
        if types.get(edge.source) == "router":
            if (edge.source, edge.route) in routes:
                faults.add(
                    f"{path}.name",
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


def _check_edge(edge: Edge, path: str, type: str, faults: FaultList) -> None:
    """Report what does not go with the type of the edge, or of the node that it comes from."""

    def fault(name: str, message: str) -> None:
        faults.add(f"{path}.{name}", message)

    if edge.type != "loop" and edge.max_iter is not None:
        fault(
            "max_iter", gettext("Only loops have rounds. Leave this out, or make the edge a loop.")
        )
    if type == "router":
        if edge.type == "loop":
            fault("type", gettext("A router cannot lead back. Use a gate or an evaluator."))
        elif edge.condition:
            fault("condition", gettext("A router chooses by name. Give the edge a name instead."))
        return
    if edge.name:
        fault("name", gettext("Only the edges of a router have names. Leave this out."))
    if edge.type == "conditional" and not edge.condition:
        fault(
            "condition",
            gettext("A conditional edge needs a condition, such as: output contains “yes”."),
        )
    if edge.type == "direct" and edge.condition:
        fault("condition", gettext("A direct edge has no condition. Make the edge conditional."))
    for name in sorted(_condition_names(edge.condition, path, faults)):
        if type not in NODE_TYPES_WITH_NAME.get(name, (type,)):
            fault(
                "condition",
                gettext(
                    "A node of type {type} has no {name}. Put a node of type {names} before"
                    " this edge."
                ).format(
                    type=type, name=name, names=gettext(" or ").join(NODE_TYPES_WITH_NAME[name])
                ),
            )


def _condition_names(text: str, path: str, faults: FaultList) -> frozenset[str]:
    """The names in a condition; a fault is reported if it cannot be parsed."""
    try:
        return parse_condition(text)[1] if text.strip() else frozenset()
    except ConditionError as error:
        faults.add(f"{path}.condition", str(error))
        return frozenset()


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
    nodes = [
        read_node(node, f"nodes.{at}", faults, site)
        for at, node in enumerate(_entries(value, "nodes", "", faults))
    ]
    if not nodes:
        faults.add("nodes", gettext("A pipeline needs at least one node."))
    types: dict[str, str] = {}
    for at, node in enumerate(nodes):
        if node.id in types:
            faults.add(
                f"nodes.{at}.id",
                gettext("Another node is named “{name}”. Rename one of them.").format(name=node.id),
            )
        types.setdefault(node.id, node.type)
    edges = read_edges(_entries(value, "edges", "", faults), types, faults)
    definition = read_part(Definition, value, "", faults, nodes=tuple(nodes), edges=tuple(edges))
    entry = definition.entry
    if entry and entry not in types:
        faults.add(
            "entry_node",
            gettext("The node “{entry}” does not exist. Choose from: {known}.").format(
                entry=entry, known=", ".join(types) or "none"
            ),
        )
    if (
        len(types) == len(nodes)
        and entry in types
        and not any(edge.source not in types or edge.target not in types for edge in edges)
    ):
        check_structure(list(types), edges, entry, faults)
    faults.check()
    return definition.model_copy(update={"name": definition.name or definition.id})


_ALL_FIELDS = tuple(
    dict.fromkeys(name for kind in NODE_TYPES.values() for name in kind.field_names())
)


def read_node(value: Any, path: str, faults: FaultList, site: SiteCapabilities) -> Node:
    """Read one of `nodes`; faults are added to `faults`."""
    type_name = value.get("type") if isinstance(value, Mapping) else None
    kind = NODE_TYPES.get(type_name) if isinstance(type_name, str) else None
    if kind is None:
        faults.add(
            f"{path}.type",
            gettext("“{type_name}” is not a node type. Choose from: {known_types}.").format(
                type_name=type_name, known_types=", ".join(NODE_TYPES)
            ),
        )
    parts: dict[str, Any] = {"type": type_name if kind else ""}
    # Of an unknown type any field may be meant.
    names = kind.field_names() if kind else _ALL_FIELDS
    if "model" in names and isinstance(value, Mapping) and value.get("model") is not None:
        parts["model"] = read_part(ModelOptions, value["model"], f"{path}.model", faults)
    if kind is CoordinatorNode:
        parts["workers"] = tuple(
            read_part(Worker, worker, f"{path}.workers.{at}", faults)
            for at, worker in enumerate(_entries(value, "workers", path, faults))
        )

    def types_with_field(name: str) -> str:
        takers = [type for type, each in NODE_TYPES.items() if name in each.field_names()]
        if not takers:
            return ""
        return gettext("This field belongs to nodes of type {names}.").format(
            names=gettext(" or ").join(takers)
        )

    node = read_part(kind or Node, value, path, faults, names=names, cure=types_with_field, **parts)
    if node.model.name and (problem := site.model_fault(node.model.name)):
        faults.add(f"{path}.model.name", problem)
    _check_tools(node.tools, path, faults, site)
    if isinstance(node, GateNode):
        for unknown in sorted(
            _condition_names(node.condition, path, faults) & NODE_TYPES_WITH_NAME.keys()
        ):
            faults.add(
                f"{path}.condition",
                gettext("The input of a gate has no {unknown}.").format(unknown=unknown),
            )
    if isinstance(node, CoordinatorNode):
        if not node.workers:
            faults.add(
                f"{path}.workers",
                gettext("A coordinator needs at least one worker: {“name”: …, “tools”: […]}."),
            )
        for at, worker in enumerate(node.workers):
            _check_tools(worker.tools, f"{path}.workers.{at}", faults, site)
            if worker.name in [other.name for other in node.workers[:at]]:
                faults.add(
                    f"{path}.workers.{at}.name",
                    gettext("Another worker is named “{called}”.").format(called=worker.name),
                )
    return node


def _check_tools(
    names: Sequence[str], path: str, faults: FaultList, site: SiteCapabilities
) -> None:
    for at, name in enumerate(names):
        if site.tools is not None and name not in site.tools:
            problem = gettext("The tool “{name}” does not exist. Choose from: {known}.").format(
                name=name[:60], known=", ".join(sorted(site.tools))
            )
        elif name in names[:at]:
            problem = gettext("“{name}” is listed twice.").format(name=name)
        else:
            continue
        faults.add(f"{path}.tools.{at}", problem)


TEMPLATES_FOLDER = Path(__file__).parent / "templates"


@cache
def templates() -> Mapping[str, Definition]:
    """The shipped templates by id, ordered by file name."""
    parsed = [
        parse_definition(json.loads(path.read_text()))
        for path in sorted(TEMPLATES_FOLDER.glob("*.json"))
    ]
    return {each.id: each for each in parsed}
