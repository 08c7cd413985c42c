"""What ids, relations and properties may be, and how ids sort."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from graph import inputs
from graph.extraction.normalized_names import normalize_name
from graph.node_ids import (
    check_id,
    check_rel,
    check_writable,
    entity_value,
    is_retired_id_form,
    natural_sort_key,
    retired_id_form,
)

HOSTILE = [
    "a'b\"c",
    "ent:name:a/b\\c",
    "'; DROP TABLE graph_node; --",
    "%(workspace)s %s {} {0}",
    "日本語 한국어 שלום हिन्दी",
    "👩‍👩‍👧 é",
    " two  spaces ",
    "x" * 1024,
    "あ" * 866,
    "NULL",
    "\\N",
    "src:crm:https://example.org/?a=b&c=d#e",
]


@pytest.mark.parametrize("node_id", HOSTILE)
def test_an_id_may_be_nearly_anything(node_id: str) -> None:
    assert check_id(node_id) == node_id


@pytest.mark.parametrize(
    ("node_id", "told"),
    [
        ("", "at least one visible"),
        (" \u3000", "at least one visible"),
        (7, "at least one visible"),
        (["a"], "at least one visible"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\x85b", "control character"),
        ("a\ud800b", "surrogate"),
        ("x" * 1025, "1,025"),
        ("あ" * 867, "2,601"),
    ],
)
def test_an_id_that_cannot_be_kept_is_refused_and_told_why(node_id: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refused:
        check_id(node_id, field="source")
    assert refused.value.field == "source"


@pytest.mark.parametrize("rel", ["", "  ", "A\tB", "R" * 101, None, 3])
def test_a_relation_has_a_short_name(rel: str) -> None:
    with pytest.raises(InvalidInput):
        check_rel(rel)
    assert check_rel("arbeitet bei") == "arbeitet bei"


def test_only_what_documents_tell_cannot_be_written() -> None:
    with pytest.raises(
        InvalidInput, match="Change the document, or choose another name for your relation"
    ):
        check_writable("doc:a:b", "MENTIONS", "ent:name:x")
    with pytest.raises(InvalidInput):
        check_writable("ent:name:x", "NEXT", "chunk:a:b:1")
    check_writable("doc:a:b", "ABOUT", "ent:name:x")
    check_writable("ent:name:x", "MENTIONS", "ent:name:y")


def test_numbers_in_ids_count_as_numbers() -> None:
    ids = ["chunk:a:10", "chunk:a:2", "chunk:a", "chunk:a:2b", "chunk:a:02", "b", "1"]
    assert sorted(ids, key=natural_sort_key) == (
        ["1", "b", "chunk:a", "chunk:a:02", "chunk:a:2", "chunk:a:2b", "chunk:a:10"]
    )


@given(st.lists(st.text(st.sampled_from("a:1２20٣"), max_size=8), unique=True))
def test_any_ids_have_an_order(ids: list[str]) -> None:
    backwards = ids[::-1]
    assert sorted(ids, key=natural_sort_key) == sorted(backwards, key=natural_sort_key)


@given(st.text(min_size=1, max_size=1024), st.text(max_size=400))
def test_a_former_id_is_never_taken_for_a_name(node_id: str, name: str) -> None:
    former = retired_id_form(node_id.encode("utf-8", "replace").decode())
    assert len(former) <= 300
    assert is_retired_id_form(former)
    assert not is_retired_id_form(normalize_name(name))


def test_the_value_of_an_entity_is_all_behind_its_type() -> None:
    assert entity_value("ent:time:10:30") == "10:30"
    assert entity_value("src:crm:7") == entity_value("ent:name") == ""


def of_size(size: int, letter: str = "x") -> dict[str, str]:
    return {"text": letter * (size - len(json.dumps({"text": ""}, separators=(",", ":"))))}


def test_properties_of_a_megabyte_are_kept_and_a_byte_more_is_refused() -> None:
    most = 1024 * 1024
    assert len(inputs.props_text(of_size(most))) == most
    assert inputs.props_text({"numbers": [1] * 500_000})
    with pytest.raises(InvalidInput, match="at most 1,048,576 bytes; these have 1,048,577"):
        inputs.props_text(of_size(most + 1))
    with pytest.raises(InvalidInput, match="bytes"):
        inputs.props_text({"text": "é" * (most // 2)})


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ([1], "JSON object"),
        ({"a": float("nan")}, "not valid JSON"),
        ({"a": float("inf")}, "not valid JSON"),
        ({"a": object()}, "not valid JSON"),
        ({"a": "b\0"}, "NUL"),
        ({"a\0": 1}, "NUL"),
        ({"a": "\udc00"}, "surrogate"),
        (nested(40), "deep"),
        (nested(100_000), "deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_properties_that_cannot_be_stored_are_refused(props: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refused:
        inputs.props_text(props)
    assert refused.value.field == "props"


def test_a_text_that_only_looks_like_nul_is_kept() -> None:
    assert json.loads(inputs.props_text({"a": "\\u0000"})) == {"a": "\\u0000"}


@pytest.mark.parametrize("weight", [-1, 1e10, float("nan"), float("inf"), True, "1", None])
def test_a_weight_is_a_number_within_bounds(weight: float) -> None:
    with pytest.raises(InvalidInput, match="weight is a number from 0 to 1,000,000,000"):
        inputs.check_weight(weight)
    assert inputs.check_weight(0) == 0.0


def test_labels_are_few_short_and_each_once() -> None:
    assert inputs.check_labels(["a", "b", "a"]) == ["a", "b"]
    for labels in (["x"] * 33, ["x" * 101], [""], "person", [3], ["a\0"]):
        with pytest.raises(InvalidInput):
            inputs.check_labels(labels)
