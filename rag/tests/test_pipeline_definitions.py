"""Definitions: what is read is what was written; every fault is told with its place and cure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.pipelines.builder import Pipeline
from rag.pipelines.definition import (
    MAX_NODES,
    MAX_PROMPT_CHARACTERS,
    NODE_TYPES,
    EvaluatorNode,
    PipelineError,
)
from rag.pipelines.validation import SiteCapabilities, parse_definition, templates
from rag.tests.graphs import edge, graphs, looped_graphs, node


def faults(value: Any, **site: Any) -> dict[str, str]:
    """What is wrong, by place."""
    with pytest.raises(PipelineError) as raised:
        parse_definition(value, site=SiteCapabilities(**site))
    return {fault.path: fault.message for fault in raised.value.faults}


def whole(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A definition as JSON, whatever is wrong with it."""
    nodes = [part for part in parts if "id" in part]
    edges = [part for part in parts if "id" not in part]
    entry = nodes[0]["id"] if nodes else ""
    return {"id": "p", "nodes": nodes, "edges": edges, "entry_node": entry, **fields}


def test_the_builder_says_the_same_as_json() -> None:
    built = (
        Pipeline("rag", name="RAG", description="From documents", timeout=60)
        .node("retriever", "worker")
        .prompt("Find it.")
        .tools("similarity_search")
        .max_iter(3)
        .done()
        .node("generator")
        .model("stub", temperature=0.1, max_tokens=50)
        .timeout(20)
        .done()
        .node("judge", "evaluator")
        .set(threshold=0.5)
        .done()
        .edge("retriever", "generator")
        .edge("generator", "judge")
        .edge("judge", "generator", "loop", max_iter=2)
        .build()
    )
    assert built == parse_definition(
        {
            "id": "rag",
            "name": "RAG",
            "description": "From documents",
            "timeout": 60,
            "nodes": [
                {
                    "id": "retriever",
                    "type": "worker",
                    "prompt": "Find it.",
                    "tools": ["similarity_search"],
                    "max_iter": 3,
                },
                {
                    "id": "generator",
                    "type": "llm",
                    "model": {"name": "stub", "temperature": 0.1, "max_tokens": 50},
                    "timeout": 20,
                },
                {"id": "judge", "type": "evaluator", "threshold": 0.5},
            ],
            "edges": [
                {"from": "retriever", "to": "generator", "type": "direct"},
                {"from": "generator", "to": "judge"},
                {"from": "judge", "to": "generator", "type": "loop", "max_iter": 2},
            ],
            "entry_node": "retriever",
        }
    )


def test_what_is_left_out_is_as_the_documentation_says() -> None:
    (built,) = Pipeline("p").node("w", "worker").done().build().nodes
    assert (built.model.temperature, built.model.max_tokens, built.max_iter) == (0.7, 4096, 10)
    (judge,) = Pipeline("p").node("e", "evaluator").done().build().nodes
    assert isinstance(judge, EvaluatorNode)
    assert (judge.threshold, judge.on_exhausted, judge.syntax) == (0.7, "best", "ignore")


@given(st.one_of(graphs(), looped_graphs()))
def test_what_is_written_out_is_read_as_the_same(value: dict[str, Any]) -> None:
    definition = parse_definition(value)
    assert parse_definition(definition.to_json()) == definition


@st.composite
def built_nodes(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a node of any type, all of them within their bounds."""
    name = draw(st.sampled_from(sorted(NODE_TYPES)))
    kind = NODE_TYPES[name]
    fields: dict[str, Any] = {"type": name}
    if "prompt" in kind.field_names():
        fields["prompt"] = draw(st.text(alphabet="abc “\n", max_size=50))
    if kind.needs_model != "never":
        fields["model"] = {"temperature": draw(st.floats(0, 2)), "top_p": draw(st.floats(0.01, 1))}
    if "tools" in kind.field_names():
        fields["tools"] = draw(st.lists(st.sampled_from("abc"), unique=True))
    if "max_iter" in kind.field_names():
        fields["max_iter"] = draw(st.integers(1, 50))
    if name == "gate":
        fields["condition"] = draw(st.sampled_from(['output contains "a"', "iteration < 3"]))
    if name == "coordinator":
        fields["workers"] = [{"name": "w", "tools": draw(st.lists(st.just("a"), max_size=1))}]
    return fields


@given(st.lists(built_nodes(), min_size=1, max_size=4))
def test_whatever_the_builder_builds_is_read_from_its_json(
    all_fields: list[dict[str, Any]],
) -> None:
    pipeline = Pipeline("p").node("start", "aggregator").done()
    for at, fields in enumerate(all_fields):
        given = {name: value for name, value in fields.items() if name != "type"}
        builder = pipeline.node(f"n{at}", fields["type"])
        pipeline = builder.set(**given).done().edge("start", f"n{at}")
        if fields["type"] == "router":
            pipeline.node(f"end{at}").done().edge(f"n{at}", f"end{at}")
    definition = pipeline.build()
    assert parse_definition(definition.to_json()) == definition


def test_every_fault_is_told_at_once_with_its_place() -> None:
    found = faults(
        {
            "id": "My pipeline",
            "colour": "red",
            "nodes": [
                {"id": "a", "type": "wizard", "threshold": 1},
                {"id": "b", "type": "gate"},
                {"id": "b", "type": "llm", "tools": ["x"]},
                {"id": "9", "type": "worker", "max_iter": 0, "tools": ["rm"]},
                {"id": "d", "type": "llm", "model": {"name": "gpt", "heat": 1}},
                "node",
            ],
            "edges": [
                {"from": "a", "to": "z"},
                {"from": "a", "to": "b", "type": "conditional"},
                {"from": "a", "to": "d", "condition": "score > 1", "type": "conditional"},
            ],
            "entry_node": "nobody",
            "timeout": -1,
        },
        tools=("similarity_search",),
        model_fault=lambda name: f"no {name}",
    )
    assert set(found) == {
        "id",
        "colour",
        "nodes.0.type",
        "nodes.1.condition",
        "nodes.2.id",
        "nodes.2.tools",
        "nodes.3.id",
        "nodes.3.max_iter",
        "nodes.3.tools.0",
        "nodes.4.model.heat",
        "nodes.4.model.name",
        "nodes.5",
        "nodes.5.id",
        "nodes.5.type",
        "edges.0.to",
        "edges.1.condition",
        "edges.2.condition",
        "entry_node",
        "timeout",
    }
    assert found["nodes.2.tools"].endswith("of type worker or orchestrator.")
    assert "Choose from: llm, worker, router" in found["nodes.0.type"]
    assert "Choose from: similarity_search" in found["nodes.3.tools.0"]
    assert "evaluator" in found["edges.2.condition"]


@pytest.mark.parametrize(
    ("value", "place", "cure"),
    [
        (whole(), "nodes", "at least one node"),
        (
            whole(node("a"), node("b"), edge("a", "b"), edge("b", "b")),
            "edges.1",
            "an edge of type “loop”",
        ),
        (
            whole(node("a"), node("b"), node("c"), edge("a", "b"), edge("b", "c"), edge("c", "b")),
            "edges.2",
            "circle from “b”",
        ),
        (whole(node("a"), node("b")), "nodes.1", "Add an edge to it"),
        (
            whole(node("a"), node("b"), edge("a", "b"), edge("a", "b", type="loop")),
            "edges.1",
            "A loop leads back",
        ),
        (
            whole(node("a"), node("b"), edge("a", "b"), edge("a", "b")),
            "edges.1",
            "Another edge leads",
        ),
        (
            whole(
                *map(node, "abcd"),
                edge("a", "b"),
                edge("b", "c"),
                edge("c", "d"),
                edge("c", "a", type="loop"),
                edge("d", "b", type="loop"),
            ),
            "edges.4",
            "crosses that of edges.3",
        ),
        (whole(node("r", "router")), "nodes.0", "no edges to choose from"),
        (
            whole(node("r", "router"), node("a"), edge("r", "a", "conditional", condition="true")),
            "edges.0.condition",
            "Give the edge a name",
        ),
        (
            whole(
                node("r", "router"),
                node("a"),
                node("b"),
                edge("r", "a", name="x"),
                edge("r", "b", name="x"),
            ),
            "edges.1.name",
            "another edge named “x”",
        ),
        (whole(node("a"), node("b"), edge("a", "b", name="x")), "edges.0.name", "router"),
        (whole(node("a"), node("b"), edge("a", "b", max_iter=2)), "edges.0.max_iter", "loops"),
        (whole(node("a", prompt="x" * (MAX_PROMPT_CHARACTERS + 1))), "nodes.0.prompt", "20,000"),
        (whole(*(node(f"n{at}") for at in range(MAX_NODES + 1))), "nodes", "the limit is 50"),
        (whole(node("g", "gate", condition="score > 0")), "nodes.0.condition", "has no score"),
        (whole(node("c", "coordinator")), "nodes.0.workers", "at least one worker"),
        (
            whole(node("c", "coordinator", workers=[{"name": "w"}, {"name": "w"}])),
            "nodes.0.workers.1.name",
            "Another worker",
        ),
        (whole(node("e", "evaluator", threshold=2)), "nodes.0.threshold", "from 0 to 1"),
        (whole(node("e", "evaluator", on_exhausted="cry")), "nodes.0.on_exhausted", "best, fail"),
        (whole(node("a", timeout=True)), "nodes.0.timeout", "a number"),
        (whole(node("a"), name=5), "name", "text"),
        ([], "", "an object"),
        (whole(node("a", prompt="half \ud800")), "nodes.0.prompt", "surrogate"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_cure(value: Any, place: str, cure: str) -> None:
    found = faults(value)
    assert cure in found[place]


def test_json_that_is_nested_too_deep_is_refused() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    (problem,) = faults(whole(node("a"), name=value)).values()
    assert "nested" in problem


def test_a_loop_that_stands_within_another_is_allowed() -> None:
    parse_definition(
        whole(
            *map(node, "abcd"),
            edge("a", "b"),
            edge("b", "c"),
            edge("c", "d"),
            edge("c", "b", type="loop"),
            edge("d", "a", type="loop"),
        )
    )


def test_every_template_names_what_there_is() -> None:
    from rag.services.pipelines import this_site

    assert {"rag", "codegen", "simple-chat", "research", "router"} <= set(templates())
    for template in templates().values():
        assert (
            parse_definition(template.to_json(), site=SiteCapabilities(tools=this_site().tools))
            == template
        )
        assert template.description
