"""Follow-up questions are told from others, and made whole by rules or by a checked model."""

from collections.abc import Generator, Sequence
from typing import Unpack

import pytest

from inference.interfaces import BackendUnavailable, ChatMessage, ChatOptions
from rag.answering.coreference import (
    needs_history,
    rewrite_by_rules,
    rewrite_question,
    validate_rewrite,
)
from rag.answering.phrases import not_found_text, refusal_help, small_talk
from rag.events import SearchedScope


def turns(*said: str) -> list[ChatMessage]:
    """The user and the assistant in turn."""
    roles = ("user", "assistant")
    return [ChatMessage(roles[at % 2], text) for at, text in enumerate(said)]  # type: ignore[arg-type]


TOWER = turns("How tall is the Eiffel Tower?", "“It is 330 m tall.” [1]")
TAX = turns("What is the VAT rate in France?", "20 % [1]")


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("Who built it?", "Who built the Eiffel Tower?"),
        ("Where is its entrance?", "Where is the Eiffel Tower's entrance?"),
        ("What about Big Ben?", "How tall is Big Ben?"),
        ("Why?", "How tall is the Eiffel Tower? Why?"),
        ("When was it opened and by whom?", "When was the Eiffel Tower opened and by whom?"),
    ],
)
def test_a_pronoun_is_what_was_asked_about(question: str, whole: str) -> None:
    assert needs_history(question, TOWER)
    assert rewrite_by_rules(question, TOWER) == whole


@pytest.mark.parametrize(
    ("question", "whole"),
    [
        ("And in Germany?", "What is the VAT rate in Germany?"),
        ("in 1995?", "What is the VAT rate in 1995?"),
        ("and for books?", "What is the VAT rate in France for books?"),
        ("what about Spain?", "What is the VAT rate in Spain?"),
    ],
)
def test_what_is_left_out_comes_from_the_question_before(question: str, whole: str) -> None:
    assert rewrite_by_rules(question, TAX) == whole


def test_a_person_may_stand_in_the_answer() -> None:
    history = turns("Who built the Eiffel Tower?", "“The engineer Gustave Eiffel built it.” [1]")
    assert rewrite_by_rules("Where was he born?", history) == "Where was Gustave Eiffel born?"


def test_what_a_refusal_had_searched_is_not_asked_about() -> None:
    asked = ChatMessage("user", "Who was Marie Curie?")
    alone = ChatMessage("assistant", not_found_text("en"))
    searched = SearchedScope({"bikes": "Victor Hugo"}, 12)
    helped = ChatMessage("assistant", f"{alone.content}\n\n{refusal_help(searched, 'en')}")
    question = "When was she born?"
    assert "Curie" in rewrite_question(question, [asked, helped])
    for follow_up in (question, "And where did he live?"):
        assert rewrite_question(follow_up, [asked, helped]) == rewrite_question(
            follow_up, [asked, alone]
        )


def test_a_follow_up_of_a_follow_up_is_made_whole() -> None:
    history = turns("Who discovered radium?", "Marie Curie [1]", "When was she born?", "1867 [1]")
    assert rewrite_by_rules("Did she win a prize?", history) == "Did Marie Curie win a prize?"


def test_other_languages_get_the_topic_behind_the_question() -> None:
    history = turns("Wie hoch ist der Eiffelturm?", "330 m [1]")
    assert rewrite_by_rules("Wer hat ihn gebaut?", history).endswith("der Eiffelturm?")
    history = turns("Wie viele Einwohner leben in Hamburg?", "1,9 Millionen [1]")
    assert rewrite_by_rules("Und in Berlin?", history) == "Wie viele Einwohner leben in Berlin?"


@pytest.mark.parametrize(
    "question",
    [
        "Who was the first president of France?",
        "And who was the first president of France?",
        "Did Einstein win a prize before he moved?",
        "Is it true that iron rusts in water?",
        "How many employees are there?",
        "Which film that was shot in Rome won an award?",
        "When was the tower built and who designed it?",
    ],
)
def test_a_question_that_stands_alone_stays_as_it_is(question: str) -> None:
    assert not needs_history(question, TOWER)
    assert rewrite_by_rules(question, TOWER) == question


def test_without_a_history_nothing_leans() -> None:
    assert not needs_history("Who built it?", [])
    assert rewrite_question("Who built it?", []) == "Who built it?"


class Replying:
    """A chat model that says one thing, or fails."""

    model_name = "replying"

    def __init__(self, reply: str | None) -> None:
        self.reply = reply
        self.asked: list[Sequence[ChatMessage]] = []

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        self.asked.append(messages)
        if self.reply is None:
            raise BackendUnavailable("no server there")
        return ChatMessage("assistant", self.reply)

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[str, None, ChatMessage]:
        yield from ()
        return ChatMessage("assistant", "")


def test_a_model_makes_it_whole_where_there_is_one() -> None:
    model = Replying('Question: "By whom was the Eiffel Tower built?"')
    assert (
        rewrite_question("Who built it?", TOWER, model=model)
        == "By whom was the Eiffel Tower built?"
    )
    ((system, asked),) = model.asked
    assert system.role == "system"
    assert "How tall is the Eiffel Tower?" in asked.content


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "Sure!\nWho built the Eiffel Tower?",
        "x" * 900,
        "   ",
        "Completely unrelated statement concerning bananas",
    ],
)
def test_a_model_that_says_something_else_leaves_it_to_the_rules(reply: str | None) -> None:
    model = Replying(reply)
    assert rewrite_question("Who built it?", TOWER, model=model) == "Who built the Eiffel Tower?"
    assert len(model.asked) == 1


def test_a_question_that_stands_alone_asks_no_model() -> None:
    model = Replying("anything")
    question = "Who was the first president of France?"
    assert rewrite_question(question, TOWER, model=model) == question
    assert model.asked == []


def test_quotation_marks_and_labels_are_no_part_of_a_question() -> None:
    reply = "Standalone question: “Who built the Eiffel Tower?”"
    assert validate_rewrite(reply, "Who built it?", TOWER) == "Who built the Eiffel Tower?"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Hi!", "Hello!"),
        ("hello there", "Hello!"),
        ("Guten Morgen", "Hallo!"),
        ("¿Qué tal?", "¡Hola!"),
        ("Thanks a lot, that was great!", "You are welcome."),
        ("danke schön", "Gern geschehen."),
        ("bye", "Goodbye!"),
        ("Hi, what can you do?", "I look for answers"),
    ],
)
def test_a_greeting_is_answered_in_its_language(message: str, answer: str) -> None:
    said = small_talk(message)
    assert said is not None
    assert said.startswith(answer)


@pytest.mark.parametrize(
    "message",
    [
        "Hello, who built the tower?",
        "Great Britain",
        "good morning vietnam",
        "help me with taxes",
        "hi " * 60,
        "",
        "thanks to whom was it built?",
    ],
)
def test_what_asks_for_something_is_no_greeting(message: str) -> None:
    assert small_talk(message) is None
