"""Random pipelines, who runs them in any order, and what should come of them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import strategies as st

from rag.pipelines.definition import Definition, Edge, PipelineError, structure_of
from rag.pipelines.engine.executor import run
from rag.pipelines.engine.scheduler import EngineEvent, NodeCall, NodeResult, RunFinished
from rag.pipelines.validation import parse_definition

TYPES = ("llm", "aggregator", "gate", "router")
TRUE, FALSE = "iteration >= 1", "iteration < 1"


class ManualCrew:
    """Runs what was started one by one, in an order of its own, when somebody waits for news."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._started: list[Callable[[], None]] = []
        self._posted: list[object] = []
        self.most = 0

    def start(self, task: Callable[[], None], *, name: str) -> None:
        self._started.append(task)
        self.most = max(self.most, len(self._started))

    def post(self, message: object) -> None:
        self._posted.append(message)

    def take(self, seconds: float) -> list[object]:
        for _ in range(self._random.randint(1, max(1, len(self._started)))):
            if self._started:
                self._started.pop(self._random.randrange(len(self._started)))()
        taken, self._posted = self._posted, []
        return taken


def node(id: str, type: str = "llm", **fields: Any) -> dict[str, Any]:
    """A node of a definition, with what its type cannot do without."""
    needed: dict[str, Any] = {"condition": "iteration >= 1"} if type == "gate" else {}
    return {"id": id, "type": type, **needed, **fields}


def edge(source: str, target: str, type: str = "direct", **fields: Any) -> dict[str, Any]:
    """An edge of a definition."""
    return {"from": source, "to": target, "type": type, **fields}


def pipeline(*parts: dict[str, Any], **fields: Any) -> Definition:
    """A definition of nodes and edges; the first node is the entry."""
    nodes = [part for part in parts if "id" in part]
    edges = [part for part in parts if "from" in part]
    entry = nodes[0]["id"]
    return parse_definition(
        {"id": "p", "nodes": nodes, "edges": edges, "entry_node": entry, **fields}
    )


@st.composite
def graphs(draw: st.DrawFn, *, types: tuple[str, ...] = TYPES) -> dict[str, Any]:
    """JSON of an acyclic pipeline in which every node is led to, defined in any order."""
    number = draw(st.integers(1, 8))
    ids = [f"n{at}" for at in range(number)]
    nodes = [node(id, draw(st.sampled_from(types))) for id in ids]
    pairs = {(draw(st.integers(0, at - 1)), at) for at in range(1, number)}
    if number > 1:
        more = st.tuples(st.integers(0, number - 2), st.integers(1, number - 1))
        pairs |= {pair for pair in draw(st.sets(more, max_size=8)) if pair[0] < pair[1]}
    edges = [_edge(draw, nodes, *pair) for pair in sorted(pairs)]
    for at, each in enumerate(nodes):  # a router chooses among some
        if each["type"] == "router" and not any(pair[0] == at for pair in pairs):
            nodes[at] = node(each["id"])
    shuffled = draw(st.permutations(nodes))
    return {"id": "p", "nodes": shuffled, "edges": edges, "entry_node": "n0"}


def _edge(draw: st.DrawFn, nodes: list[dict[str, Any]], source: int, target: int) -> dict[str, Any]:
    ends = (f"n{source}", f"n{target}")
    if nodes[source]["type"] == "router" or draw(st.booleans()):
        return edge(*ends)
    return edge(*ends, type="conditional", condition=draw(st.sampled_from([TRUE, FALSE])))


@st.composite
def looped_graphs(draw: st.DrawFn) -> dict[str, Any]:
    """The same with edges that lead back, each bounded, none crossing another."""
    whole = draw(graphs(types=("llm", "gate", "evaluator")))
    number = len(whole["nodes"])
    back = st.tuples(st.integers(0, number - 1), st.integers(0, number - 1))
    for low, high in sorted(draw(st.sets(back, min_size=1, max_size=4))):
        rounds = draw(st.integers(1, 3))
        loop = edge(f"n{high}", f"n{low}", type="loop", max_iter=rounds)
        with suppress(PipelineError):
            parse_definition({**whole, "edges": [*whole["edges"], loop]})
            whole["edges"].append(loop)
    return whole


def told(call: NodeCall) -> str:
    """An output that says what it was made of."""
    return f"{call.node.id}#{call.iteration}({','.join(each.output for each in call.inputs)})"


class Choices:
    """What gates, routers and evaluators decide: by chance, and the same however often asked."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def of(self, id: str, iteration: int) -> Random:
        """The chance of a node's turn."""
        return Random(f"{self._seed}-{id}-{iteration}")

    def result(self, call: NodeCall) -> NodeResult:
        """What a node of any type answers."""
        chance = self.of(call.node.id, call.iteration)
        return NodeResult(
            told(call),
            route=chance.choice(call.routes) if call.node.type == "router" else None,
            passed=chance.random() < 0.5,
            score=0.5,
        )


def happenings(
    definition: Definition, choices: Choices, order: Random, **options: Any
) -> list[EngineEvent]:
    """All that happens when nodes end in any order."""
    return list(
        run(definition, question="?", runner=choices.result, executor=ManualCrew(order), **options)
    )


def finish(told: list[EngineEvent]) -> RunFinished:
    """How it ended."""
    last = told[-1]
    assert isinstance(last, RunFinished)
    return last


def reference(definition: Definition, choices: Choices) -> Mapping[str, str]:
    """What each node of an acyclic pipeline gives, reckoned one after the other; inactive ones are
    missing."""
    outputs: dict[str, str] = {}
    places = [each.id for each in definition.nodes]
    for id in structure_of(definition).order:
        taken = [
            each.source
            for each in definition.edges
            if each.target == id and each.source in outputs and _takes(definition, each, choices)
        ]
        if taken or id == definition.entry:
            handed = [outputs[each] for each in sorted(taken, key=places.index)]
            outputs[id] = f"{id}#1({','.join(handed)})"
    return outputs


def _takes(definition: Definition, edge: Edge, choices: Choices) -> bool:
    type = definition.node(edge.source).type
    chance = choices.of(edge.source, 1)
    if type == "router":
        routes = [each.target for each in definition.edges if each.source == edge.source]
        return bool(chance.choice(routes) == edge.target)
    if edge.condition:
        return edge.condition == TRUE
    return type != "gate" or chance.random() < 0.5
