"""A graph as JSON Lines: every line that cannot be is named by its number."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.json_lines import MAX_LINE_BYTES
from graph.inputs import EdgeInput, NodeInput
from graph.services.json_lines import JsonLines, make_item

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)
NODES = st.builds(NodeInput, TEXTS, name=TEXTS, props=st.dictionaries(TEXTS, TEXTS))
EDGES = st.builds(EdgeInput, TEXTS, TEXTS, TEXTS, weight=st.floats(0, 9))


def line_of(item: NodeInput | EdgeInput) -> bytes:
    kind = "node" if isinstance(item, NodeInput) else "edge"
    values = {name: getattr(item, name) for name in item.__slots__}
    given = {name: value for name, value in values.items() if value not in (None, ())}
    return json.dumps({kind: given}, ensure_ascii=False).encode()


@given(st.lists(NODES | EDGES))
def test_what_was_written_is_read(items: list[NodeInput | EdgeInput]) -> None:
    lines = JsonLines(lambda: map(line_of, items))
    assert list(lines.nodes()) == [item for item in items if isinstance(item, NodeInput)]
    assert list(lines.edges()) == [item for item in items if isinstance(item, EdgeInput)]


def test_blank_lines_are_passed_over_and_spaces_are_no_matter() -> None:
    read = [
        b'\xef\xbb\xbf { "node" : {"id": "a", "name": null}}\r\n',
        b"\n",
        b" \r\n",
        b'\t{"edge": {"source": "a", "rel": "R", "target": "b"}}',
    ]
    lines = JsonLines(lambda: read)
    assert list(lines.nodes()) == [NodeInput("a")]
    assert list(lines.edges()) == [EdgeInput("a", "R", "b")]


GOOD = b'{"node": {"id": "a"}}\n'
WRONG = {
    "half an object": (b"{", "not JSON"),
    "an object cut off": (b'{"node": {"id": "a"}', "not JSON"),
    "a list": (b"[]", "A line is"),
    "a number": (b"7", "A line is"),
    "no object inside": (b'{"node": "a"}', "A line is"),
    "another name": (b'{"vertex": {}}', "A line is"),
    "two at once": (b'{"node": {"id": "a"}, "edge": {}}', "A line is"),
    "no UTF-8": (b'{"node": {"id": "\xff"}}', "not UTF-8"),
    "no number": (b'{"node": {"id": "a", "props": {"n": NaN}}}', "no JSON number"),
    "endless depth": (b'{"node": ' + b"[" * 100_000, "nested"),
    "endless length": (b'{"node": {"id": "' + b"x" * MAX_LINE_BYTES + b'"}}', "16,777,216"),
    "no id": (b'{"node": {}}', "“id” is required"),
    "a null for an id": (b'{"node": {"id": null}}', "“id” is required"),
    "a misspelt name": (b'{"node": {"id": "a", "labls": []}}', "“labls” is unknown"),
    "a hostile name": (b'{"node": {"id": "a", "\\ud83d": 1}}', r"ud83d” is unknown"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_line_that_cannot_be_is_named(wrong: str) -> None:
    line, told = WRONG[wrong]
    nodes: Any = JsonLines(lambda: [GOOD, b"\n", line, GOOD]).nodes()
    assert next(nodes) == NodeInput("a")
    with pytest.raises(InvalidInput, match=told) as refused:
        next(nodes)
    assert str(refused.value).startswith("Line 3: ")
    assert refused.value.field == "line 3"
    assert len(str(refused.value).encode()) < 300


@pytest.mark.parametrize("field", ["nodes.1.props", "nodes.1"])
def test_what_a_service_says_of_an_item_is_said_of_its_line(field: str) -> None:
    lines = JsonLines(lambda: [GOOD, b"", GOOD])
    assert len(list(lines.nodes())) == 2
    told = lines.by_line(InvalidInput("nodes[1]: too much.", field=field))
    assert (told.field, str(told)) in [
        ("line 3", "Line 3: props: too much."),
        ("line 3", "Line 3: too much."),
    ]
    other = InvalidInput("Something else.", field="workspace")
    assert lines.by_line(other) is other


def test_names_of_items_are_checked() -> None:
    assert make_item({"id": "a", "labels": None}, NodeInput) == NodeInput("a")
    for value in ("a", None, ["id"], 7):
        with pytest.raises(InvalidInput, match="JSON object"):
            make_item(value, NodeInput)
    with pytest.raises(InvalidInput, match="Use source, rel, target, weight, props"):
        make_item({"source": "a", "rel": "R", "target": "b", "origin": "extracted"}, EdgeInput)
