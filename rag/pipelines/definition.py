"""A pipeline as data: limits, node types, nodes, edges, their JSON, and the structure of the graph.
Begin with `Definition`. Without Django.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from common.errors import RagsiteError
from common.translation import gettext_noop

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


@dataclass(frozen=True, slots=True)
class NodeOption:
    """A field that only some node types have."""

    name: str
    kind: Literal["text", "number", "integer", "choice", "condition", "workers"]
    meaning: str
    default: Any = None
    low: float = 0
    high: float = 1
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type. `turns` is the default of `max_iter`, None if it takes none."""

    name: str
    meaning: str
    needs_model: ModelNeed
    prompt: bool = True
    tools: bool = False
    turns: int | None = None
    options: tuple[NodeOption, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of all fields such a node may have."""
        named = {"prompt": self.prompt, "model": self.needs_model != "never", "tools": self.tools}
        taken = [name for name, has in named.items() if has]
        rounds = ["max_iter"] if self.turns is not None else []
        return ("id", "type", *taken, *rounds, "timeout", *(each.name for each in self.options))


_MAX_TASKS_OPTION = NodeOption("max_tasks", "integer", "Sub-tasks, at most.", 5, 1, 20)

_NODE_TYPES = (
    NodeType(
        "llm",
        gettext_noop("Asks the chat model once and outputs its reply."),
        "if there is one",
    ),
    NodeType(
        "worker",
        gettext_noop(
            "Lets the chat model call tools until it answers, for `max_iter` turns at most; one"
            " last turn without tools then answers."
        ),
        "if there is one",
        tools=True,
        turns=10,
    ),
    NodeType(
        "router", gettext_noop("Lets the chat model choose one of its edges by name."), "always"
    ),
    NodeType(
        "gate",
        gettext_noop("Passes input that meets its condition."),
        "never",
        prompt=False,
        options=(
            NodeOption("condition", "condition", "What must hold of the input.", required=True),
        ),
    ),
    NodeType(
        "aggregator",
        gettext_noop("Joins the outputs of its parents."),
        "never",
        prompt=False,
        options=(NodeOption("separator", "text", "Between two of them.", "\n\n", high=200),),
    ),
    NodeType(
        "orchestrator",
        gettext_noop("Plans independent subtasks and runs them in parallel."),
        "always",
        tools=True,
        turns=5,
        options=(_MAX_TASKS_OPTION,),
    ),
    NodeType(
        "evaluator",
        gettext_noop("Scores its input from 0 to 1; below `threshold` its loop edge leads back."),
        "always",
        turns=DEFAULT_ROUNDS,
        options=(
            NodeOption("threshold", "number", "The least score that will do.", 0.7),
            NodeOption(
                "on_exhausted",
                "choice",
                "When all rounds are used up: go on with the best, or fail.",
                "best",
                choices=("best", "fail"),
            ),
            NodeOption(
                "syntax",
                "choice",
                "Whether code blocks that cannot be parsed score 0, and the model is not asked.",
                "ignore",
                choices=("ignore", "check"),
            ),
        ),
    ),
    NodeType(
        "synthesizer",
        gettext_noop("Combines the outputs of its parents into one answer with citations."),
        "if there is one",
    ),
    NodeType(
        "coordinator",
        gettext_noop(
            "Assigns steps to its workers one after the other. Each sees the results of"
            " earlier steps."
        ),
        "always",
        turns=5,
        options=(
            NodeOption("workers", "workers", "Who may be given a step.", required=True),
            _MAX_TASKS_OPTION,
        ),
    ),
    NodeType(
        "sql",
        gettext_noop(
            "Answers from a catalogued database: writes a query and checks it against the"
            " catalogue."
        ),
        "always",
        turns=2,
        options=(
            NodeOption("collection", "text", "Slug of the catalogue. Default: any.", "", high=63),
            NodeOption("dialect", "text", "Of the SQL. Default: the catalogue's.", "", high=30),
        ),
    ),
)

NODE_TYPES: Mapping[str, NodeType] = {kind.name: kind for kind in _NODE_TYPES}


EdgeType = Literal["direct", "conditional", "loop"]
EDGE_TYPES: tuple[EdgeType, ...] = ("direct", "conditional", "loop")

DEFAULT_TEMPERATURE = 0.7
DEFAULT_MAX_TOKENS = 4_096


def _without_defaults(item: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, as in JSON."""
    given = {field.name: (getattr(item, field.name), field.default) for field in fields(item)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, (value, default) in given.items()
        if value != default
    }


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which chat model, and with what options. Without a name it is the run's, or the default."""

    name: str = ""
    temperature: float = DEFAULT_TEMPERATURE
    max_tokens: int = DEFAULT_MAX_TOKENS
    top_p: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The options that differ from the defaults."""
        return _without_defaults(self)


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker that a coordinator may assign steps to."""

    name: str
    prompt: str = ""
    tools: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Its fields as in a definition."""
        return _without_defaults(self)


@dataclass(frozen=True, slots=True)
class Node:
    """A step. `max_iter` is 0 for types without turns; `options` are those of its type, with
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
    def kind(self) -> NodeType:
        """The `NodeType` of this node."""
        return NODE_TYPES[self.type]

    def to_json(self) -> dict[str, Any]:
        """Its fields as in a definition, without defaults."""
        given = _without_defaults(self)
        for option in self.kind.options:
            value = self.options[option.name]
            if value != option.default:
                given[option.name] = (
                    [worker.to_json() for worker in value] if option.kind == "workers" else value
                )
        if "model" in given:
            given["model"] = self.model.to_json()
        if self.max_iter == (self.kind.turns or 0):
            given.pop("max_iter", None)
        return {name: value for name, value in given.items() if name != "options"}


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from a node to the next. `name` is the route's name for a router, by default
    `target`. `max_iter` is for loops: the maximum number of rounds, the first included."""

    source: str
    target: str
    type: EdgeType = "direct"
    condition: str = ""
    name: str = ""
    max_iter: int | None = None

    @property
    def route(self) -> str:
        """The name by which a router chooses it."""
        return self.name or self.target

    def to_json(self) -> dict[str, Any]:
        """Its fields as in a definition."""
        given = _without_defaults(self)
        ends = {"from": given.pop("source"), "to": given.pop("target"), "type": self.type}
        return {**ends, **given}


@dataclass(frozen=True, slots=True)
class Definition:
    """A valid pipeline, made by `rag.pipelines.validation.parse_definition` or the builder."""

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
