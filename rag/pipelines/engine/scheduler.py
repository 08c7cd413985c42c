"""Inputs, results and events of a run, which node is next (`Scheduler`), and the order of the
output (`OutputBuffer`). Without threads.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from rag.pipelines import conditions
from rag.pipelines.definition import MAX_EXECUTIONS, Definition, Edge, Loop, Node, structure_of

Clock = Callable[[], float]
CallKind = Literal["model", "tool", "task"]
RunState = Literal["done", "failed", "cancelled", "timed_out"]


class RunError(Exception):
    """A run that cannot continue. `state` is how it ended, `node` at which step, if any. `attempt`
    is a text that did not do, to be shown beside the error."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int = 500,
        state: RunState = "failed",
        node: str = "",
        attempt: str = "",
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.state: RunState = state
        self.node = node
        self.attempt = attempt


@dataclass(frozen=True, slots=True)
class NodeInput:
    """A parent's output. `sources` are the numbers of its passages; `is_feedback` says that it came
    back along a loop."""

    node: str
    output: str
    sources: frozenset[int] = frozenset()
    is_feedback: bool = False


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The result of a node. `output` goes to the nodes after it. `route` is a router's choice,
    `passed` whether a gate opens or an evaluator accepts, `score` an evaluator's score,
    `is_computed` and `value` what tables gave; `feedback` goes back along a loop, by default the
    output."""

    output: str
    route: str | None = None
    passed: bool | None = None
    score: float | None = None
    feedback: str | None = None
    is_computed: bool | None = None
    value: float | str | None = None
    sources: frozenset[int] = frozenset()


@dataclass(slots=True)
class CallRecord:
    """A call of a model or tool, or a sub-task with calls of its own, while it runs and after."""

    kind: CallKind
    name: str
    input: str
    started: float
    parent: "CallRecord | None" = None
    ended: float | None = None
    output: str = ""
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Ledger:
    """Records the calls of a node; complete up to where the node came, also if it failed."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: list[CallRecord] = []

    @contextmanager
    def use(
        self, kind: CallKind, name: str, input: str, *, parent: CallRecord | None = None
    ) -> Iterator[CallRecord]:
        """Record a call while it runs; the block fills in its results."""
        use = CallRecord(kind, name, input, self._clock(), parent)
        with self._lock:
            self._uses.append(use)
        try:
            yield use
        except BaseException as error:
            use.error = str(error) or type(error).__name__
            raise
        finally:
            use.ended = self._clock()

    @property
    def uses(self) -> tuple[CallRecord, ...]:
        """In the order in which they began."""
        with self._lock:
            return tuple(self._uses)

    @property
    def input_tokens(self) -> int:
        """Sum over all calls so far."""
        return sum(use.input_tokens for use in self.uses)

    @property
    def output_tokens(self) -> int:
        """Sum over all calls so far."""
        return sum(use.output_tokens for use in self.uses)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node's turn: the question of the run, and its active parents' outputs in the order of the
    definition.

    `iteration` counts the node's turns from 1, and `earlier` are the results of previous ones.
    `routes` are a router's choices. `may_repeat` says that a loop of the node has rounds left. Once
    `cancelled` is set nobody waits for the result. A node that streams the answer passes its pieces
    to `emit`.
    """

    node: Node
    question: str
    inputs: tuple[NodeInput, ...]
    iteration: int
    routes: tuple[str, ...]
    may_repeat: bool
    is_sink: bool
    earlier: tuple[NodeResult, ...]
    cancelled: threading.Event
    emit: Callable[[object], None]
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def sources(self) -> frozenset[int]:
        """Numbers of the passages behind the inputs."""
        return frozenset[int]().union(*(each.sources for each in self.inputs))


#: Runs a node; it is called in several threads at once. The messages of RagsiteError and
#: InferenceError are shown to the user.
Runner = Callable[[NodeCall], NodeResult]


@dataclass(frozen=True, slots=True)
class NodeStarted:
    """A node's turn has begun."""

    call: NodeCall
    at: float


@dataclass(frozen=True, slots=True)
class NodeEnded:
    """A node is done or was stopped. It has a `result` if it is done, else an `error`."""

    call: NodeCall
    started: float
    at: float
    state: Literal["done", "failed", "cancelled"]
    result: NodeResult | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A piece of the answer: a text, or another item that a node emitted."""

    node: str
    item: object


@dataclass(frozen=True, slots=True)
class RunFinished:
    """Always the last event. `output` is the answer; if the run failed, what there was of it."""

    state: RunState
    output: str
    started: float
    at: float
    code: str = ""
    detail: str = ""
    status: int = 200
    node: str = ""
    attempt: str = ""


EngineEvent = NodeStarted | NodeEnded | OutputPiece | RunFinished


NodeState = Literal["waiting", "begun", "ended", "inactive"]


class Scheduler:
    """The state of a run: which nodes are ready, which edges are taken, which loops repeat. An edge
    is open until its source has ended or is known never to begin; then it is taken or not. An edge
    that leaves a loop stays open until the loop no longer repeats. A node is ready when none of its
    edges is open and one is taken; if none is taken it is inactive."""

    def __init__(self, definition: Definition, question: str) -> None:
        self._definition = definition
        self._question = question
        self._structure = structure_of(definition)
        self._edges = definition.edges
        self._state: dict[str, NodeState] = dict.fromkeys(self._structure.order, "waiting")
        self._taken: dict[int, bool] = {}
        self._results: dict[str, list[NodeResult]] = {id: [] for id in self._structure.order}
        self._feedback: dict[str, NodeInput] = {}
        self._rounds: Counter[int] = Counter()
        self._settled: set[int] = set()
        self._executions = 0
        self._conditions = {
            edge.condition: conditions.parse_condition(edge.condition)[0]
            for edge in definition.edges
            if edge.condition
        }
        self._types = {node.id: node.type for node in definition.nodes}

    def begin(self) -> list[str]:
        """Nodes whose turn has come, in a deterministic order. Each is returned once."""
        ready: list[str] = []
        settled = -1
        # A node that never begins may end a loop, which decides about nodes before it in the order.
        while settled < len(self._settled):
            settled = len(self._settled)
            for id in self._structure.order:
                if self._is_ready(id):
                    self._state[id] = "begun"
                    ready.append(id)
        self._executions += len(ready)
        if self._executions > MAX_EXECUTIONS:
            raise RunError(
                "too_many_steps",
                f"The pipeline ran {MAX_EXECUTIONS:,} steps and is not done. Give its loops fewer"
                " rounds.",
                status=409,
            )
        return ready

    def end(self, id: str, result: NodeResult) -> None:
        """Record a node's result. Raises RunError for an unknown route."""
        self._state[id] = "ended"
        self._results[id].append(result)
        if self._types[id] == "router" and result.route not in self.routes(id):
            raise RunError(
                "unknown_route",
                f"The router “{id}” chose “{(result.route or '')[:100]}”. It may choose:"
                f" {', '.join(self.routes(id))}. Say so more clearly in its prompt.",
                status=502,
                node=id,
            )
        for loop in self._loops_from(id):
            edge = self._edges[loop.edge]
            # A passing evaluator or gate leads on, not back.
            is_judge = self._types[id] in ("evaluator", "gate")
            is_wanted = not (is_judge and result.passed)
            if edge.condition:
                is_wanted = self._holds(edge, result)
            if not (is_wanted and self._has_rounds(loop)):
                continue
            self._rounds[loop.edge] += 1
            for inside in loop.body:
                self._state[inside] = "waiting"
                self._feedback.pop(inside, None)
                self._settled.difference_update(each.edge for each in self._loops_from(inside))
                for at in self._structure.outgoing[inside]:
                    self._taken.pop(at, None)
            back = result.output if result.feedback is None else result.feedback
            self._feedback[loop.target] = NodeInput(id, back, result.sources, is_feedback=True)
            return
        self._settled.update(loop.edge for loop in self._loops_from(id))
        for at in self._structure.outgoing[id]:
            edge = self._edges[at]
            if self._types[id] == "router":
                self._taken[at] = edge.route == result.route
            elif edge.condition:
                self._taken[at] = self._holds(edge, result)
            else:
                self._taken[at] = self._types[id] != "gate" or bool(result.passed)

    def inputs(self, id: str) -> tuple[NodeInput, ...]:
        """Outputs of a node's active parents in the order of the definition, and last the feedback
        along a loop."""
        parents = {self._edges[at].source for at in self._structure.incoming[id] if self._taken[at]}
        handed = [
            NodeInput(node.id, self.latest(node.id).output, self.latest(node.id).sources)
            for node in self._definition.nodes
            if node.id in parents
        ]
        back = self._feedback.get(id)
        return (*handed, back) if back else tuple(handed)

    def latest(self, id: str) -> NodeResult:
        """A node's last result. Raises IndexError if it never ended."""
        return self._results[id][-1]

    def earlier(self, id: str) -> tuple[NodeResult, ...]:
        """The results of all turns of a node."""
        return tuple(self._results[id])

    def routes(self, id: str) -> tuple[str, ...]:
        """The routes a router may choose."""
        return tuple(self._edges[at].route for at in self._structure.outgoing[id])

    def may_repeat(self, id: str) -> bool:
        """Whether a loop from here has rounds left."""
        return any(self._has_rounds(loop) for loop in self._loops_from(id))

    @property
    def sinks(self) -> tuple[str, ...]:
        """Nodes without successors, in the order of the definition."""
        return self._structure.sinks

    def is_looped(self, id: str) -> bool:
        """Whether a node may have another turn."""
        return any(id in loop.body for loop in self._structure.loops)

    def is_over(self, id: str) -> bool:
        """Whether a node has had its last turn, or never gets one."""
        is_settled = all(
            loop.edge in self._settled for loop in self._structure.loops if id in loop.body
        )
        return self._state[id] == "inactive" or (self._state[id] == "ended" and is_settled)

    def has_ended(self, id: str) -> bool:
        return self._state[id] == "ended"

    def stops(self) -> list[str]:
        """Nodes at which the run stopped: they ended, and no edge from them was taken."""
        return [
            node.id
            for node in self._definition.nodes
            if self._state[node.id] == "ended"
            and not any(self._taken.get(at) for at in self._structure.outgoing[node.id])
        ]

    def _is_ready(self, id: str) -> bool:
        """Called in topological order, so that inactive nodes are known before their successors."""
        if self._state[id] != "waiting":
            return False
        if id == self._definition.entry:
            return True
        ways = []
        for at in self._structure.incoming[id]:
            edge = self._edges[at]
            leaves_open_loop = any(
                edge.source in loop.body
                and edge.target not in loop.body
                and loop.edge not in self._settled
                for loop in self._structure.loops
            )
            ways.append(None if leaves_open_loop else self._taken.get(at))
        if None in ways:
            return False
        if any(ways):
            return True
        self._state[id] = "inactive"
        self._settled.update(loop.edge for loop in self._loops_from(id))
        for at in self._structure.outgoing[id]:
            self._taken[at] = False
        return False

    def _holds(self, edge: Edge, result: NodeResult) -> bool:
        facts = {
            "output": result.output,
            "question": self._question,
            "iteration": len(self._results[edge.source]),
            "score": result.score,
            "passed": result.passed,
            "is_computed": result.is_computed,
            "value": result.value,
        }
        return bool(self._conditions[edge.condition](facts))

    def _loops_from(self, id: str) -> Iterator[Loop]:
        return (loop for loop in self._structure.loops if loop.source == id)

    def _has_rounds(self, loop: Loop) -> bool:
        return self._rounds[loop.edge] + 1 < loop.rounds


SINK_SEPARATOR = "\n\n"


class OutputBuffer:
    """Emits a sink's pieces as they come once all earlier sinks are over, and buffers the others'.
    A sink that may have another turn is buffered until its last one. What other nodes emit is
    buffered in case the run stops there. A node that emitted nothing gives its output as one
    piece."""

    def __init__(self, flow: Scheduler) -> None:
        self._flow = flow
        self._waiting = list(flow.sinks)
        self._kept: dict[str, list[object]] = {}
        self._text: list[str] = []
        self._last = ""

    @property
    def text(self) -> str:
        return "".join(self._text)

    def begin(self, id: str) -> None:
        """A node's turn begins: discard what it emitted in an earlier one."""
        self._kept.pop(id, None)

    def add(self, id: str, item: object) -> list[OutputPiece]:
        """Add a node's piece; returns the pieces that may go out now."""
        self._kept.setdefault(id, []).append(item)
        return self.flush()

    def flush(self) -> list[OutputPiece]:
        """The pieces that may go out now."""
        out: list[OutputPiece] = []
        while self._waiting:
            id = self._waiting[0]
            is_over = self._flow.is_over(id)
            if is_over or not self._flow.is_looped(id):
                out += self._send(id, is_over=is_over)
            if not is_over:
                break
            self._waiting.pop(0)
        return out

    def rest(self) -> list[OutputPiece]:
        """The output at which the run stopped, if no sink was reached."""
        if self._last:
            return []
        return [piece for id in self._flow.stops() for piece in self._send(id, is_over=True)]

    def _send(self, id: str, *, is_over: bool) -> list[OutputPiece]:
        if is_over and not self._flow.has_ended(id):
            return []
        if is_over and id not in self._kept:
            self._kept[id] = [self._flow.latest(id).output]
        items = self._kept.get(id, [])
        if items and self._last not in ("", id):
            items = [SINK_SEPARATOR, *items]
        if items:
            self._last = id
            self._kept[id] = []
        self._text += [item for item in items if isinstance(item, str)]
        return [OutputPiece(id, item) for item in items]
