"""How nodes hang together: order, loops, and what is wrong with them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rag.pipelines.definition import Definition, Edge
from rag.pipelines.faults import Faults
from rag.pipelines.limits import DEFAULT_ROUNDS


@dataclass(frozen=True, slots=True)
class Loop:
    """A way back. `body` are the nodes that run again when it is taken; `rounds` is how often they
    run at most, for this loop, the first time included."""

    edge: int
    source: str
    target: str
    body: frozenset[str]
    rounds: int


@dataclass(frozen=True, slots=True)
class Structure:
    """`order` is topological, and that of the definition where either may come first. Edges are
    named by their place in the definition; `incoming` and `outgoing` leave loops out."""

    order: tuple[str, ...]
    incoming: Mapping[str, tuple[int, ...]]
    outgoing: Mapping[str, tuple[int, ...]]
    loops: tuple[Loop, ...]
    sinks: tuple[str, ...]


def structure_of(definition: Definition) -> Structure:
    """Of a definition that was checked."""
    ids = [node.id for node in definition.nodes]
    forward = [(at, edge) for at, edge in enumerate(definition.edges) if edge.type != "loop"]
    incoming = {id: tuple(at for at, edge in forward if edge.target == id) for id in ids}
    outgoing = {id: tuple(at for at, edge in forward if edge.source == id) for id in ids}
    turns = {node.id: node.max_iter for node in definition.nodes if node.type == "evaluator"}
    after = _successors(ids, (edge for _, edge in forward))
    before = _reversed(after)
    loops = tuple(
        Loop(
            at,
            edge.source,
            edge.target,
            frozenset(reach(edge.target, after) & reach(edge.source, before)),
            edge.max_iter or turns.get(edge.source, DEFAULT_ROUNDS),
        )
        for at, edge in enumerate(definition.edges)
        if edge.type == "loop"
    )
    return Structure(
        order=tuple(topological(ids, after)[0]),
        incoming=incoming,
        outgoing=outgoing,
        loops=loops,
        sinks=tuple(id for id in ids if not outgoing[id]),
    )


def topological(
    ids: Sequence[str], after: Mapping[str, Sequence[str]]
) -> tuple[list[str], set[str]]:
    """The order, and what is left because it stands in a cycle or behind one."""
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


def reach(start: str, after: Mapping[str, Sequence[str]]) -> set[str]:
    """All that can be got to, and the start itself."""
    reached, waiting = {start}, [start]
    while waiting:
        for each in after[waiting.pop()]:
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return reached


def check_structure(ids: Sequence[str], edges: Sequence[Edge], entry: str, faults: Faults) -> None:
    """Note cycles, nodes that nothing leads to, and loops that lead nowhere or cross."""
    places = {id: at for at, id in enumerate(ids)}
    after = _successors(ids, (edge for edge in edges if edge.type != "loop"))
    _, left = topological(ids, after)
    if left:
        _name_cycles(ids, edges, after, left, faults)
        return
    for lost in [id for id in ids if id not in reach(entry, after)]:
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


def _name_cycles(
    ids: Sequence[str],
    edges: Sequence[Edge],
    after: Mapping[str, Sequence[str]],
    left: set[str],
    faults: Faults,
) -> None:
    """Of each circle the edges that lead back in the order of the definition."""
    places = {id: at for at, id in enumerate(ids)}
    for at, edge in enumerate(edges):
        leads_back = edge.type != "loop" and places[edge.target] <= places[edge.source]
        if leads_back and edge.source in left and edge.source in reach(edge.target, after):
            faults.add(
                f"edges.{at}",
                f"This closes a circle from “{edge.target}” to itself. Make it an edge of type"
                " “loop”, which is bounded, or remove it.",
            )


def _check_loops(edges: Sequence[Edge], after: Mapping[str, Sequence[str]], faults: Faults) -> None:
    before = _reversed(after)
    bodies: list[tuple[int, set[str]]] = []
    for at, edge in enumerate(edges):
        if edge.type != "loop":
            continue
        body = reach(edge.target, after) & reach(edge.source, before)
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


def _reversed(after: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {id: [] for id in after}
    for id, targets in after.items():
        for target in targets:
            before[target].append(id)
    return before
