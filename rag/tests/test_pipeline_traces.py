"""Traces: bounded, pruned, ended where their process died, and counted."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from common.errors import Conflict
from documents.tests.factories import MembershipFactory
from rag.context import RagContext
from rag.models import Span, Trace
from rag.pipelines.engine import executor
from rag.pipelines.engine.scheduler import NodeCall, NodeResult, RunFinished
from rag.services import traces
from rag.services.traces import MAX_SPAN_CHARACTERS, TraceRecorder, trace_statistics
from rag.tests.asking import document, reader
from rag.tests.graphs import edge, node, pipeline

pytestmark = pytest.mark.django_db


@pytest.fixture
def context() -> RagContext:
    member = MembershipFactory()
    return RagContext(user=member.user, workspace=member.workspace)


def traced(
    context: RagContext, runner: Any, *, ids: str = "ab", documents: tuple[int, ...] = ()
) -> Trace:
    """A run of nodes one behind the other, traced to its end."""
    parts = [node(id) for id in ids]
    parts += [edge(one, other) for one, other in pairwise(ids)]
    definition = pipeline(*parts)
    tracing = TraceRecorder.begin(
        context=context, definition=definition, version=3, question="Why?", documents=documents
    )
    for each in executor.run(definition, question="Why?", runner=runner):
        tracing.take(each)
        if isinstance(each, RunFinished):
            tracing.finish(each, answer=each.output)
    return Trace.objects.get(pk=tracing.id)


def run_for(context: RagContext, *, milliseconds: int, **fields: Any) -> Trace:
    """A run that took so long."""
    started = fields.pop("started_at", timezone.now())
    ended = started + timedelta(milliseconds=milliseconds)
    given = {"pipeline": "p", "state": "done", "input_tokens": 10, "output_tokens": 1, **fields}
    row = Trace.objects.create(
        workspace=context.workspace,
        user=context.user,
        started_at=started,
        ended_at=ended,
        **given,
    )
    Span.objects.create(
        workspace=context.workspace,
        trace=row,
        ordinal=1,
        kind="node",
        node="n",
        type="llm",
        started_at=started,
        ended_at=ended,
    )
    return row


def test_steps_hold_what_went_in_what_came_out_and_what_was_used(context: RagContext) -> None:
    def runner(call: NodeCall) -> NodeResult:
        ledger = call.ledger
        with (
            ledger.use("task", "part", "do it") as task,
            ledger.use("model", "stub", "asked", parent=task) as use,
        ):
            use.output, use.input_tokens, use.output_tokens = "said", 7, 2
        return NodeResult(f"from {call.node.id}", score=0.5)

    trace = traced(context, runner)
    assert (trace.state, trace.version, trace.answer) == ("done", 3, "from b")
    assert (trace.input_tokens, trace.output_tokens) == (14, 4)
    rows = list(trace.spans.all())
    assert [(row.node, row.kind, row.type) for row in rows[:3]] == [
        ("a", "node", "llm"),
        ("a", "node", "part"),
        ("a", "model", "stub"),
    ]
    assert (rows[1].parent, rows[2].parent) == (rows[0], rows[1])
    assert rows[3].input == "Why?\n\na:\nfrom a"
    assert rows[3].output == "score: 0.5\n\nfrom b"
    assert all(trace.started_at <= row.started_at <= row.ended_at for row in rows)


def test_long_texts_are_cut_and_said_to_be(context: RagContext) -> None:
    long = "x" * (MAX_SPAN_CHARACTERS + 1)
    trace = traced(context, lambda call: NodeResult(f"{long}\0\ud800"), ids="a")
    (row,) = trace.spans.all()
    assert row.is_cut
    assert row.output == f"{long[:-1]}…"
    assert trace.answer == f"{long}?"


def test_a_failed_run_is_kept_with_what_it_did(context: RagContext) -> None:
    def runner(call: NodeCall) -> NodeResult:
        if call.node.id == "b":
            raise Conflict("Not now.")
        return NodeResult("first")

    trace = traced(context, runner)
    assert (trace.state, trace.error_code, trace.error) == ("failed", "conflict", "Not now.")
    assert [(row.state, row.error) for row in trace.spans.all()] == [
        ("done", ""),
        ("failed", "Not now."),
    ]


def test_a_run_nobody_waited_for_is_kept_as_cancelled(context: RagContext) -> None:
    definition = pipeline(node("a"))
    tracing = TraceRecorder.begin(
        context=context, definition=definition, version=None, question="?"
    )
    events = executor.run(definition, question="?", runner=lambda call: NodeResult("x"))
    tracing.take(next(events))
    events.close()
    tracing.abandon(answer="ha")
    tracing.abandon(answer="twice")
    trace = Trace.objects.get()
    assert (trace.state, trace.answer) == ("cancelled", "ha")
    assert trace.spans.get().state == "cancelled"


def test_a_document_deleted_during_the_run_leaves_no_text() -> None:
    context, collection = reader()
    gone = document(collection, "gone.md", "# Gone\n\nSecret.\n")
    documents = (gone.pk,)

    def runner(call: NodeCall) -> NodeResult:
        return NodeResult("Secret.")

    definition = pipeline(node("a"))
    tracing = TraceRecorder.begin(
        context=context, definition=definition, version=None, question="?", documents=documents
    )
    for each in executor.run(definition, question="?", runner=runner):
        tracing.take(each)
        if isinstance(each, RunFinished):
            gone.delete()
            tracing.finish(each, answer=each.output)
    trace = Trace.objects.get()
    assert (trace.state, trace.answer, trace.documents) == ("done", "", [])
    assert trace.removed_at is not None
    assert trace.spans.get().output == ""


def test_old_runs_are_pruned_with_their_steps(context: RagContext, settings: Any) -> None:
    settings.RAG_TRACE_DAYS = 2.0
    old = timezone.now() - timedelta(days=3)
    run_for(context, milliseconds=5, started_at=old)
    kept = run_for(context, milliseconds=5)
    assert traces.prune_traces() == 1
    assert Trace.objects.get() == kept
    assert Span.objects.count() == 1


def test_runs_whose_process_died_are_said_to_have_failed(
    context: RagContext, settings: Any
) -> None:
    long_ago = timezone.now() - timedelta(seconds=settings.RAG_ANSWER_SECONDS * 3)
    lost = run_for(context, milliseconds=0, state="running", started_at=long_ago)
    going = run_for(context, milliseconds=0, state="running")
    assert traces.fail_stale_runs() == 1
    lost.refresh_from_db()
    going.refresh_from_db()
    assert (lost.state, lost.error_code, going.state) == ("failed", "interrupted", "running")


def test_a_run_can_be_cancelled_from_another_process(context: RagContext) -> None:
    tracing = TraceRecorder.begin(
        context=context, definition=pipeline(node("a")), version=None, question="?"
    )
    assert not tracing.is_cancelled()
    traces.cancel_run(context=context, id=tracing.id)
    tracing.checked_at = 0.0
    assert tracing.is_cancelled()


def test_percentiles_and_tokens_are_those_of_ones_own_runs_in_the_window(
    context: RagContext,
) -> None:
    for milliseconds in range(10, 1010, 10):
        run_for(context, milliseconds=milliseconds)
    run_for(context, milliseconds=5000, pipeline="q", state="timed_out")
    long_ago = timezone.now() - timedelta(days=10)
    run_for(context, milliseconds=9000, started_at=long_ago)
    other = MembershipFactory(workspace=context.workspace)
    run_for(RagContext(user=other.user, workspace=other.workspace), milliseconds=9000)

    p, q = trace_statistics(context=context, days=7)
    (of_node,) = p.pop("nodes")
    assert p == {
        "name": "p",
        "runs": 100,
        "failed": 0,
        "p50_ms": 505.0,
        "p95_ms": 950.5,
        "p99_ms": 990.1,
        "input_tokens": 1000,
        "output_tokens": 100,
    }
    assert (of_node["name"], of_node["runs"], of_node["p50_ms"]) == ("n", 100, 505.0)
    assert (q["name"], q["failed"]) == ("q", 1)
    assert [each["name"] for each in trace_statistics(context=context, pipeline="q")] == ["q"]


def test_statistics_ask_the_database_a_bounded_number_of_times(
    context: RagContext, django_assert_max_num_queries: Any
) -> None:
    for at in range(5):
        run_for(context, milliseconds=10, pipeline=f"p{at}")
    with django_assert_max_num_queries(2):
        assert len(trace_statistics(context=context)) == 5
    assert connection.in_atomic_block
