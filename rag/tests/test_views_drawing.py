"""Drawings of pipelines: layers from left to right, nothing on top of anything else."""

import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.pipelines.definition import Definition, Edge, Node
from rag.pipelines.validation import templates
from rag.views.pipeline_diagram import HEIGHT, WIDTH, draw_diagram


def arrow(source: str, target: str, type: str = "direct") -> Edge:
    return Edge.model_validate({"from": source, "to": target, "type": type})


@st.composite
def definitions(draw_: st.DrawFn) -> Definition:
    """Acyclic graphs in which everything is reached from the entry, some with a loop."""
    count = draw_(st.integers(1, 9))
    edges = [arrow(f"n{draw_(st.integers(0, at - 1))}", f"n{at}") for at in range(1, count)]
    more = draw_(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))))
    known = {(edge.source, edge.target) for edge in edges}
    for low, high in (sorted(pair) for pair in more):
        ends = (f"n{low}", f"n{high}")
        if low < high and ends not in known:
            known.add(ends)
            edges.append(arrow(*ends))
    if count > 1 and draw_(st.booleans()):
        edges.append(arrow(edges[-1].target, edges[-1].source, "loop"))
    nodes = tuple(Node(id=f"n{at}", type="llm") for at in range(count))
    return Definition.model_validate(
        {"id": "x", "name": "X", "nodes": nodes, "edges": tuple(edges), "entry_node": "n0"}
    )


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(abs(one["x"] - other["x"]) < WIDTH and abs(one["y"] - other["y"]) < HEIGHT)


def inside(drawing: dict[str, Any], node: dict[str, Any]) -> bool:
    right, bottom = drawing["width"] - WIDTH, drawing["height"] - HEIGHT
    return bool(0 <= node["x"] <= right and 0 <= node["y"] <= bottom)


@given(definitions())
def test_nodes_are_apart_all_is_inside_and_edges_lead_to_the_right(definition: Definition) -> None:
    drawing = draw_diagram(definition)
    places = {node["id"]: node for node in drawing["nodes"]}

    assert [node["id"] for node in drawing["nodes"]] == [node.id for node in definition.nodes]
    assert [pair for pair in combinations(drawing["nodes"], 2) if overlap(*pair)] == []
    assert all(inside(drawing, node) for node in drawing["nodes"])
    assert len(drawing["edges"]) == len(definition.edges)
    for edge in definition.edges:
        if edge.type != "loop":
            assert places[edge.source]["x"] < places[edge.target]["x"]
    for line in drawing["edges"]:
        x, y = (float(number) for number in re.match(r"M(\S+) ([\d.]+)", line["path"]).groups())  # type: ignore[union-attr]
        assert 0 <= x <= drawing["width"]
        assert 0 <= y <= drawing["height"]
    assert draw_diagram(definition) == drawing


@pytest.mark.parametrize("name", sorted(templates()))
def test_every_template_is_drawn_and_told_in_words(name: str) -> None:
    definition = templates()[name]
    drawing = draw_diagram(definition)
    assert all(node.id in drawing["words"] for node in definition.nodes)
    assert [node["is_entry"] for node in drawing["nodes"]].count(True) == 1
