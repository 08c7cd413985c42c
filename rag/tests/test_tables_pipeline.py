"""Nodes that compute answers from tables: what they hand on, cite, and do where nothing is
computed."""

import json
from typing import Any

import pytest

from accounts.models import Role
from documents.models import Collection, Document
from documents.tests.factories import MembershipFactory
from inference.tests.stub_server import StubServer, chat_reply
from rag.context import RagContext
from rag.events import Citation, Done, Event, Failed, NodeProgress, answer_text
from rag.models import Span
from rag.pipelines.definition import Definition, PipelineError
from rag.services.pipelines import run_pipeline
from rag.tests.asking import document, reader
from rag.tests.graphs import edge, node, pipeline
from rag.tests.piped import wish
from rag.tests.test_table_answers import BIKES

# Nodes run in threads, which see what is committed.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

COMPUTED = "How many bikes cost more than 4,000?"
UNSURE = "Total price of blue bikes"
OTHER = "When does the firm leave Mill Street?"


@pytest.fixture
def world() -> tuple[RagContext, Collection]:
    context, collection = reader()
    document(collection, "bikes.md", BIKES, rendering="markdown")
    return context, collection


@pytest.fixture
def context(world: tuple[RagContext, Collection]) -> RagContext:
    return world[0]


def run(
    pipeline: str | Definition, question: str, context: RagContext, **options: Any
) -> list[Event]:
    return list(run_pipeline(pipeline, question, context=context, **options))


def begun(events: list[Event]) -> list[str]:
    return [each.id for each in events if isinstance(each, NodeProgress) and each.state != "ended"]


def test_a_question_to_tables_ends_the_template_with_the_rows_cited(context: RagContext) -> None:
    events = run("tables", COMPUTED, context)
    text = answer_text(events)
    assert text.startswith("**2** (Rows)")
    assert begun(events) == ["tables"]
    cited = [each for each in events if isinstance(each, Citation)]
    assert [each.quote for each in cited] == [
        "| Ferry | Cargo | 4,690 |",
        "| Dune | Mountain | 5,250 |",
    ]
    for each in cited:
        assert text[each.at :].startswith(f"[{each.passage.number}]")
    assert isinstance(events[-1], Done)
    (asked,) = Span.objects.filter(type="query_tables")
    assert (asked.input, asked.output) == (COMPUTED, text)


def test_other_questions_go_to_the_documents(context: RagContext) -> None:
    events = run("tables", OTHER, context)
    assert "14 March" in answer_text(events)
    assert "The sources do not say" not in answer_text(events)
    assert begun(events) == ["tables", "retriever", "generator"]


def test_with_a_chat_model_no_call_is_made_for_a_computed_answer(
    context: RagContext, server: StubServer
) -> None:
    assert answer_text(run("tables", COMPUTED, context)).startswith("**2** (Rows)")
    assert server.requests == []
    server.first(
        wish("similarity_search", query="Mill Street"), chat_reply("See [1]."), chat_reply("No.")
    )
    run("tables", OTHER, context)
    # Nothing of the tables' step is in the prompts of those behind it.
    for request in server.requests:
        assert "Output of the step “tables”" not in json.dumps(request.json["messages"])


def test_an_unsure_question_that_ends_the_run_is_answered_by_readings(
    context: RagContext,
) -> None:
    text = answer_text(run(pipeline(node("t", "tables")), UNSURE, context))
    assert text.startswith("The sources do not say")
    assert "- Sum of Price (EUR)" in text
    german = answer_text(run(pipeline(node("t", "tables")), UNSURE, context, language="German"))
    assert german.startswith("Davon steht nichts in den Quellen")
    assert "Gemeint sein kann" in german


def test_the_answer_is_in_the_language_of_the_run(context: RagContext) -> None:
    text = answer_text(run(pipeline(node("t", "tables")), COMPUTED, context, language="German"))
    assert text.startswith("**2** (Zeilen)")


def test_as_json_all_parts_go_to_the_next_step(context: RagContext) -> None:
    run(
        pipeline(node("t", "tables", outputs="json"), node("end", "aggregator"), edge("t", "end")),
        COMPUTED,
        context,
    )
    handed = json.loads(Span.objects.get(node="end").output)
    assert (handed["is_computed"], handed["value"], handed["count"]) == (True, 2.0, 2)
    assert handed["columns"] == ["Model", "Category", "Price (EUR)"]
    assert [row["cells"][0] for row in handed["rows"]] == ["Ferry", "Dune"]
    assert {row["document"] for row in handed["rows"]} == {"Bikes"}
    assert all(f"[{row['citation']}]" in handed["text"] for row in handed["rows"])


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("is_computed", True),
        ("not is_computed", False),
        ("value >= 2", True),
        ("value > 2", False),
    ],
)
def test_edges_are_taken_by_what_was_computed(
    context: RagContext, condition: str, taken: bool
) -> None:
    choosing = pipeline(
        node("t", "tables"),
        node("end", "aggregator"),
        edge("t", "end", "conditional", condition=condition),
    )
    assert ("end" in begun(run(choosing, COMPUTED, context))) is taken


def test_a_question_may_be_put_by_the_step_before(context: RagContext, server: StubServer) -> None:
    server.first(chat_reply("  How many bikes cost\nmore than 4,000?"))
    asking = pipeline(node("words", "llm"), node("t", "tables", asks="input"), edge("words", "t"))
    assert answer_text(run(asking, "Count the dear ones.", context)).startswith("**2** (Rows)")


def test_what_no_question_to_a_table_can_be_is_not_one(
    context: RagContext, server: StubServer
) -> None:
    server.first(chat_reply("How many bikes " + "and bikes " * 2_000))
    asking = pipeline(node("words", "llm"), node("t", "tables", asks="input"), edge("words", "t"))
    events = run(asking, "Count them.", context)
    assert answer_text(events).startswith("The sources do not say")
    assert isinstance(events[-1], Done)


def test_only_what_the_caller_may_see_is_computed(world: tuple[RagContext, Collection]) -> None:
    context, _ = world
    other = pipeline(node("t", "tables", collection="office"))
    assert answer_text(run(other, COMPUTED, context)).startswith("**2** (Rows)")
    stranger, _ = reader()
    assert answer_text(run("tables", COMPUTED, stranger)).startswith("The sources do not say")
    member = MembershipFactory(workspace=context.workspace, role=Role.VIEWER).user
    reading = RagContext(user=member, workspace=context.workspace)
    assert answer_text(run("tables", COMPUTED, reading)).startswith("**2** (Rows)")
    hidden = Document.objects.get(key="bikes.md")
    Document.objects.filter(pk=hidden.pk).update(access=["user:0"])
    hidden.chunks.update(access=["user:0"])
    assert "4,690" not in answer_text(run("tables", COMPUTED, reading))


def test_a_collection_that_is_not_there_fails_the_run(context: RagContext) -> None:
    events = run(pipeline(node("t", "tables", collection="nowhere")), COMPUTED, context)
    failed = events[-1]
    assert isinstance(failed, Failed)
    assert "nowhere" in failed.detail


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([node("t", "tables", prompt="Count.")], "unknown"),
        ([node("t", "tables", outputs="xml")], "outputs"),
        (
            [node("a"), node("b"), edge("a", "b", "conditional", condition="is_computed")],
            "A node of type llm has no is_computed. Put a node of type tables or sql before",
        ),
        ([node("g", "gate", condition="value > 1")], "The input of a gate has no value"),
    ],
)
def test_faults_of_definitions_are_told(parts: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(PipelineError, match=told):
        pipeline(*parts)
