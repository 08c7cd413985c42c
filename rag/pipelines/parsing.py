"""From JSON to a definition: every fault is told with its place, and nothing unknown is passed
over."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from common import bounded_json
from common.errors import InvalidInput
from rag.pipelines.definition import Definition, Edge
from rag.pipelines.edge_fields import read_edges
from rag.pipelines.faults import Fault, Faults, PipelineError
from rag.pipelines.fields import SLUG, Reader, is_slug
from rag.pipelines.limits import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_NAME_CHARACTERS,
    MAX_NODES,
    MAX_TIMEOUT,
)
from rag.pipelines.node_fields import read_node
from rag.pipelines.structure import check_structure

FIELDS = ("id", "name", "description", "nodes", "edges", "entry_node", "timeout")


@dataclass(frozen=True, slots=True)
class Site:
    """What a site has that a definition may name. None of `tools` means that they are not looked
    at; `model_fault` says what is wrong with the name of a chat model, "" for nothing."""

    tools: Collection[str] | None = None
    model_fault: Callable[[str], str] = lambda name: ""


ANYWHERE = Site()


def parse(value: Any, *, site: Site = ANYWHERE) -> Definition:
    """The definition that `value`, which is JSON, describes. Raises PipelineError."""
    try:
        bounded_json.check(value)
    except InvalidInput as error:
        raise PipelineError([Fault(error.field, str(error))]) from error
    faults = Faults()
    whole = Reader(value, "", faults, known=FIELDS)
    id = whole.text("id", most=MAX_ID_CHARACTERS, required=True)
    if whole.has("id") and not is_slug(id):
        whole.fault("id", f"An id is {SLUG}.")
    nodes = [
        read_node(node, f"nodes.{at}", faults, site)
        for at, node in enumerate(whole.items("nodes", most=MAX_NODES))
    ]
    if not nodes:
        whole.fault("nodes", "A pipeline has one node at least.")
    types: dict[str, str] = {}
    for at, node in enumerate(nodes):
        if node.id in types:
            faults.add(f"nodes.{at}.id", f"There is another node “{node.id}”. Name one otherwise.")
        types.setdefault(node.id, node.type)
    edges = read_edges(whole, types, faults)
    entry = whole.text("entry_node", most=MAX_ID_CHARACTERS, required=True)
    if entry and entry not in types:
        known = ", ".join(types) or "none"
        whole.fault("entry_node", f"There is no node “{entry}”. There are: {known}.")
    timeout = whole.number("timeout", 1, MAX_TIMEOUT, default=None)
    name = whole.text("name", most=MAX_NAME_CHARACTERS, default=id)
    description = whole.text("description", most=MAX_DESCRIPTION_CHARACTERS)
    if len(types) == len(nodes) and entry in types and not _has_loose_ends(edges, types):
        check_structure(list(types), edges, entry, faults)
    faults.check()
    return Definition(id, name or id, description, tuple(nodes), tuple(edges), entry, timeout)


def _has_loose_ends(edges: list[Edge], types: dict[str, str]) -> bool:
    return any(edge.source not in types or edge.target not in types for edge in edges)
