"""Pipelines in Python: `Pipeline("rag").node("find", "worker").tools("…").done()…build()`."""

from typing import Any, Self

from rag.pipelines.definition import Definition, EdgeType
from rag.pipelines.validation import ANY_SITE, SiteCapabilities, parse_definition


class NodeBuilder:
    """Builds a node; `done` returns to its pipeline."""

    def __init__(self, pipeline: "Pipeline", id: str, type: str) -> None:
        self._pipeline = pipeline
        self._fields: dict[str, Any] = {"id": id, "type": type}

    def prompt(self, text: str) -> Self:
        """The instruction for the model."""
        return self.set(prompt=text)

    def tools(self, *names: str) -> Self:
        return self.set(tools=list(names))

    def model(
        self,
        name: str | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
    ) -> Self:
        """The model it uses, and its options."""
        given = {
            "name": name,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
        }
        return self.set(model={key: value for key, value in given.items() if value is not None})

    def max_iter(self, turns: int) -> Self:
        """The maximum number of turns or attempts."""
        return self.set(max_iter=turns)

    def timeout(self, seconds: float) -> Self:
        """The time limit in seconds."""
        return self.set(timeout=seconds)

    def set(self, **fields: Any) -> Self:
        """Any other field of its type, such as `threshold` or `condition`."""
        self._fields.update(fields)
        return self

    def done(self) -> "Pipeline":
        return self._pipeline

    def to_json(self) -> dict[str, Any]:
        """Its fields as in a definition."""
        return dict(self._fields)


class Pipeline:
    """Builds a definition. The first node is the entry unless `entry` sets another. `build` reports
    all faults at once."""

    def __init__(
        self, id: str, *, name: str = "", description: str = "", timeout: float | None = None
    ) -> None:
        self._header = {"id": id, "name": name, "description": description, "timeout": timeout}
        self._nodes: list[NodeBuilder] = []
        self._edges: list[dict[str, Any]] = []
        self._entry: str | None = None

    def node(self, id: str, type: str = "llm") -> NodeBuilder:
        """Add a node and return its builder."""
        node = NodeBuilder(self, id, type)
        self._nodes.append(node)
        return node

    def edge(
        self,
        source: str,
        target: str,
        type: EdgeType = "direct",
        *,
        condition: str = "",
        name: str = "",
        max_iter: int | None = None,
    ) -> Self:
        """Add an edge from one node to another."""
        ends = {"from": source, "to": target, "type": type}
        self._edges.append({**ends, "condition": condition, "name": name, "max_iter": max_iter})
        return self

    def entry(self, id: str) -> Self:
        """Set the node at which runs begin."""
        self._entry = id
        return self

    def to_json(self) -> dict[str, Any]:
        """The JSON so far, not validated."""
        nodes = [node.to_json() for node in self._nodes]
        entry = self._entry or (nodes[0]["id"] if nodes else "")
        return {**self._header, "nodes": nodes, "edges": list(self._edges), "entry_node": entry}

    def build(self, *, site: SiteCapabilities = ANY_SITE) -> Definition:
        """The definition. Raises PipelineError with every fault."""
        return parse_definition(self.to_json(), site=site)
