"""What rules read of a user's messages, and what they leave alone."""

from collections.abc import Mapping
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.messages import Extracted, UserMessage
from memory.extraction.rules import MAX_MESSAGE_CHARACTERS, extract_by_rules, split_sentences
from tests.cases import read_cases

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)

CASES = read_cases(__file__, "statements")


def found(*texts: str) -> Extracted:
    return extract_by_rules([UserMessage(text, NOON) for text in texts])


def facts(*texts: str) -> dict[str, str]:
    return {key: value for key, value, _ in found(*texts).facts}


@pytest.mark.parametrize(("text", "expected"), CASES["stated"])
def test_what_is_stated_is_read(text: str, expected: Mapping[str, str]) -> None:
    assert facts(text) == expected


@pytest.mark.parametrize(
    "text",
    [*CASES["not_stated"], "I live in Berlin. " * (MAX_MESSAGE_CHARACTERS // 18 + 1)],
)
def test_what_is_not_stated_of_the_user_is_no_fact(text: str) -> None:
    assert found(text).facts == ()


def test_what_a_turn_states_of_its_user_is_kept_as_a_context() -> None:
    kept = found(
        "Last week I started to learn the cello with my sister Clara. Which bow is good?",
        "Wir waren gestern mit dem Zug in Porto. Das Wetter war schön.",
        "Write a poem about how I started to learn the cello",
        "Can you tell me where my keys are?",
        "I would like you to summarise this text",
        "The archive is open until seven in the evening.",
        "My neighbour says I started to learn the cello",
        "I am so tired",
        "I live in Rome",
    ).contexts
    assert [(question, at) for question, _, at in kept] == [
        ("Last week I started to learn the cello with my sister Clara", 0),
        ("Wir waren gestern mit dem Zug in Porto", 1),
    ]


def test_what_is_to_be_remembered_and_fits_no_rule_is_kept_as_it_was_said() -> None:
    kept = found("Please remember that I always fly from Munich on Fridays").contexts
    assert list(kept) == [("I always fly from Munich on Fridays", "", 0)]


def test_corrections_come_after_what_they_correct() -> None:
    said = found("I live in Munich.", "What's the weather?", "Actually, I moved to Berlin.")
    assert list(said.facts) == [
        ("location", "Munich", 0),
        ("location", "Berlin", 2),
    ]


def test_what_was_said_before_is_not_said_again() -> None:
    said = found("I live in Rome", "I live in Rome", "I live in Bonn", "I live in Rome").facts
    assert [value for _, value, _ in said] == ["Rome", "Bonn", "Rome"]


HOSTILE = [
    *("a", "i ", "I'm ", "my ", " and I", "and my, ", '"', "'", "' ", "“", "```", "[", ">", ": "),
    *("i really ", "please ", "hi, ", "my name is ", "i have a ", "my dog ", "my son, ", "A. "),
    *("i work as a b at ", "ich bin nach ", "1. ", "! ", "i prefer a over ", "'a", "\u0301"),
    *("my favourite ", "my wife A, ", "i'm a ", "\n", "x is my favourite ", "remember that "),
    *("i no longer ", "i left a for ", "not a, ", "wir mussten ", "and live ", "forget that "),
    *(
        "i said i ",
        "ich habe a zu ",
        "gestern ",
        "in a wohne ich ",
        "mine is ",
        "dass ich a ",
        "A ",
    ),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_in_bounded_time(piece: str) -> None:
    start = process_time()
    found((piece * 100_000)[:100_000])
    found((piece * MAX_MESSAGE_CHARACTERS)[:MAX_MESSAGE_CHARACTERS])
    found(((piece * 400)[:390] + ". ") * 10)
    # 0.2 s; a pattern that goes back and forth would take hours
    assert process_time() - start < 20


WORDS = st.sampled_from(
    [
        *("i", "I'm", "my", "name is", "Sam", "live in", "Berlin", "and", "not", "if", "call me"),
        *(
            "love",
            "the",
            "a",
            "dog",
            "named",
            "favourite",
            "food",
            "work as",
            "at",
            "remember that",
        ),
        *("ich", "heiße", "wohne in", "mein", "Hund", ",", ".", "?", "!", "“", "”", '"', "'", "("),
        *(")", ":", "[", "]", "\n", "-"),
    ]
)


@given(st.lists(WORDS, max_size=60).map(" ".join) | st.text(max_size=200))
def test_any_text_is_read_to_short_values_of_its_own_words(text: str) -> None:
    for _, value, _ in found(text).facts:
        assert 0 < len(value) <= 200
        assert value == " ".join(value.split())
        assert not set(value) & set("\n[]")


@given(st.text(max_size=300))
def test_sentences_hold_no_marks_for_quotations_but_their_own(text: str) -> None:
    for sentence in split_sentences(text):
        assert sentence.restored(sentence.text).isprintable() or not text.isprintable()
        marks = [letter for letter in sentence.text if "\ue000" <= letter <= "\uf8ff"]
        assert len(marks) <= len(sentence.quotations)
