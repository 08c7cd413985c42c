"""On random graphs, in any order in which nodes may end, the engine does what it promises."""

from collections import Counter
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.pipelines.definition import structure_of
from rag.pipelines.engine.scheduler import NodeEnded, NodeStarted
from rag.pipelines.validation import parse_definition
from rag.tests.graphs import Choices, finish, graphs, happenings, looped_graphs, reference

seeds = st.integers(0, 2**32)
bounds = st.integers(1, 5)


@given(graphs(), seeds, seeds, bounds)
@settings(max_examples=150)
def test_it_does_what_reckoning_node_by_node_does(
    whole: dict[str, Any], seed: int, order: int, parallel: int
) -> None:
    definition, choices = parse_definition(whole), Choices(seed)
    told = happenings(definition, choices, Random(order), parallel=parallel)
    outputs = {
        each.call.node.id: each.result.output
        for each in told
        if isinstance(each, NodeEnded) and each.result
    }
    assert outputs == reference(definition, choices)
    assert finish(told).state == "done"


@given(graphs(), seeds, seeds, bounds)
def test_a_node_runs_once_after_all_its_active_parents(
    whole: dict[str, Any], seed: int, order: int, parallel: int
) -> None:
    definition, choices = parse_definition(whole), Choices(seed)
    active = reference(definition, choices).keys()
    begun: list[str] = []
    ended: set[str] = set()
    for each in happenings(definition, choices, Random(order), parallel=parallel):
        if isinstance(each, NodeStarted):
            id = each.call.node.id
            parents = {edge.source for edge in definition.edges if edge.target == id}
            assert parents & active <= ended
            begun.append(id)
            assert len(begun) - len(ended) <= parallel
        elif isinstance(each, NodeEnded):
            ended.add(each.call.node.id)
    assert sorted(begun) == sorted(active)


@given(graphs(), seeds, seeds, seeds)
def test_the_answer_is_the_same_whatever_ends_first(
    whole: dict[str, Any], seed: int, one: int, other: int
) -> None:
    definition, choices = parse_definition(whole), Choices(seed)
    first, second = (
        finish(happenings(definition, choices, Random(order))).output for order in (one, other)
    )
    assert first == second
    outputs = reference(definition, choices)
    sinks = [outputs[id] for id in structure_of(definition).sinks if id in outputs]
    if sinks:
        assert first == "\n\n".join(sinks)


@given(looped_graphs(), seeds, seeds, bounds)
@settings(max_examples=150)
def test_loops_are_bounded_and_nothing_rests_on_what_was_done_again(
    whole: dict[str, Any], seed: int, order: int, parallel: int
) -> None:
    definition = parse_definition(whole)
    told = happenings(definition, Choices(seed), Random(order), parallel=parallel)
    assert finish(told).state == "done"
    turns = Counter(each.call.node.id for each in told if isinstance(each, NodeStarted))
    structure = structure_of(definition)
    for id, number in turns.items():
        around = sum(loop.rounds - 1 for loop in structure.loops if id in loop.body)
        assert number <= 1 + around
    latest: dict[str, str] = {}
    for each in told:
        if isinstance(each, NodeStarted):
            handed = {one.node: one.output for one in each.call.inputs if not one.is_feedback}
            assert handed == {id: latest[id] for id in handed}
        elif isinstance(each, NodeEnded) and each.result:
            latest[each.call.node.id] = each.result.output
    for each in told:
        if isinstance(each, NodeEnded):
            for one in each.call.inputs:
                within = {one.node, each.call.node.id}
                goes_round = any(within <= loop.body for loop in structure.loops)
                assert goes_round or one.output == latest[one.node]


#: That the first sink never begins is known when a loop behind it never begins.
_LATE = {
    "id": "p",
    "entry_node": "n0",
    "nodes": [
        {"id": id, "type": "llm"} for id in ("n5", "n2", "n3", "n4", "n0", "n6")
    ] + [{"id": "n1", "type": "gate", "condition": "iteration >= 1"}],
    "edges": [
        {"from": "n0", "to": "n1", "type": "conditional", "condition": "iteration >= 1"},
        {"from": "n0", "to": "n2", "type": "conditional", "condition": "iteration >= 1"},
        *({"from": "n0", "to": id, "type": "direct"} for id in ("n3", "n4")),
        *({"from": "n1", "to": id, "type": "direct"} for id in ("n5", "n6")),
        {"from": "n6", "to": "n1", "type": "loop", "max_iter": 1},
    ],
}  # fmt: skip


@example(_LATE, 1, 0, 1)
@given(looped_graphs(), seeds, seeds, seeds)
def test_loops_give_the_same_answer_whatever_ends_first(
    whole: dict[str, Any], seed: int, one: int, other: int
) -> None:
    definition = parse_definition(whole)
    first, second = (
        finish(happenings(definition, Choices(seed), Random(order))).output
        for order in (one, other)
    )
    assert first == second
