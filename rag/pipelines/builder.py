"""Pipelines in Python: `Pipeline("rag").node("find", "worker").tools("…").done()…build()`."""

from typing import Any, Self

from rag.pipelines.definition import Definition, EdgeType
from rag.pipelines.parsing import ANYWHERE, Site, parse


class NodeBuilder:
    """A node in the making; `done` leads back to its pipeline."""

    def __init__(self, pipeline: "Pipeline", id: str, type: str) -> None:
        self._pipeline = pipeline
        self._fields: dict[str, Any] = {"id": id, "type": type}

    def prompt(self, text: str) -> Self:
        """What the model is told to do."""
        return self.set(prompt=text)

    def tools(self, *names: str) -> Self:
        """What it may call."""
        return self.set(tools=list(names))

    def model(
        self,
        name: str | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        top_p: float | None = None,
    ) -> Self:
        """Which one it is, and how it answers."""
        given = {
            "name": name,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "top_p": top_p,
        }
        return self.set(model={key: value for key, value in given.items() if value is not None})

    def max_iter(self, turns: int) -> Self:
        """How many turns or attempts there are."""
        return self.set(max_iter=turns)

    def timeout(self, seconds: float) -> Self:
        """How long it may take."""
        return self.set(timeout=seconds)

    def set(self, **fields: Any) -> Self:
        """Any other field of its type, such as `threshold` or `condition`."""
        self._fields.update(fields)
        return self

    def done(self) -> "Pipeline":
        """Back to the pipeline."""
        return self._pipeline

    def to_json(self) -> dict[str, Any]:
        """As a definition has it."""
        return dict(self._fields)


class Pipeline:
    """A definition in the making. Unless `entry` says otherwise, the first node is where it begins.

    What is wrong is told by `build`, all at once.
    """

    def __init__(
        self, id: str, *, name: str = "", description: str = "", timeout: float | None = None
    ) -> None:
        self._whole = {"id": id, "name": name, "description": description, "timeout": timeout}
        self._nodes: list[NodeBuilder] = []
        self._edges: list[dict[str, Any]] = []
        self._entry: str | None = None

    def node(self, id: str, type: str = "llm") -> NodeBuilder:
        """Begin a node."""
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
        """Lead from one node to another."""
        ends = {"from": source, "to": target, "type": type}
        self._edges.append({**ends, "condition": condition, "name": name, "max_iter": max_iter})
        return self

    def entry(self, id: str) -> Self:
        """Begin at this node."""
        self._entry = id
        return self

    def to_json(self) -> dict[str, Any]:
        """What was said so far, unchecked."""
        nodes = [node.to_json() for node in self._nodes]
        entry = self._entry or (nodes[0]["id"] if nodes else "")
        return {**self._whole, "nodes": nodes, "edges": list(self._edges), "entry_node": entry}

    def build(self, *, site: Site = ANYWHERE) -> Definition:
        """The definition. Raises PipelineError with every fault."""
        return parse(self.to_json(), site=site)
