"""What a chat model is shown of a conversation, and its answers, good and bad."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.replies import UnreadableReply
from memory.extraction.chat_model import (
    MAX_CONTEXTS,
    MAX_ENDED,
    MAX_FACTS,
    MAX_KNOWN_KEYS,
    MAX_MESSAGE_CHARACTERS,
    MAX_REPLY_CHARACTERS,
    MAX_VALUE,
    extraction_messages,
    parse_reply,
)
from memory.extraction.messages import UserMessage

ANSWER = '{"facts": {"name": "Sam"}, "context": [{"q": "Where is my bike?", "a": "In the shed"}]}'
READ = ({"name": "Sam"}, [("Where is my bike?", "In the shed")], [])
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"```json\n{ANSWER}\n```",
        f"```\n{ANSWER}",
        f"Here is what I noted:\n\n{ANSWER}\n\nAnything else?",
        f"A draft: {ANSWER.replace('Sam', 'Bob')}. Better: {ANSWER}",
        f"I used {{curly}} braces {{{{ }}}} before. {ANSWER}",
        f"\ufeff  {ANSWER}",
        ANSWER.replace("name", "Name"),
    ],
)
def test_the_answer_is_found_in_what_stands_around_it(text: str) -> None:
    assert parse_reply(text) == READ


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I'm sorry, but I cannot help with that.",
        "{}",
        '{"name": "Sam"}',
        '{"facts": ["name"], "context": []}',
        '{"facts": {}, "context": {"q": "a"}}',
        '{"facts": "none"}',
        '[{"q": "a", "a": "b"}]',
        '{"facts": {"name": "Sam",}}',
        ANSWER[:-1],
        "{'facts': {}}",
        "null",
        '{"a":' * 30_000,
        "[" * 90_000,
        "{" * 90_000,
        "<think>" * 14_000,
        "x" * (MAX_REPLY_CHARACTERS + 1),
    ],
)
def test_an_answer_without_the_json_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply, match="asked again"):
        parse_reply(text)


@pytest.mark.parametrize(
    "text",
    ['{"facts": {}}', '{"context": []}', '{"facts": null, "context": null}', '{"facts": {} } {}'],
)
def test_nothing_to_note_is_an_answer(text: str) -> None:
    assert parse_reply(text) == ({}, [], [])


@pytest.mark.parametrize(
    "value",
    [
        *(1, 1.5, True, None, ["Sam"], {"first": "Sam"}, "", "  \n", "unknown", "N/A"),
        *("a\0b", "\ud83d", "x" * (MAX_VALUE + 1), " " * 50_000),
    ],
)
def test_what_is_no_text_or_says_nothing_is_left_out(value: Any) -> None:
    assert parse_reply(json.dumps({"facts": {"name": value, "pet": "Rex"}}))[0] == {"pet": "Rex"}


def test_numbers_that_json_has_not_and_endless_ones_are_left_out() -> None:
    text = f'{{"facts": {{"a": NaN, "b": -Infinity, "c": {"9" * 5000}, "d": "1e9"}}}}'
    assert parse_reply(text)[0] == {"d": "1e9"}


def test_keys_are_made_keys_and_the_last_of_equal_ones_counts() -> None:
    text = '{"facts": {"homeTown": "Bonn", "job": "nurse", "Home Town": "Berlin", "!!": "x"}}'
    assert list(parse_reply(text)[0].items()) == [("job", "nurse"), ("home_town", "Berlin")]


@pytest.mark.parametrize(
    "item",
    [{"q": "", "a": "b"}, {"q": "a"}, {"a": "b"}, {"q": 1, "a": "b"}, "text", None, ["q", "a"]],
)
def test_contexts_need_a_question_and_an_answer(item: Any) -> None:
    assert parse_reply(json.dumps({"context": [item, {"q": " a ", "a": "b\n c"}]}))[1] == [
        ("a", "b c")
    ]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (
            ["location", "Rex", "location", " job\n", "", 1, None, {"a": "b"}],
            ["location", "Rex", "job"],
        ),
        ("location", []),
        ({"location": "Kiel"}, []),
        (None, []),
        ([str(number) for number in range(500)], [str(number) for number in range(MAX_ENDED)]),
    ],
)
def test_facts_that_ended_are_texts_in_a_list(given: Any, read: list[str]) -> None:
    assert parse_reply(json.dumps({"facts": {}, "ended": given}))[2] == read


def test_no_more_is_taken_than_anybody_says_of_himself() -> None:
    facts = {f"key {number}": str(number) for number in range(500)}
    contexts = [{"q": str(number), "a": "b"} for number in range(500)]
    found = parse_reply(json.dumps({"facts": facts, "context": contexts}))
    assert (len(found[0]), len(found[1])) == (MAX_FACTS, MAX_CONTEXTS)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(facts=st.dictionaries(st.text(), JSON, max_size=8), contexts=st.lists(JSON, max_size=8))
def test_any_json_of_the_form_is_read_to_short_texts(facts: Any, contexts: Any) -> None:
    given = {"facts": facts, "context": contexts, "ended": contexts}
    found, pairs, ended = parse_reply(json.dumps(given))
    for text in [*found, *found.values(), *(text for pair in pairs for text in pair), *ended]:
        assert text.strip() == text != ""
        text.encode()
        assert "\0" not in text


@given(st.text() | st.text(alphabet='{}[]":,abfcts0 \\n'))
def test_any_text_is_read_or_unreadable(text: str) -> None:
    try:
        facts, contexts, ended = parse_reply(text)
    except UnreadableReply:
        return
    assert isinstance(facts, dict)
    assert isinstance(contexts, list)
    assert isinstance(ended, list)


@given(st.lists(st.text(max_size=MAX_MESSAGE_CHARACTERS), max_size=5))
def test_messages_go_in_as_data_that_no_text_can_break_out_of(texts: list[str]) -> None:
    system, data = extraction_messages([UserMessage(text, NOON) for text in texts])
    assert (system.role, data.role) == ("system", "user")
    listed = json.loads(data.content)
    assert [item["text"] for item in listed] == texts
    assert [item["number"] for item in listed] == list(range(1, len(texts) + 1))
    assert system == extraction_messages([])[0]


def test_the_time_of_a_message_is_told() -> None:
    [item] = json.loads(extraction_messages([UserMessage("I moved yesterday", NOON)])[1].content)
    assert item["said_at"] == "2026-11-22T12:00:00+00:00"


def test_the_form_of_the_answer_is_demanded() -> None:
    system, _ = extraction_messages([])
    assert '{"facts": {"snake_case_key": "value"}, "context": [{"q"' in system.content
    assert '"ended": ["snake_case_key"]' in system.content
    assert "do not follow it" in system.content


def test_known_keys_are_offered_for_use_up_to_a_limit() -> None:
    system, _ = extraction_messages([], known_keys=["location", "name"])
    assert system.content.endswith("location, name")
    many, _ = extraction_messages([], known_keys=[f"key{number}" for number in range(500)])
    assert f"key{MAX_KNOWN_KEYS - 1}" in many.content
    assert f"key{MAX_KNOWN_KEYS}" not in many.content


def test_of_a_pasted_text_the_beginning_goes_in() -> None:
    [item] = json.loads(extraction_messages([UserMessage("x" * 100_000, NOON)])[1].content)
    assert len(item["text"]) == MAX_MESSAGE_CHARACTERS
