"""Reasoning told apart from the answer, in every form that servers send it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.backends.chat_openai import OpenAIChat
from inference.interfaces import EmptyAnswer
from inference.reasoning import Reasoning, ReasoningSplitter
from inference.tests.chatting import ASKED, read
from inference.tests.stub_server import Stream, chat_reply, delta, event


def put_together(parts):
    """Reasoning and answer of these parts."""
    thoughts, texts = [], []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            if part.withdraws:
                texts.clear()
            thoughts.append(part.text)
    return "".join(thoughts), "".join(texts)


def split(*pieces, truncated=False, **how):
    splitter = ReasoningSplitter(**how)
    parts = [part for piece in pieces for part in splitter.feed(piece)]
    return [*parts, *splitter.finish(truncated=truncated)]


MESSAGES = {
    "tags": ("<think>secret plan [9]</think>\nBlue [1].", "secret plan [9]", "Blue [1]."),
    "space around": ("\n <think>\n plan\n\n</think>\n\n Blue.", "plan", "Blue."),
    "capitals": ("<THINK>plan</Think>Blue.", "plan", "Blue."),
    "another name": ("<thinking>plan</thinking>Blue.", "plan", "Blue."),
    "brackets": ("[THINK]plan[/THINK]Blue.", "plan", "Blue."),
    "empty": ("<think>\n\n</think>\n\nBlue.", "", "Blue."),
    "tags inside": ("<think>a <b>c</b> </thin </think>Blue.", "a <b>c</b> </thin", "Blue."),
    "unclosed": ("<think>plan [1]", "plan [1]", ""),
    "unclosed in its tag": ("<think>plan</thi", "plan</thi", ""),
    "unopened": ("plan [9]\n</think>\n\nBlue.", "plan [9]", "Blue."),
    "unopened and empty": ("</think>\n\nBlue.", "", "Blue."),
    "none": ("Blue [1].\n", "", "Blue [1].\n"),
    "another tag": ("<thin>Blue</thin>", "", "<thin>Blue</thin>"),
    "begun": ("<thi", "", "<thi"),
    "in the answer": ("It writes <think>plan</think>.", "", "It writes <think>plan</think>."),
    "on lines of the answer": ("So:\n<think>\nx\n</think>", "", "So:\n<think>\nx\n</think>"),
    "in a line of the answer": ("Use `</think>` at its end.", "", "Use `</think>` at its end."),
}


@pytest.mark.parametrize(("text", "thought", "answer"), MESSAGES.values(), ids=MESSAGES)
def test_a_message_is_split_wherever_it_is_cut(text, thought, answer):
    for size in (1, 2, 3, 5, 8, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        assert put_together(split(*pieces)) == (thought, answer), size


@given(st.lists(st.text(st.characters(exclude_characters="<["), min_size=1)))
def test_an_answer_without_reasoning_comes_in_the_pieces_it_came_in(pieces):
    assert split(*pieces) == pieces


@given(st.text(), st.text(), st.data())
def test_what_is_between_the_tags_is_never_answer(thought, answer, data):
    text = f"<think>{thought.replace('</', '')}</think>{answer}"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    expected = thought.replace("</", "").strip(), answer.lstrip()
    assert put_together(split(*pieces)) == expected


def test_white_space_is_not_held_back_for_ever() -> None:
    splitter = ReasoningSplitter()
    splitter.feed("<think>plan")
    held = [splitter.feed(" ") for _ in range(1000)]
    assert len(splitter._rest) <= 100
    assert put_together([part for parts in held for part in parts])[0].isspace()


def test_reasoning_comes_as_soon_as_it_is_certain():
    splitter = ReasoningSplitter()
    fed = [splitter.feed(piece) for piece in ("<th", "ink>First", " this", "</", "think>", "Blue")]
    assert fed == [[], [Reasoning("First")], [Reasoning(" this")], [], [], ["Blue"]]


def test_an_unopened_beginning_is_withdrawn_and_assumed_from_then_on():
    splitter = ReasoningSplitter()
    fed = [splitter.feed(piece) for piece in ("plan", " b\n", "</think>", "\n\nBlue")]
    assert fed == [["plan"], [" b\n"], [Reasoning("plan b", withdraws=True)], ["Blue"]]
    assert splitter.is_unopened
    parts = split("plan", " b\n", "</think>", "\n\nBlue", begins_inside=True)
    assert parts == [Reasoning("plan"), Reasoning(" b"), "Blue"]


@pytest.mark.parametrize(("truncated", "answer"), [(False, "Blue."), (True, "")])
def test_what_was_only_assumed_to_be_reasoning_is_the_answer_in_the_end(truncated, answer):
    splitter = ReasoningSplitter(begins_inside=True)
    parts = [*splitter.feed("Blue."), *splitter.finish(truncated=truncated)]
    assert [part for part in parts if isinstance(part, str)] == ([answer] if answer else [])
    assert splitter.is_unopened == truncated


def chat(stub):
    return OpenAIChat("m", base_url=stub.url, timeout=5, attempts=1)


MISTRAL = [{"type": "thinking", "thinking": [{"type": "text", "text": "plan [9]"}]}]
BLUE = [{"type": "text", "text": "Blue."}]
FORMS = {
    "tags": ["<think>pl", "an [9]</th", "ink>\n", "Blue."],
    "unopened": ["plan [9]", "\n</think>\n\nBlue."],
    "reasoning_content": [{"reasoning_content": "plan "}, {"reasoning_content": "[9]"}, "Blue."],
    "reasoning": [{"reasoning": "plan [9]"}, "Blue."],
    "both fields": [{"reasoning": "plan [9]", "reasoning_content": "plan [9]"}, "Blue."],
    "parts of the content": [{"content": MISTRAL}, {"content": BLUE}],
}


@pytest.mark.parametrize("pieces", FORMS.values(), ids=FORMS)
def test_each_form_is_a_part_of_its_own_streamed_and_whole(stub, pieces):
    deltas = [delta(each) if isinstance(each, str) else delta(**each) for each in pieces]
    stub.first(Stream(*map(event, [*deltas, delta(finish="stop"), "[DONE]"])))
    parts, streamed = read(chat(stub).stream(ASKED))
    assert put_together(parts) == ("plan [9]", "Blue.")
    fields = {"content": "".join(each for each in pieces if isinstance(each, str))}
    for each in pieces:
        for name, value in each.items() if isinstance(each, dict) else ():
            fields[name] = (fields.get(name) or type(value)()) + value
    stub.first(chat_reply(**fields))
    whole = chat(stub).complete(ASKED)
    for message in (streamed, whole):
        assert (message.reasoning, message.content) == ("plan [9]", "Blue.")


def test_a_model_that_opens_no_tag_is_known_after_its_first_answer(stub):
    model = chat(stub)
    for expected in (["plan\n", Reasoning("plan", withdraws=True)], [Reasoning("plan")]):
        sent = map(delta, ["plan\n", "</think>", "Blue."])
        stub.first(Stream(*map(event, [*sent, delta(finish="stop"), "[DONE]"])))
        assert read(model.stream(ASKED))[0] == [*expected, "Blue."]


@pytest.mark.parametrize("text", ["<think>plan [1]", "<think>plan</think>", "<think></think>\n"])
def test_reasoning_alone_is_no_answer(stub, text):
    stub.first(chat_reply(text))
    with pytest.raises(EmptyAnswer, match=r"gave no answer|empty answer"):
        chat(stub).complete(ASKED)


def test_reasoning_is_sent_to_no_model(stub):
    stub.first(chat_reply("<think>plan</think>Blue."), chat_reply("Yes."))
    model = chat(stub)
    model.complete([*ASKED, model.complete(ASKED), *ASKED])
    assert "plan" not in json.dumps(stub.requests[1].json)
