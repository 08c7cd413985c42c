"""The engine with real threads, and with a clock and an order of one's own."""

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from common.errors import InvalidInput
from inference.cancellation import Cancelled
from inference.interfaces import BackendUnavailable
from rag.pipelines.definition import MAX_OUTPUT_CHARACTERS
from rag.pipelines.engine.executor import ThreadExecutor, run
from rag.pipelines.engine.scheduler import (
    EngineEvent,
    NodeCall,
    NodeEnded,
    NodeResult,
    NodeStarted,
    OutputPiece,
    RunFinished,
)
from rag.tests.graphs import Choices, ManualCrew, edge, finish, happenings, node, pipeline, told


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class IdleCrew(ManualCrew):
    """Starts nothing; the time goes on whenever somebody waits."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(Random(0))
        self._clock = clock

    def start(self, task: Callable[[], None], *, name: str) -> None:
        pass

    def take(self, seconds: float) -> list[object]:
        self._clock.now += max(seconds, 0.01)
        return []


def fan(*ids: str) -> Any:
    """A start, branches, and an end that joins them."""
    parts = [node("start"), *map(node, ids), node("end")]
    parts += [edge("start", id) for id in ids] + [edge(id, "end") for id in ids]
    return pipeline(*parts)


def played(definition: Any, runner: Callable[[NodeCall], NodeResult]) -> list[EngineEvent]:
    """What happens when nodes run one by one."""
    crew = ManualCrew(Random(1))
    return list(run(definition, question="?", runner=runner, executor=crew))


def test_independent_branches_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)

    def runner(call: NodeCall) -> NodeResult:
        if call.node.id in "abc":
            together.wait()
        return NodeResult(told(call))

    last = finish(list(run(fan("a", "b", "c"), question="?", runner=runner)))
    assert last.output == "end#1(a#1(start#1()),b#1(start#1()),c#1(start#1()))"


def test_no_more_than_so_many_run_at_the_same_time() -> None:
    crew = ManualCrew(Random(3))
    events = run(
        fan(*"abcdefgh"), question="?", runner=Choices(0).result, executor=crew, parallel=3
    )
    assert finish(list(events)).state == "done"
    assert crew.most == 3


def test_every_node_gets_the_question_and_its_parents_outputs_in_order() -> None:
    calls: dict[str, NodeCall] = {}

    def runner(call: NodeCall) -> NodeResult:
        calls[call.node.id] = call
        return NodeResult(call.node.id, sources=frozenset({len(call.node.id)}))

    played(fan("b", "a"), runner)
    assert {call.question for call in calls.values()} == {"?"}
    assert [(each.node, each.output) for each in calls["end"].inputs] == [("b", "b"), ("a", "a")]
    assert calls["end"].sources == {1}
    assert calls["end"].is_sink
    assert not calls["a"].is_sink


def test_a_failing_branch_stops_the_others_and_fails_the_run() -> None:
    begun = threading.Event()
    stopped = threading.Event()

    def runner(call: NodeCall) -> NodeResult:
        if call.node.id == "good":
            begun.set()
            assert call.cancelled.wait(10)
            stopped.set()
            raise Cancelled
        if call.node.id == "bad":
            assert begun.wait(10)
            raise InvalidInput("This cannot be.")
        return NodeResult("")

    events = list(run(fan("good", "bad"), question="?", runner=runner))
    last = finish(events)
    assert stopped.is_set()
    assert (last.state, last.code, last.detail, last.node) == (
        "failed",
        "invalid",
        "This cannot be.",
        "bad",
    )
    states = {each.call.node.id: each.state for each in events if isinstance(each, NodeEnded)}
    assert states == {"start": "done", "bad": "failed", "good": "cancelled"}


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (BackendUnavailable("the server is away."), "model_failed", "the server is away."),
        (ZeroDivisionError("secret"), "internal_error", "The step “a” failed."),
    ],
)
def test_errors_are_told_as_far_as_they_are_meant_for_people(
    error: Exception, code: str, detail: str
) -> None:
    def runner(call: NodeCall) -> NodeResult:
        raise error

    last = finish(played(pipeline(node("a")), runner))
    assert last.code == code
    assert last.detail.startswith(detail)
    assert "secret" not in last.detail


@pytest.mark.parametrize(
    ("fields", "of_node", "code"),
    [({"timeout": 5}, {}, "run_timeout"), ({}, {"timeout": 5}, "node_timeout")],
)
def test_a_run_and_a_node_have_their_time(
    fields: dict[str, Any], of_node: dict[str, Any], code: str
) -> None:
    clock = Clock()
    definition = pipeline(node("a", **of_node), **fields)
    events = list(
        run(definition, question="?", runner=told_as, executor=IdleCrew(clock), clock=clock)
    )
    last = finish(events)
    assert (last.state, last.code, last.status) == ("timed_out", code, 504)
    assert 5 <= clock.now < 7
    ended = [each for each in events if isinstance(each, NodeEnded)]
    assert [each.state for each in ended] == ["cancelled"]
    assert "did not do so in time" in ended[0].error


def told_as(call: NodeCall) -> NodeResult:
    return NodeResult(told(call))


def test_a_cancelled_run_ends_with_all_its_branches() -> None:
    cancelled = threading.Event()
    both = threading.Barrier(2, timeout=10)

    def runner(call: NodeCall) -> NodeResult:
        if call.node.id in "ab":
            both.wait()
            cancelled.set()
            assert call.cancelled.wait(10)
            raise Cancelled
        return NodeResult("")

    events = list(run(fan("a", "b"), question="?", runner=runner, is_cancelled=cancelled.is_set))
    assert finish(events).state == "cancelled"
    begun = {each.call.node.id for each in events if isinstance(each, NodeStarted)}
    assert begun == {"start", "a", "b"}


def test_closing_a_run_stops_its_nodes() -> None:
    begun, stopped = threading.Event(), threading.Event()

    def runner(call: NodeCall) -> NodeResult:
        call.emit("half")
        begun.set()
        assert call.cancelled.wait(10)
        stopped.set()
        return NodeResult("")

    events = run(pipeline(node("a")), question="?", runner=runner)
    while not isinstance(next(events), OutputPiece):
        pass
    events.close()
    assert begun.is_set()
    assert stopped.wait(10)


def test_a_sink_streams_while_it_runs_and_others_do_not() -> None:
    def runner(call: NodeCall) -> NodeResult:
        call.emit("one ")
        call.emit("two")
        return NodeResult("one two")

    events = played(pipeline(node("a"), node("b"), edge("a", "b")), runner)
    pieces = [(each.node, each.item) for each in events if isinstance(each, OutputPiece)]
    assert pieces == [("b", "one "), ("b", "two")]
    assert events.index(
        next(each for each in events if isinstance(each, OutputPiece))
    ) < events.index([each for each in events if isinstance(each, NodeEnded)][-1])
    assert finish(events).output == "one two"


def test_of_several_sinks_the_first_of_the_definition_comes_first() -> None:
    order: list[str] = []
    first_may_end = threading.Event()

    def runner(call: NodeCall) -> NodeResult:
        if call.node.id == "a":
            assert first_may_end.wait(10)
        elif call.node.id == "b":
            order.append("b")
            call.emit("B")
            first_may_end.set()
        return NodeResult(call.node.id.upper())

    definition = pipeline(
        node("start"), node("a"), node("b"), edge("start", "a"), edge("start", "b")
    )
    last = finish(list(run(definition, question="?", runner=runner)))
    assert order == ["b"]
    assert last.output == "A\n\nB"


def test_a_sink_in_a_loop_tells_only_its_last_words() -> None:
    def runner(call: NodeCall) -> NodeResult:
        call.emit(f"try {call.iteration}")
        return NodeResult(f"try {call.iteration}", passed=call.iteration == 3, score=0.1)

    definition = pipeline(
        node("write"),
        node("judge", "evaluator", max_iter=5),
        edge("write", "judge"),
        edge("judge", "write", type="loop"),
    )
    events = played(definition, runner)
    assert finish(events).output == "try 3"
    assert [each.item for each in events if isinstance(each, OutputPiece)] == ["try 3"]


def test_what_comes_back_along_a_loop_is_feedback() -> None:
    handed: list[tuple[tuple[str, str, bool], ...]] = []

    def runner(call: NodeCall) -> NodeResult:
        if call.node.id == "write":
            handed.append(tuple((each.node, each.output, each.is_feedback) for each in call.inputs))
        return NodeResult("draft", passed=False, score=0.2, feedback="do better")

    definition = pipeline(
        node("write"),
        node("judge", "evaluator", max_iter=2),
        edge("write", "judge"),
        edge("judge", "write", type="loop"),
    )
    played(definition, runner)
    assert handed == [(), (("judge", "do better", True),)]


def test_a_closed_gate_ends_the_run_with_what_it_was_given() -> None:
    def runner(call: NodeCall) -> NodeResult:
        return NodeResult("so far", passed=False)

    definition = pipeline(node("a"), node("g", "gate"), node("b"), edge("a", "g"), edge("g", "b"))
    last = finish(played(definition, runner))
    assert (last.state, last.output) == ("done", "so far")


def test_an_unknown_route_fails_the_run() -> None:
    definition = pipeline(node("r", "router"), node("a"), edge("r", "a", name="docs"))
    events = played(definition, lambda call: NodeResult("", route="dogs"))
    last = finish(events)
    assert (last.state, last.code) == ("failed", "unknown_route")
    assert "“dogs”" in last.detail
    assert "docs" in last.detail
    assert [each.state for each in events if isinstance(each, NodeEnded)] == ["failed"]


def test_loops_within_loops_are_bounded() -> None:
    definition = pipeline(
        *map(node, "abc"),
        edge("a", "b"),
        edge("b", "c"),
        edge("b", "a", type="loop", max_iter=3),
        edge("c", "a", type="loop", max_iter=2),
    )
    events = happenings(definition, Choices(0), Random(0))
    begun = [each.call.node.id for each in events if isinstance(each, NodeStarted)]
    assert "".join(begun) == "abababcabc"


def test_what_is_behind_an_inner_loop_waits_for_it_in_every_round_of_the_outer() -> None:
    definition = pipeline(
        *map(node, "abxd"),
        edge("a", "b"),
        edge("a", "x"),
        edge("b", "d"),
        edge("x", "d"),
        edge("b", "a", type="loop", condition="iteration == 2"),
        edge("d", "a", type="loop", max_iter=2),
    )
    events = happenings(definition, Choices(0), Random(0))
    begun = [each.call.node.id for each in events if isinstance(each, NodeStarted)]
    assert "".join(begun) == "abxdababxd"


def test_too_long_an_output_is_cut() -> None:
    long = "x" * (MAX_OUTPUT_CHARACTERS + 5)
    last = finish(played(pipeline(node("a")), lambda call: NodeResult(long)))
    assert last.output == "x" * MAX_OUTPUT_CHARACTERS + "\n[… cut]"


def test_what_a_node_used_is_known_although_it_failed() -> None:
    def runner(call: NodeCall) -> NodeResult:
        with call.ledger.use("tool", "search", "{}") as use:
            use.output = "found"
            use.input_tokens = 3
        with call.ledger.use("model", "stub", "hi"):
            raise InvalidInput("No.")

    (ended,) = [each for each in played(pipeline(node("a")), runner) if isinstance(each, NodeEnded)]
    first, second = ended.call.ledger.uses
    assert (first.output, first.error, second.error) == ("found", "", "No.")
    assert first.ended is not None
    assert second.ended is not None
    assert ended.call.ledger.input_tokens == 3


def test_threads_take_all_that_was_posted() -> None:
    crew = ThreadExecutor()
    assert crew.take(0) == []
    crew.post(1)
    crew.post(2)
    assert crew.take(0) == [1, 2]


def test_the_end_is_always_told_last() -> None:
    events = happenings(fan("a", "b"), Choices(1), Random(1))
    assert isinstance(events[-1], RunFinished)
    assert [each for each in events[:-1] if isinstance(each, RunFinished)] == []
