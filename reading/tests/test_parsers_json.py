"""JSON becomes lines that read well, nothing of it is lost, and broken JSON is named."""

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reading.parsers import Heading, Limits, ParsedDocument, ParseError, parse
from reading.parsers.json_text import parse_json
from reading.parsers.normalise import without_invisible


def read(value: Any, name: str = "shop-settings.json") -> ParsedDocument:
    return parse(json.dumps(value).encode(), name=name)


def read_text(text: str, name: str = "a.json") -> ParsedDocument:
    return parse(text.encode(), name=name)


def test_values_stand_behind_the_way_to_them() -> None:
    document = read(
        {"server": {"port": 8080, "hosts": ["a", "b"], "tls": True}, "proxy": None, "extra": {}}
    )
    assert document.text == (
        "server.port: 8080\nserver.hosts: a, b\nserver.tls: true\nproxy: null\nextra: {}"
    )
    assert (document.media_type, document.rendering) == ("application/json", "plain")
    assert document.title == "Shop settings"


def test_lists_of_objects_are_numbered() -> None:
    document = read({"people": [{"name": "Ada"}, {"name": "Bob", "of": [{"x": 1}]}]})
    assert document.text == "people[0].name: Ada\npeople[1].name: Bob\npeople[1].of[0].x: 1"


def test_long_strings_of_a_list_have_a_line_each_and_figures_share_lines() -> None:
    document = read({"notes": ["n" * 100, "m"], "vector": [0.25] * 300})
    lines = document.text.split("\n")
    assert lines[0] == f"notes[0]: {'n' * 100}"
    assert lines[1] == "notes: m"
    assert all(line.startswith("vector: 0.25, 0.25") and len(line) < 450 for line in lines[2:])
    assert document.text.count("0.25") == 300


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[{"title": "One", "id": 7, "text": "First.\\n\\nMore."}, {"id": 8}]', "a.json"),
        ('{"title": "One", "id": 7, "text": "First.\\n\\nMore."}\n\n{"id": 8}\n', "a.jsonl"),
        ('{"title": "One", "id": 7, "text": "First.\\n\\nMore."}\n{"id": 8}\n', "a.json"),
    ],
)
def test_records_are_apart_and_titles_are_their_headings(text: str, name: str) -> None:
    document = read_text(text, name)
    assert document.text == "One\n\nFirst.\n\nMore.\n\nid: 7\n\nid: 8"
    assert document.headings == (Heading(0, 1, "One"), Heading(27, 1, "Record 2"))
    assert document.text[27:] == "id: 8"
    assert document.metadata == {"records": 2}


def test_a_single_record_titles_the_document() -> None:
    document = read({"Title": "The page", "Content": "What it says."})
    assert document.title == "The page"
    assert document.headings == ()
    assert document.text == "The page\n\nWhat it says."


def test_numbers_keep_every_digit() -> None:
    document = read_text('{"a": 12345678901234567890123.4500, "b": 1e999, "c": -0.0}')
    assert document.text == "a: 12345678901234567890123.4500\nb: 1e999\nc: -0.0"


def test_what_other_programs_write_for_no_number_is_read() -> None:
    assert read_text("[NaN, Infinity, -Infinity]").text == "NaN, Infinity, -Infinity"


def test_names_that_come_twice_are_both_kept() -> None:
    assert read_text('{"a": 1, "a": {"b": 2}, "a": 3}').text == "a: 1\na.b: 2\na: 3"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('{"a": 1,\n "b" 2}', "malformed", r"':' is missing \(line 2, column 6\)"),
        ('{"a": 1,}', "malformed", r"a name in quotes is missing \(line 1, column 9\)"),
        ("{a: 1}", "malformed", r"a name in quotes is missing \(line 1, column 2\)"),
        ("[1 2]", "malformed", r"',' or '\]' is missing \(line 1, column 4\)"),
        ("[1, 2}", "malformed", r"',' or '\]' is missing \(line 1, column 6\)"),
        ("just words", "malformed", r"a value is missing \(line 1, column 1\)"),
        ('{"a": 1} and more', "malformed", r"a value is missing \(line 1, column 10\)"),
        ('["\\q"]', "malformed", "an unknown escape"),
        ('{"a": [1, 2', "truncated", r"ends too early: .* \(line 1, column 12\)"),
        ('{"a": "b', "truncated", "ends too early"),
        ("[" * 100_000, "malformed", "nested deeper than 200 levels"),
        ('{"a":' * 100_000, "malformed", "nested deeper than 200 levels"),
        ('""', "no_text", "only empty strings"),
        ("[]", "empty", "The JSON is empty"),
        ("\ufeff \n", "empty", "no text"),
    ],
)
def test_broken_json_says_where(text: str, code: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read_text(text)
    assert caught.value.code == code


def test_a_line_of_json_lines_that_is_broken_is_named() -> None:
    with pytest.raises(ParseError, match="line 3, column 7"):
        read_text('{"a": 1}\n{"a": 2}\n{"a": }\n', "a.jsonl")


def test_memory_does_not_grow_with_the_number_of_values() -> None:
    source = json.dumps([{"id": n, "amount": n * 1.5, "on": "2024-05-06"} for n in range(4_000)])
    tracemalloc.start()
    document = read_text(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert document.metadata == {"records": 4_000}
    # The bytes, their text, the pieces and the whole they are joined to; no tree of objects, which
    # alone would take ten times the size of the source.
    assert peak < 9 * len(source)


def test_text_that_grows_beyond_all_bounds_is_refused() -> None:
    source = json.dumps({"a" * 1000: [{"b": n} for n in range(100)]}).encode()
    with pytest.raises(ParseError, match="Split it") as caught:
        parse_json(source, name="a.json", limits=Limits(max_characters=50_000))
    assert caught.value.code == "too_large"


_KEYS = st.text(max_size=8) | st.sampled_from(["title", "text", "name", "content", "a.b", "[0]"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=100),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=30,
)


def strings(value: Any) -> list[str]:
    """Every value and name as a reader must find it, white space aside."""
    match value:
        case dict():
            inner = [text for each in value.values() for text in strings(each)]
            return inner + [seen(key) for key in value if key.casefold() not in _UNNAMED]
        case list():
            return [text for each in value for text in strings(each)]
        case str():
            return [seen(value)]
        case _:
            return [json.dumps(value)]


def seen(text: str) -> str:
    """As it is stored, white space aside: PostgreSQL holds no U+0000, and no word has soft hyphens
    or the like."""
    return " ".join(without_invisible(text.replace("\0", "")).split())


def check(source: str, name: str, *, wanted: list[str]) -> None:
    assume(any(wanted))
    written = " ".join(read_text(source, name).text.split())
    assert [each for each in wanted if each not in written] == []


#: Their values stand without the name.
_UNNAMED = {
    *("title", "headline", "subject", "name"),
    *("text", "content", "body", "page_content", "passage", "abstract"),
}


@settings(deadline=None, max_examples=300)
@given(value=_VALUES)
def test_no_value_of_any_json_is_lost(value: Any) -> None:
    check(json.dumps(value), "a.json", wanted=strings(value))


@settings(deadline=None, max_examples=100)
@given(values=st.lists(_VALUES, min_size=1, max_size=5))
def test_json_lines_are_read_as_the_list_of_their_values(values: list[Any]) -> None:
    check("\n".join(map(json.dumps, values)), "a.jsonl", wanted=strings(values))
