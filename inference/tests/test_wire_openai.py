"""Messages out of answers and streams that keep to OpenAI's protocol, and out of others."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.backends.chat_openai import OpenAIChat, request_message, request_tool_choice
from inference.interfaces import (
    AnswerRefused,
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    MalformedAnswer,
    ToolCall,
    Usage,
)
from inference.remote.chat import END_EVENT
from inference.tests.stub_server import chat_reply, delta

parse_message, parse_stream = OpenAIChat.parse_message, OpenAIChat.parse_stream
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
STOP = json.dumps(delta(finish="stop"))


def streamed(*events):
    """The pieces and the whole message."""
    pieces, stream = [], parse_stream(events)
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            return pieces, end.value


def pieces_of(*texts, finish="stop"):
    return [
        *(json.dumps(delta(text)) for text in texts),
        json.dumps(delta(finish=finish)),
        END_EVENT,
    ]


def test_an_answer_becomes_a_message():
    thought = "Hm, France …"
    answer = parse_message(chat_reply("Paris.", reasoning_content=thought).body)
    assert answer == ChatMessage("assistant", "Paris.", usage=Usage(7, 3), reasoning=thought)


@pytest.mark.parametrize("usage", [None, {}, [], {"prompt_tokens": "7", "completion_tokens": 1}])
def test_an_answer_is_none_the_worse_for_a_server_that_does_not_count(usage):
    assert parse_message({**chat_reply("Yes.").body, "usage": usage}).usage is None


def test_an_answer_cut_short_says_so():
    assert parse_message(chat_reply("Once upon", finish="length").body).truncated
    assert not parse_message(chat_reply("The end.").body).truncated


def test_tool_calls_come_with_their_arguments_unread():
    answer = parse_message(chat_reply(None, finish="tool_calls", tool_calls=[CALL]).body)
    assert answer.tool_calls == (ToolCall("c1", "f", '{"a": 1}'),)
    assert answer.content == ""


@pytest.mark.parametrize(
    "calls",
    [["f"], [{}], [{"function": "f"}], [{"function": None}], 7, "f"]
    + [[{"function": {"name": name}}] for name in (None, "", 7)],
)
def test_tool_calls_that_name_no_function_are_malformed(calls):
    with pytest.raises(MalformedAnswer, match="not functions with names"):
        parse_message(chat_reply("x", tool_calls=calls).body)


def test_tool_calls_whose_arguments_are_no_text_are_malformed():
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    with pytest.raises(MalformedAnswer, match="'arguments' is no text"):
        parse_message(chat_reply("x", tool_calls=[call]).body)


@pytest.mark.parametrize("answer", [None, [], "x", {}, {"choices": None}, {"choices": ["x"]}])
def test_an_answer_without_choices_is_malformed(answer):
    with pytest.raises(MalformedAnswer, match="no list `choices`"):
        parse_message(answer)


def test_an_answer_with_empty_choices_is_malformed():
    with pytest.raises(MalformedAnswer, match="`choices` is empty"):
        parse_message({"choices": []})


@pytest.mark.parametrize("message", [None, "hello", []])
def test_a_choice_without_a_message_is_malformed(message):
    with pytest.raises(MalformedAnswer, match="no 'message'"):
        parse_message({"choices": [{"message": message}]})


@pytest.mark.parametrize("content", [7, ["parts"], {"text": "x"}, True])
def test_content_that_is_no_text_is_malformed(content):
    with pytest.raises(MalformedAnswer, match="'content' is no text"):
        parse_message(chat_reply(content).body)
    with pytest.raises(MalformedAnswer, match="'content' is no text"):
        streamed(json.dumps(delta(content)))


def test_a_model_that_only_thought_is_empty_and_says_what_to_do():
    thought = {"reasoning_content": "Let me think"}
    with pytest.raises(EmptyAnswer, match="Raise max_tokens"):
        parse_message(chat_reply(None, finish="length", **thought).body)
    with pytest.raises(EmptyAnswer, match="Raise max_tokens"):
        streamed(json.dumps(delta(**thought)), json.dumps(delta(finish="length")), END_EVENT)


def test_a_refusal_is_told_in_the_models_words():
    with pytest.raises(AnswerRefused, match="I cannot"):
        parse_message(chat_reply(None, refusal="I cannot help.").body)
    with pytest.raises(AnswerRefused, match="I cannot help"):
        streamed(json.dumps(delta(refusal="I cannot")), json.dumps(delta(refusal=" help")), STOP)


def test_what_a_filter_stopped_is_no_answer():
    with pytest.raises(AnswerRefused, match="a filter"):
        parse_message(chat_reply("So first you", finish="content_filter").body)
    with pytest.raises(AnswerRefused, match="a filter"):
        streamed(*pieces_of("So first you", finish="content_filter"))


@given(st.lists(st.text(min_size=1)).filter(lambda pieces: "".join(pieces).strip()))
def test_pieces_are_handed_out_as_they_are_and_make_the_whole(texts):
    pieces, whole = streamed(*pieces_of(*texts))
    assert pieces == texts
    assert whole == ChatMessage("assistant", "".join(texts))


def test_events_without_text_are_passed_over():
    counted = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    events = [
        {"choices": [], "prompt_filter_results": []},
        delta(role="assistant"),
        delta("Yes."),
        delta(finish="length"),
        counted,
        delta(),
    ]
    pieces, whole = streamed(*map(json.dumps, events), END_EVENT)
    assert pieces == ["Yes."]
    assert whole == ChatMessage("assistant", "Yes.", truncated=True, usage=Usage(7, 3))


@pytest.mark.parametrize("last", [END_EVENT, STOP])
def test_a_stream_ends_with_its_mark_or_with_a_reason(last):
    assert streamed(json.dumps(delta("Yes.")), last)[1].content == "Yes."


@pytest.mark.parametrize("error", [{"message": "out of memory"}, "out of memory"])
def test_an_error_that_comes_as_a_success_is_told_in_the_servers_words(error):
    with pytest.raises(BackendUnavailable, match="out of memory"):
        parse_message({"error": error})
    with pytest.raises(BackendUnavailable, match="out of memory"):
        streamed(json.dumps(delta("Yes")), json.dumps({"error": error}))


@pytest.mark.parametrize("event", ['{"choices": [{"del', "<html>", "[" * 200_000])
def test_an_event_that_is_no_json_is_malformed(event):
    with pytest.raises(MalformedAnswer, match="not JSON"):
        streamed(event)


@pytest.mark.parametrize("event", ["null", "7", "{}", '{"choices": 7}', '{"choices": [{}]}'])
def test_a_stream_of_events_of_another_shape_is_malformed(event):
    with pytest.raises(MalformedAnswer, match=r"`choices`|'delta'"):
        streamed(event)


def piece(index=0, **fields):
    """An event with a piece of a call; `name` and `arguments` are the function's."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    numbered = {} if index is None else {"index": index}
    return json.dumps(delta(tool_calls=[{**numbered, **fields, "function": function}]))


CALLED = json.dumps(delta(finish="tool_calls"))


def test_pieces_of_calls_are_put_together_by_their_number():
    text, whole = streamed(
        json.dumps(delta("Let me see.")),
        piece(0, id="c1", name="f", arguments=""),
        piece(0, arguments='{"a'),
        piece(1, id="c2", name="g", arguments='{"b": '),
        piece(0, arguments='": 1}'),
        piece(1, arguments="2}"),
        CALLED,
        END_EVENT,
    )
    assert text == ["Let me see."]
    assert whole.tool_calls == (ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "g", '{"b": 2}'))
    assert whole.finish_reason == "tool_calls"


def test_calls_that_all_have_the_same_number_are_told_apart_by_their_ids():
    calls = [piece(0, id=f"c{at}", name="f", arguments=f"[{at}]") for at in range(3)]
    whole = streamed(*calls, CALLED)[1]
    assert whole.tool_calls == tuple(ToolCall(f"c{at}", "f", f"[{at}]") for at in range(3))


def test_a_name_that_comes_with_every_piece_is_taken_once():
    pieces = [piece(0, id="c1", name="f", arguments=part) for part in ('{"a"', ": 1}")]
    assert streamed(*pieces, CALLED)[1].tool_calls == (ToolCall("c1", "f", '{"a": 1}'),)


def test_a_server_that_numbers_nothing_is_understood():
    whole = streamed(piece(None, name="f", arguments="{"), piece(None, arguments="}"), CALLED)[1]
    assert [(call.name, call.arguments) for call in whole.tool_calls] == [("f", "{}")]


@pytest.mark.parametrize("ids", [("", ""), ("c", "c"), (None, "c")])
def test_each_call_gets_an_id_of_its_own(ids):
    calls = [{"id": given, "function": {"name": "f", "arguments": "{}"}} for given in ids]
    streams = [piece(at, id=given, name="f") for at, given in enumerate(ids)]
    whole = parse_message(chat_reply(None, tool_calls=calls).body)
    for message in (whole, streamed(*streams, CALLED)[1]):
        own = [call.id for call in message.tool_calls]
        assert len(set(own)) == 2
        assert all(own)


def test_no_arguments_are_an_empty_object_and_broken_ones_stay_as_they_are():
    assert streamed(piece(0, id="c", name="f"), CALLED)[1].tool_calls[0].arguments == "{}"
    broken = piece(0, id="c", name="f", arguments='{"a": ')
    assert streamed(broken, CALLED)[1].tool_calls[0].arguments == '{"a": '


def test_a_call_that_is_cut_short_says_so():
    whole = streamed(piece(0, id="c", name="f", arguments='{"a'), STOP.replace("stop", "length"))[1]
    assert whole.truncated
    assert whole.finish_reason == "length"


def test_a_streamed_call_without_a_name_is_malformed():
    with pytest.raises(MalformedAnswer, match="not functions with names"):
        streamed(piece(0, id="c", arguments="{}"), CALLED)


@given(st.lists(st.lists(st.text(max_size=5), min_size=1), min_size=1, max_size=4), st.randoms())
def test_calls_come_out_whole_however_their_pieces_are_mixed(texts, random):
    begun = [piece(at, id=f"c{at}", name=f"f{at}") for at in range(len(texts))]
    queues = [[piece(at, arguments=part) for part in parts] for at, parts in enumerate(texts)]
    mixed = []
    while any(queues):
        mixed.append(random.choice([queue for queue in queues if queue]).pop(0))
    whole = streamed(*begun, *mixed, CALLED)[1]
    expected = ["".join(parts) for parts in texts]
    assert [call.arguments for call in whole.tool_calls] == [
        text if text.strip() else "{}" for text in expected
    ]


@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_a_choice_among_tools_is_sent_as_it_is(choice):
    assert request_tool_choice(choice) == choice


def test_a_tool_that_must_be_called_is_named():
    assert request_tool_choice("f") == {"type": "function", "function": {"name": "f"}}


def test_a_conversation_with_tools_is_sent_back_as_it_came():
    asked = ChatMessage("assistant", "", tool_calls=(ToolCall("c1", "f", '{"a": 1}'),))
    answered = ChatMessage("tool", "42", tool_call_id="c1")
    assert request_message(asked) == {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert request_message(answered) == {"role": "tool", "content": "42", "tool_call_id": "c1"}
    assert request_message(ChatMessage("user", "half \ud800")) == {
        "role": "user",
        "content": "half ?",
    }
