"""What chat models are asked about a passage, and their answers, good and bad."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.extraction.chat_model import (
    MAX_ENTITIES,
    MAX_PASSAGE_CHARACTERS,
    MAX_REL,
    MAX_REPLY_CHARACTERS,
    MAX_TYPE,
    extraction_messages,
    read_reply,
    relation_name,
)
from graph.extraction.mentions import Source, SourcePassage
from graph.extraction.normalized_names import normalize_name
from inference.replies import UnreadableReply

TEXT = (
    "Ada Lovelace was born in London. She wrote notes on the **Analytical\nEngine**.\n\n"
    "ada lovelace died in 1852."
)
BORN = {
    "source": "Ada Lovelace",
    "relation": "was born in",
    "target": "London",
    "evidence": "Ada Lovelace was born in London.",
}
ENTITIES = [{"name": "Ada Lovelace", "type": "Person"}, {"name": "London", "type": "place"}]
ANSWER = json.dumps({"entities": ENTITIES, "relations": [BORN]})


def forms(reply: str, text: str = TEXT) -> list[str]:
    return [mention.form for mention in read_reply(reply, text=text).mentions]


def relations(reply: str, text: str = TEXT) -> list[tuple[str, str, str]]:
    found = read_reply(reply, text=text).relations
    return [(relation.source, relation.rel, relation.target) for relation in found]


def answer(*entities: Any, relations: Any = ()) -> str:
    return json.dumps({"entities": list(entities), "relations": list(relations)})


@pytest.mark.parametrize(
    "reply",
    [
        ANSWER,
        f"```json\n{ANSWER}\n```",
        f"Here is what I found:\n\n{ANSWER}\n\nAnything else?",
        f'A draft: {{"entities": [], "relations": []}}. Better: {ANSWER}',
        f"I used {{curly}} braces {{{{ }}}} before. {ANSWER}",
        ANSWER[:-1],
        ANSWER[:-2] + ', {"source": "London", "rel',
        json.dumps({"entities": ["Ada Lovelace", "London"], "relations": [BORN]}),
    ],
)
def test_the_answer_is_found_in_what_stands_around_it(reply: str) -> None:
    assert forms(reply) == ["ada lovelace", "london"]
    assert relations(reply) == [("ada lovelace", "WAS_BORN_IN", "london")]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot help with that.",
        "{}",
        "null",
        '{"facts": {}}',
        '{"entities": {"name": "Ada"}}',
        '{"entities": "Ada"}',
        '{"entities": [{"name": "Ad',
        "{'entities': []}",
        "[" * 90_000,
        "{" * 90_000,
        '{"entities": ' * 10_000,
        "x" * (MAX_REPLY_CHARACTERS + 1),
    ],
    ids=range(13),
)
def test_what_is_no_answer_is_said_to_be_none(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="asked again"):
        read_reply(reply, text=TEXT)


def test_an_answer_that_found_nothing_is_one() -> None:
    assert read_reply('{"entities": [], "relations": []}', text=TEXT).mentions == ()


def test_places_names_and_types_are_those_of_the_passage() -> None:
    ada, engine = read_reply(
        answer({"name": "ADA LOVELACE", "type": "<b>Person!</b>"}, "Analytical Engine"), text=TEXT
    ).mentions
    assert (ada.name, ada.type, ada.count, TEXT[ada.start : ada.end]) == (
        "Ada Lovelace",
        "b person b",
        2,
        "Ada Lovelace",
    )
    assert (engine.name, engine.type) == ("Analytical Engine", "name")
    assert TEXT[engine.start : engine.end] == "Analytical\nEngine"


def test_evidence_is_found_although_marks_and_case_differ() -> None:
    said = "she wrote notes on the Analytical Engine"
    wrote = {
        "source": "Ada Lovelace",
        "relation": "Wrote about",
        "target": "the Analytical Engine",
        "evidence": said,
    }
    [relation] = read_reply(answer(relations=[wrote]), text=TEXT).relations
    assert TEXT[relation.start : relation.end].startswith("She wrote notes")
    assert relation.target == "analytical engine"


@pytest.mark.parametrize(
    "changed",
    [
        {"evidence": "Ada Lovelace was born in Paris."},
        {"evidence": ""},
        {"evidence": None},
        {"target": "Paris"},
        {"target": "ada lovelace"},
        {"source": ["Ada Lovelace"]},
        {"relation": "  "},
        {"relation": "???"},
        {"relation": 7},
    ],
)
def test_a_relation_that_the_passage_does_not_state_is_left_out(changed: Any) -> None:
    reply = answer(relations=[BORN | changed])
    assert relations(reply) == []
    # and neither of its ends is taken on its word alone
    assert forms(reply) == []


def test_an_invented_entity_is_left_out() -> None:
    assert forms(answer("Grace Hopper", "London", "", "  ", "Lovelace London", 7, None)) == [
        "london"
    ]


def test_names_without_spaces_between_words_are_found() -> None:
    text = "東京都知事の小池百合子は兵庫県で生まれた。"
    reply = answer(
        "小池百合子",
        "兵庫県",
        relations=[
            {"source": "小池百合子", "relation": "born in", "target": "兵庫県", "evidence": text}
        ],
    )
    assert relations(reply, text) == [("小池百合子", "BORN_IN", "兵庫県")]


def test_no_more_than_so_many_are_taken() -> None:
    names = [f"Name{number}" for number in range(MAX_ENTITIES + 50)]
    assert len(forms(answer(*names), " ".join(names))) == MAX_ENTITIES


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("was born in", "WAS_BORN_IN"),
        ("BORN_IN", "BORN_IN"),
        ("born-in!", "BORN_IN"),
        ("né à", "NÉ_À"),
        ("x" * 65, ""),
        ("very " * 30, "_".join(["VERY"] * 13)),
        ("1 2", ""),
        (None, ""),
    ],
)
def test_relations_have_short_names_in_capitals(said: Any, name: str) -> None:
    assert relation_name(said) == name
    assert len(name) <= MAX_REL


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PHRASES = st.sampled_from(["Ada Lovelace", "London", "Analytical Engine", "1852", "Paris"])
ENTRIES = st.fixed_dictionaries(
    {
        "source": PHRASES | JSON,
        "relation": st.text() | JSON,
        "target": PHRASES | JSON,
        "evidence": st.just(BORN["evidence"]) | JSON,
    }
)
REPLIES = (
    st.text()
    | JSON.map(json.dumps)
    | st.fixed_dictionaries(
        {"entities": st.lists(PHRASES | JSON), "relations": st.lists(ENTRIES | JSON)}
    ).map(json.dumps)
)


@given(REPLIES, st.integers(0, 400), st.text())
def test_whatever_it_answers_nothing_is_taken_that_is_not_there(
    reply: str, cut: int, around: str
) -> None:
    for given_reply in (reply, reply[:cut], around + reply):
        try:
            found = read_reply(given_reply, text=TEXT, passage=3)
        except UnreadableReply:
            continue
        there = {mention.form for mention in found.mentions}
        assert len(there) == len(found.mentions)
        for mention in found.mentions:
            assert mention.passage == 3
            assert normalize_name(TEXT[mention.start : mention.end]) == mention.form
            assert 0 < len(mention.type) <= MAX_TYPE
        for relation in found.relations:
            assert {relation.source, relation.target} <= there
            assert relation.source != relation.target
            assert relation_name(relation.rel) == relation.rel
            assert 0 <= relation.start < relation.end <= len(TEXT)


@given(st.text(), st.text(), st.lists(st.text(), max_size=3))
def test_no_text_gets_out_of_its_place_in_the_request(
    title: str, text: str, headings: list[str]
) -> None:
    source = Source("key", title, [SourcePassage(text, headings)])
    system, said = extraction_messages(source, source.passages[0])
    assert (system.role, said.role) == ("system", "user")
    assert system == extraction_messages(Source("", "", []), SourcePassage(""))[0]
    asked = json.loads(said.content)
    assert asked.keys() == {"document", "headings", "passage"}
    assert asked["passage"] == text[:MAX_PASSAGE_CHARACTERS]
