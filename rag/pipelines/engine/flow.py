"""Whose turn it is: which nodes are ready, which ways are taken, which loops go round. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from rag.pipelines import conditions
from rag.pipelines.definition import Definition, Edge
from rag.pipelines.engine.calls import Input, NodeResult, RunError
from rag.pipelines.limits import MAX_EXECUTIONS
from rag.pipelines.structure import Loop, structure_of

NodeState = Literal["waiting", "begun", "ended", "inactive"]


class Flow:
    """The state of a run.

    An edge is open until its source has ended or is known never to begin; it is then taken or not.
    One that leads out of a loop stays open until the loop goes round no more. A node is ready when
    none of its edges is open and one is taken; if none is taken it is inactive.
    """

    def __init__(self, definition: Definition, question: str) -> None:
        self._definition = definition
        self._question = question
        self._structure = structure_of(definition)
        self._edges = definition.edges
        self._state: dict[str, NodeState] = dict.fromkeys(self._structure.order, "waiting")
        self._taken: dict[int, bool] = {}
        self._results: dict[str, list[NodeResult]] = {id: [] for id in self._structure.order}
        self._feedback: dict[str, Input] = {}
        self._rounds: Counter[int] = Counter()
        self._settled: set[int] = set()
        self._executions = 0
        self._conditions = {
            edge.condition: conditions.parse(edge.condition)
            for edge in definition.edges
            if edge.condition
        }
        self._types = {node.id: node.type for node in definition.nodes}

    def begin(self) -> list[str]:
        """Nodes whose turn it is now, in one order whatever ended first. Each is told once."""
        ready = [id for id in self._structure.order if self._is_ready(id)]
        for id in ready:
            self._state[id] = "begun"
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
        """What came of a node. Raises RunError for a way that there is not."""
        self._state[id] = "ended"
        self._results[id].append(result)
        self._check_route(id, result)
        for loop in self._loops_from(id):
            if self._goes_round(loop, result):
                self._again(loop, result)
                return
        self._settled.update(loop.edge for loop in self._loops_from(id))
        for at in self._structure.outgoing[id]:
            self._taken[at] = self._takes(self._edges[at], result)

    def inputs(self, id: str) -> tuple[Input, ...]:
        """What the active parents of a node handed on, in the order of the definition, and last
        what came back to it along a loop."""
        parents = {self._edges[at].source for at in self._structure.incoming[id] if self._taken[at]}
        handed = [
            Input(node.id, self.latest(node.id).output, self.latest(node.id).sources)
            for node in self._definition.nodes
            if node.id in parents
        ]
        back = self._feedback.get(id)
        return (*handed, back) if back else tuple(handed)

    def latest(self, id: str) -> NodeResult:
        """What came of a node that ended. Raises IndexError for one that never did."""
        return self._results[id][-1]

    def earlier(self, id: str) -> tuple[NodeResult, ...]:
        """What came of all turns of a node."""
        return tuple(self._results[id])

    def routes(self, id: str) -> tuple[str, ...]:
        """What a router may choose from."""
        return tuple(self._edges[at].route for at in self._structure.outgoing[id])

    def may_repeat(self, id: str) -> bool:
        """Whether a loop from here has rounds left."""
        return any(self._has_rounds(loop) for loop in self._loops_from(id))

    @property
    def sinks(self) -> tuple[str, ...]:
        """Nodes behind which there is none, in the order of the definition."""
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
        """Whether it ran."""
        return self._state[id] == "ended"

    def stops(self) -> list[str]:
        """Nodes at which the run came to rest: those that ended and from which no way was taken."""
        return [
            node.id
            for node in self._definition.nodes
            if self._state[node.id] == "ended"
            and not any(self._taken.get(at) for at in self._structure.outgoing[node.id])
        ]

    def _is_ready(self, id: str) -> bool:
        """In topological order, so that what never begins is known before what waits for it."""
        if self._state[id] != "waiting":
            return False
        if id == self._definition.entry:
            return True
        ways = [self._way(at) for at in self._structure.incoming[id]]
        if None in ways:
            return False
        if any(ways):
            return True
        self._state[id] = "inactive"
        self._settled.update(loop.edge for loop in self._loops_from(id))
        for at in self._structure.outgoing[id]:
            self._taken[at] = False
        return False

    def _way(self, at: int) -> bool | None:
        """Whether an edge is taken; None while it is open."""
        edge = self._edges[at]
        for loop in self._structure.loops:
            leads_out = edge.source in loop.body and edge.target not in loop.body
            if leads_out and loop.edge not in self._settled:
                return None
        return self._taken.get(at)

    def _takes(self, edge: Edge, result: NodeResult) -> bool:
        type = self._types[edge.source]
        if type == "router":
            return edge.route == result.route
        if edge.condition:
            return self._holds(edge, result)
        return bool(result.passed) if type == "gate" else True

    def _holds(self, edge: Edge, result: NodeResult) -> bool:
        facts = {
            "output": result.output,
            "question": self._question,
            "iteration": len(self._results[edge.source]),
            "score": result.score,
            "passed": result.passed,
        }
        return self._conditions[edge.condition].holds(facts)

    def _loops_from(self, id: str) -> Iterator[Loop]:
        return (loop for loop in self._structure.loops if loop.source == id)

    def _has_rounds(self, loop: Loop) -> bool:
        return self._rounds[loop.edge] + 1 < loop.rounds

    def _goes_round(self, loop: Loop, result: NodeResult) -> bool:
        edge = self._edges[loop.edge]
        if not self._has_rounds(loop) or (edge.condition and not self._holds(edge, result)):
            return False
        # An evaluator or gate that is content leads on, not back.
        is_judge = self._types[edge.source] in ("evaluator", "gate")
        return bool(edge.condition) or not (is_judge and result.passed)

    def _again(self, loop: Loop, result: NodeResult) -> None:
        self._rounds[loop.edge] += 1
        for id in loop.body:
            self._state[id] = "waiting"
            self._feedback.pop(id, None)
            self._settled.difference_update(each.edge for each in self._loops_from(id))
            for at in self._structure.outgoing[id]:
                self._taken.pop(at, None)
        back = result.output if result.feedback is None else result.feedback
        self._feedback[loop.target] = Input(loop.source, back, result.sources, is_feedback=True)

    def _check_route(self, id: str, result: NodeResult) -> None:
        if self._types[id] == "router" and result.route not in self.routes(id):
            raise RunError(
                "unknown_route",
                f"The router “{id}” chose “{(result.route or '')[:100]}”. It may choose:"
                f" {', '.join(self.routes(id))}. Say so more clearly in its prompt.",
                status=502,
                node=id,
            )
