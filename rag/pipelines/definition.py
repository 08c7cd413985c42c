"""A pipeline as data: nodes, edges, and the JSON that says the same."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag.pipelines.kinds import KINDS, Kind

EdgeType = Literal["direct", "conditional", "loop"]
EDGE_TYPES: tuple[EdgeType, ...] = ("direct", "conditional", "loop")

TEMPERATURE = 0.7
MAX_TOKENS = 4_096


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which chat model, and how it is to answer. No name means the run's own, or the default."""

    name: str = ""
    temperature: float = TEMPERATURE
    max_tokens: int = MAX_TOKENS
    top_p: float | None = None

    def to_json(self) -> dict[str, Any]:
        """What differs from the defaults."""
        return _without_defaults(
            {
                "name": (self.name, ""),
                "temperature": (self.temperature, TEMPERATURE),
                "max_tokens": (self.max_tokens, MAX_TOKENS),
                "top_p": (self.top_p, None),
            }
        )


@dataclass(frozen=True, slots=True)
class Worker:
    """Whom a coordinator may give a step."""

    name: str
    prompt: str = ""
    tools: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As a definition has it."""
        given = {"prompt": (self.prompt, ""), "tools": (list(self.tools), [])}
        return {"name": self.name, **_without_defaults(given)}


@dataclass(frozen=True, slots=True)
class Node:
    """A step. `max_iter` is 0 for types without turns; `options` are those of its type, with their
    defaults filled in."""

    id: str
    type: str
    prompt: str = ""
    model: ModelOptions = ModelOptions()
    tools: tuple[str, ...] = ()
    max_iter: int = 0
    timeout: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """What its type says."""
        return KINDS[self.type]

    def to_json(self) -> dict[str, Any]:
        """As a definition has it, without what is as by default."""
        given: dict[str, tuple[Any, Any]] = {
            "prompt": (self.prompt, ""),
            "model": (self.model.to_json(), {}),
            "tools": (list(self.tools), []),
            "max_iter": (self.max_iter, self.kind.turns or 0),
            "timeout": (self.timeout, None),
        }
        for option in self.kind.options:
            value = self.options[option.name]
            if option.kind == "workers":
                value = [worker.to_json() for worker in value]
            given[option.name] = (value, option.default)
        return {"id": self.id, "type": self.type, **_without_defaults(given)}


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from a node to the next. `name` is what a router calls it, by default `target`.

    `max_iter` is for loops: how many rounds there are at most, the first included.
    """

    source: str
    target: str
    type: EdgeType = "direct"
    condition: str = ""
    name: str = ""
    max_iter: int | None = None

    @property
    def route(self) -> str:
        """What a router calls it."""
        return self.name or self.target

    def to_json(self) -> dict[str, Any]:
        """As a definition has it."""
        given = {
            "condition": (self.condition, ""),
            "name": (self.name, ""),
            "max_iter": (self.max_iter, None),
        }
        ends = {"from": self.source, "to": self.target, "type": self.type}
        return {**ends, **_without_defaults(given)}


@dataclass(frozen=True, slots=True)
class Definition:
    """A pipeline that was checked: `rag.pipelines.parsing.parse` and the builder make it."""

    id: str
    name: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    entry: str
    timeout: float | None = None

    def node(self, id: str) -> Node:
        """The node with this id. Raises KeyError."""
        for node in self.nodes:
            if node.id == id:
                return node
        raise KeyError(id)

    def to_json(self) -> dict[str, Any]:
        """The canonical form: parsed again it is the same."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
            "entry_node": self.entry,
            **_without_defaults({"timeout": (self.timeout, None)}),
        }


def _without_defaults(values: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    return {name: value for name, (value, default) in values.items() if value != default}
