"""A pipeline as data: limits, node types, nodes, edges, their JSON, and the structure of the graph.
Begin with `Definition`. Without Django.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from common.errors import RagsiteError
from common.options import Options
from common.translation import gettext, gettext_noop

MAX_NODES = 50
MAX_EDGES = 200
MAX_TOOLS = 40
MAX_WORKERS = 20
MAX_ID_CHARACTERS = 63
MAX_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 2_000
MAX_PROMPT_CHARACTERS = 20_000
MAX_CONDITION_CHARACTERS = 500
MAX_FAULTS = 50

#: Turns of a worker, attempts of an evaluator.
MAX_TURNS = 50
#: Rounds of a loop, the first included.
MAX_ROUNDS = 20
DEFAULT_ROUNDS = 3
#: Node executions of one run, over all loops.
MAX_EXECUTIONS = 1_000
#: Nodes that run at the same time.
MAX_PARALLEL = 4

#: Seconds.
MAX_TIMEOUT = 3_600.0
NODE_TIMEOUT = 300.0
RUN_TIMEOUT = 600.0

#: Characters of a question, and of a node's output.
MAX_QUESTION_CHARACTERS = 20_000
MAX_OUTPUT_CHARACTERS = 400_000


@dataclass(frozen=True, slots=True)
class Fault:
    """`path` is the place in the JSON, such as `nodes.2.tools.0`; empty for the whole
    definition."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class PipelineError(RagsiteError):
    """An invalid definition. `faults` are all that is wrong with it."""

    code = "invalid_pipeline"

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


class FaultList:
    """Collects the faults of a definition without duplicates."""

    def __init__(self) -> None:
        self._found: dict[Fault, None] = {}

    def add(self, path: str, message: str) -> None:
        """Add a fault; at most MAX_FAULTS are kept."""
        if len(self._found) < MAX_FAULTS:
            self._found.setdefault(Fault(path, message))

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self) -> None:
        """Raise PipelineError if there are any."""
        if self._found:
            raise PipelineError(list(self._found))


#: Whether a node type calls a chat model: never, only if one is connected, or always.
ModelNeed = Literal["never", "if there is one", "always"]


#: Formats of ids, with {limit}.
NODE_ID_FORMAT = gettext_noop("a letter, then letters, digits, _ and -, at most {limit} together")
SLUG_FORMAT = gettext_noop("small letters, digits and -, at most {limit} together")


def _matching(pattern: str, form: str) -> AfterValidator:
    compiled = re.compile(rf"{pattern}{{0,{MAX_ID_CHARACTERS - 1}}}")

    def check(id: str) -> str:
        if not compiled.fullmatch(id):
            limited = gettext(form).format(limit=MAX_ID_CHARACTERS)
            raise ValueError(gettext("An id is {format}.").format(format=limited))
        return id

    return AfterValidator(check)


_ID = Field(min_length=1, max_length=MAX_ID_CHARACTERS)
NodeId = Annotated[str, _ID, _matching(r"[A-Za-z][A-Za-z0-9_-]", NODE_ID_FORMAT)]
Slug = Annotated[str, _ID, _matching(r"[a-z0-9][a-z0-9-]", SLUG_FORMAT)]
Line = Annotated[str, StringConstraints(strip_whitespace=True)]
Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARACTERS)]
#: A list in JSON.
Tools = Annotated[tuple[str, ...], Field(max_length=MAX_TOOLS, strict=False)]
Turns = Annotated[int, Field(ge=1, le=MAX_TURNS, description="Turns or rounds, at most.")]
MaxTasks = Annotated[int, Field(ge=1, le=20, description="Sub-tasks, at most.")]
Timeout = Annotated[float | None, Field(ge=1, le=MAX_TIMEOUT)]

DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 4_096


class Part(Options):
    """A part of a definition, whose fields are those of its JSON."""

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class ModelOptions(Part):
    """Which chat model, and with what options."""

    name: str = Field(
        default="",
        max_length=200,
        description="As `GET /models/` tells. Default: the run's, or the site's.",
    )
    temperature: float = Field(
        default=DEFAULT_TEMPERATURE, ge=0, le=2, description=f"Default {DEFAULT_TEMPERATURE}."
    )
    max_tokens: int = Field(
        default=DEFAULT_MAX_TOKENS,
        ge=1,
        le=200_000,
        description=f"Default {DEFAULT_MAX_TOKENS:,}.",
    )
    top_p: float | None = Field(default=None, ge=0.001, le=1)


class Worker(Part):
    """A worker that a coordinator may assign steps to."""

    name: NodeId
    prompt: Prompt = ""
    tools: Tools = ()


class Node(Part):
    """A step: base of the node types, which add fields, or have not all of these."""

    meaning: ClassVar[str] = ""
    needs_model: ClassVar[ModelNeed] = "never"
    lacks: ClassVar[frozenset[str]] = frozenset()

    id: NodeId = Field(description="By which edges name it.")
    type: str
    prompt: Prompt = Field(default="", description="Instructions for the model.")
    model: ModelOptions = ModelOptions()
    tools: Tools = ()
    #: 0 for types without turns.
    max_iter: Turns = 0
    timeout: Timeout = Field(default=None, description="Seconds.")

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Names of all fields that such a node may have."""
        return tuple(name for name in cls.model_fields if name not in cls.lacks)


_ONE_TURN = frozenset({"tools", "max_iter"})
_NO_MODEL = frozenset({"prompt", "model", *_ONE_TURN})


class LlmNode(Node):
    meaning = gettext_noop("Asks the chat model once and outputs its reply.")
    needs_model = "if there is one"
    lacks = _ONE_TURN
    writes: Literal["answer", "code"] = Field(
        default="answer",
        description="An `answer` behind a step with tools uses only what was found, `code` also"
        " what the model knows.",
    )


class WorkerNode(Node):
    meaning = gettext_noop(
        "Lets the chat model call tools until it answers, for `max_iter` turns at most; one last"
        " turn without tools then answers."
    )
    needs_model = "if there is one"
    max_iter: Turns = 10


class RouterNode(Node):
    meaning = gettext_noop("Lets the chat model choose one of its edges by name.")
    needs_model = "always"
    lacks = _ONE_TURN


class GateNode(Node):
    meaning = gettext_noop("Passes input that meets its condition.")
    lacks = _NO_MODEL
    condition: Line = Field(
        min_length=1,
        max_length=MAX_CONDITION_CHARACTERS,
        description="What must hold of the input.",
    )


class AggregatorNode(Node):
    meaning = gettext_noop("Joins the outputs of its parents.")
    lacks = _NO_MODEL
    separator: str = Field(default="\n\n", max_length=200, description="Between two of them.")


class OrchestratorNode(Node):
    meaning = gettext_noop("Plans independent subtasks and runs them in parallel.")
    needs_model = "always"
    max_iter: Turns = 5
    max_tasks: MaxTasks = 5


class EvaluatorNode(Node):
    meaning = gettext_noop(
        "Scores its input from 0 to 1; below `threshold` its loop edge leads back."
    )
    needs_model = "always"
    lacks = frozenset({"tools"})
    max_iter: Turns = DEFAULT_ROUNDS
    threshold: float = Field(default=0.7, ge=0, le=1, description="The least score that will do.")
    on_exhausted: Literal["best", "fail"] = Field(
        default="best", description="When all rounds are used up: go on with the best, or fail."
    )
    syntax: Literal["ignore", "check"] = Field(
        default="ignore",
        description="Whether code blocks that cannot be parsed score 0, and the model is not"
        " asked.",
    )


class SynthesizerNode(Node):
    meaning = gettext_noop("Combines the outputs of its parents into one answer with citations.")
    needs_model = "if there is one"
    lacks = _ONE_TURN


class CoordinatorNode(Node):
    meaning = gettext_noop(
        "Assigns steps to its workers one after the other. Each sees the results of earlier steps."
    )
    needs_model = "always"
    lacks = frozenset({"tools"})
    max_iter: Turns = 5
    workers: tuple[Worker, ...] = Field(
        default=(), max_length=MAX_WORKERS, description="Who may be given a step."
    )
    max_tasks: MaxTasks = 5


class SqlNode(Node):
    meaning = gettext_noop(
        "Answers from a catalogued database: writes a query, checks it against the catalogue, and"
        " runs it where that is allowed."
    )
    needs_model = "always"
    lacks = frozenset({"tools"})
    max_iter: Turns = 2
    collection: str = Field(
        default="", max_length=63, description="Slug of the catalogue. Default: any."
    )
    dialect: str = Field(
        default="", max_length=30, description="Of the SQL. Default: the catalogue's."
    )
    run: Literal["never", "allowed"] = Field(
        default="never",
        description="`allowed`: run the query on the connection to the database, where there is one"
        " that the user may use.",
    )


class TablesNode(Node):
    meaning = gettext_noop(
        "Computes the answer from tables of documents, without a model; hands on nothing where the"
        " question is none of a table's."
    )
    lacks = _NO_MODEL
    collection: str = Field(
        default="", max_length=63, description="Slug of the only collection to ask. Default: any."
    )
    asks: Literal["question", "input"] = Field(
        default="question",
        description="The `question` of the run, or the `input` that the step before handed on.",
    )
    outputs: Literal["text", "json"] = Field(
        default="text",
        description="The answer in words, or its parts as JSON.",
    )


NODE_TYPES: Mapping[str, type[Node]] = {
    "llm": LlmNode,
    "worker": WorkerNode,
    "router": RouterNode,
    "gate": GateNode,
    "aggregator": AggregatorNode,
    "orchestrator": OrchestratorNode,
    "evaluator": EvaluatorNode,
    "synthesizer": SynthesizerNode,
    "coordinator": CoordinatorNode,
    "sql": SqlNode,
    "tables": TablesNode,
}

EdgeType = Literal["direct", "conditional", "loop"]


class Edge(Part):
    """An edge from a node to the next. `max_iter` counts the first round too."""

    source: str = Field(alias="from", min_length=1, max_length=MAX_ID_CHARACTERS)
    target: str = Field(alias="to", min_length=1, max_length=MAX_ID_CHARACTERS)
    type: EdgeType = "direct"
    condition: Line = Field(
        default="",
        max_length=MAX_CONDITION_CHARACTERS,
        description='When it is taken, such as `output contains "yes"`.',
    )
    name: Line = Field(
        default="", max_length=MAX_NAME_CHARACTERS, description="What a router calls it."
    )
    max_iter: int | None = Field(
        default=None, ge=1, le=MAX_ROUNDS, description="Rounds of a loop, at most."
    )

    @property
    def route(self) -> str:
        """The name by which a router chooses it."""
        return self.name or self.target

    def to_json(self) -> dict[str, Any]:
        return {"from": self.source, "to": self.target, "type": self.type, **super().to_json()}


class Definition(Part):
    """A valid pipeline, made by `rag.pipelines.validation.parse_definition` or the builder."""

    id: Slug = Field(description="Small letters, digits and hyphens.")
    name: str = Field(default="", max_length=MAX_NAME_CHARACTERS, description="Default: its id.")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARACTERS)
    nodes: tuple[Node, ...] = Field(max_length=MAX_NODES)
    edges: tuple[Edge, ...] = Field(default=(), max_length=MAX_EDGES)
    entry: str = Field(
        alias="entry_node",
        min_length=1,
        max_length=MAX_ID_CHARACTERS,
        description="Where it begins.",
    )
    timeout: Timeout = Field(default=None, description="Of a run, in seconds.")

    def node(self, id: str) -> Node:
        """The node with this id. Raises KeyError."""
        for node in self.nodes:
            if node.id == id:
                return node
        raise KeyError(id)

    def to_json(self) -> dict[str, Any]:
        """The canonical form: parsing it again gives the same."""
        return {
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
            "entry_node": self.entry,
            **({} if self.timeout is None else {"timeout": self.timeout}),
        }


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop edge. `body` are the nodes that run again when it is taken; `rounds` is how often they
    run at most for this loop, the first time included."""

    edge: int
    source: str
    target: str
    body: frozenset[str]
    rounds: int


@dataclass(frozen=True, slots=True)
class Structure:
    """`order` is topological, ties in the order of the definition. Edges are indices into the
    definition's; `incoming` and `outgoing` exclude loops."""

    order: tuple[str, ...]
    incoming: Mapping[str, tuple[int, ...]]
    outgoing: Mapping[str, tuple[int, ...]]
    loops: tuple[Loop, ...]
    sinks: tuple[str, ...]


def structure_of(definition: Definition) -> Structure:
    """The structure of a valid definition."""
    ids = [node.id for node in definition.nodes]
    forward = [(at, edge) for at, edge in enumerate(definition.edges) if edge.type != "loop"]
    incoming = {id: tuple(at for at, edge in forward if edge.target == id) for id in ids}
    outgoing = {id: tuple(at for at, edge in forward if edge.source == id) for id in ids}
    turns = {node.id: node.max_iter for node in definition.nodes if node.type == "evaluator"}
    after = _successors(ids, (edge for _, edge in forward))
    before = _predecessors(after)
    loops = tuple(
        Loop(
            at,
            edge.source,
            edge.target,
            frozenset(reachable(edge.target, after) & reachable(edge.source, before)),
            edge.max_iter or turns.get(edge.source, DEFAULT_ROUNDS),
        )
        for at, edge in enumerate(definition.edges)
        if edge.type == "loop"
    )
    return Structure(
        order=tuple(topological_order(ids, after)[0]),
        incoming=incoming,
        outgoing=outgoing,
        loops=loops,
        sinks=tuple(id for id in ids if not outgoing[id]),
    )


def topological_order(
    ids: Sequence[str], after: Mapping[str, Sequence[str]]
) -> tuple[list[str], set[str]]:
    """The order, and the nodes in or after a cycle, which have none."""
    missing = dict.fromkeys(ids, 0)
    for id in ids:
        for each in after[id]:
            missing[each] += 1
    order: list[str] = []
    left = dict.fromkeys(ids)
    while ready := next((id for id in left if not missing[id]), None):
        del left[ready]
        order.append(ready)
        for each in after[ready]:
            missing[each] -= 1
    return order, set(left)


def reachable(start: str, after: Mapping[str, Sequence[str]]) -> set[str]:
    """All nodes reachable from `start`, and `start` itself."""
    reached, waiting = {start}, [start]
    while waiting:
        for each in after[waiting.pop()]:
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return reached


def check_structure(
    ids: Sequence[str], edges: Sequence[Edge], entry: str, faults: FaultList
) -> None:
    """Report cycles, unreachable nodes, and loops that lead nowhere or cross."""
    places = {id: at for at, id in enumerate(ids)}
    after = _successors(ids, (edge for edge in edges if edge.type != "loop"))
    _, left = topological_order(ids, after)
    if left:
        # For each cycle, the edges that lead back in the order of the definition.
        for at, edge in enumerate(edges):
            leads_back = edge.type != "loop" and places[edge.target] <= places[edge.source]
            if leads_back and edge.source in left and edge.source in reachable(edge.target, after):
                faults.add(
                    f"edges.{at}",
                    f"This closes a circle from “{edge.target}” to itself. Make it an edge of type"
                    " “loop”, which is bounded, or remove it.",
                )
        return
    for lost in [id for id in ids if id not in reachable(entry, after)]:
        faults.add(
            f"nodes.{places[lost]}",
            f"Nothing leads from the entry “{entry}” to “{lost}”. Add an edge to it, or remove it.",
        )
    if parents := [edge.source for edge in edges if edge.type != "loop" and edge.target == entry]:
        faults.add(
            "entry_node",
            f"An edge leads from “{parents[0]}” to the entry. Make it a loop, or enter elsewhere.",
        )
    _check_loops(edges, after, faults)


def _check_loops(
    edges: Sequence[Edge], after: Mapping[str, Sequence[str]], faults: FaultList
) -> None:
    before = _predecessors(after)
    bodies: list[tuple[int, set[str]]] = []
    for at, edge in enumerate(edges):
        if edge.type != "loop":
            continue
        body = reachable(edge.target, after) & reachable(edge.source, before)
        if not body:
            faults.add(
                f"edges.{at}",
                f"A loop leads back, and “{edge.target}” is not before “{edge.source}”. Make the"
                " edge direct or conditional.",
            )
            continue
        for other, nodes in bodies:
            if body & nodes and not (body <= nodes or nodes <= body):
                faults.add(
                    f"edges.{at}",
                    f"This loop crosses that of edges.{other}. Put one inside the other, or apart"
                    " from it.",
                )
        bodies.append((at, body))


def _successors(ids: Iterable[str], edges: Iterable[Edge]) -> dict[str, list[str]]:
    after: dict[str, list[str]] = {id: [] for id in ids}
    for edge in edges:
        after[edge.source].append(edge.target)
    return after


def _predecessors(after: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {id: [] for id in after}
    for id, targets in after.items():
        for target in targets:
            before[target].append(id)
    return before
