"""Conversations to and messages from Anthropic's protocol, and what servers make of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.backends.chat_anthropic import (
    AnthropicChat,
    request_messages,
    request_tool_choice,
    request_tools,
    system_text,
)
from inference.interfaces import (
    AnswerRefused,
    ChatMessage,
    InferenceError,
    MalformedAnswer,
    ToolCall,
    Usage,
)
from inference.reasoning import Reasoning
from inference.tests.chatting import read
from inference.tests.stub_answers import anthropic_events, anthropic_reply

parse_message, parse_stream = AnthropicChat.parse_message, AnthropicChat.parse_stream
CALL = ToolCall("c1", "f", '{"a": 1}')
USED = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}


def user(*texts):
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def assistant(*texts):
    return {**user(*texts), "role": "assistant"}


def streamed(*events):
    return read(parse_stream(json.dumps(event) for event in events))


def begun(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def grown(index, **delta):
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ended(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def test_what_the_system_says_stands_apart():
    messages = [
        ChatMessage("system", "Be brief. "),
        ChatMessage("user", "Hi"),
        ChatMessage("system", " "),
        ChatMessage("system", "Be kind."),
    ]
    assert system_text(messages) == "Be brief.\n\nBe kind."
    assert request_messages(messages) == [user("Hi")]


def test_messages_of_one_side_in_a_row_become_one():
    messages = [
        ChatMessage("user", "a"),
        ChatMessage("user", "b"),
        ChatMessage("assistant", "c"),
        ChatMessage("system", "never mind"),
        ChatMessage("assistant", "d"),
        ChatMessage("user", "e"),
    ]
    assert request_messages(messages) == [user("a", "b"), assistant("c", "d"), user("e")]


def test_blank_messages_are_left_out_and_their_neighbours_come_together():
    messages = [ChatMessage("user", "a"), ChatMessage("assistant", " "), ChatMessage("user", "b")]
    assert request_messages(messages) == [user("a", "b")]


def test_a_conversation_that_begins_with_an_answer_gets_a_beginning():
    first, second = request_messages([ChatMessage("assistant", "Paris.")])
    assert first["role"] == "user"
    assert second == assistant("Paris.")


def test_an_answer_that_is_to_be_continued_ends_in_no_blank():
    messages = [ChatMessage("user", "a"), ChatMessage("assistant", "So: \n")]
    assert request_messages(messages)[1] == assistant("So:")


@pytest.mark.parametrize("messages", [[ChatMessage("system", "s")], [ChatMessage("user", " ")]])
def test_a_conversation_in_which_nothing_is_said_is_refused(messages):
    with pytest.raises(InferenceError, match="the user says nothing"):
        request_messages(messages)


def test_results_of_tools_are_the_users_and_stand_first():
    messages = [
        ChatMessage("user", "Go"),
        ChatMessage("assistant", "I look.", tool_calls=(CALL, ToolCall("c:2", "g", "{}"))),
        ChatMessage("user", "Well?"),
        ChatMessage("tool", "42", tool_call_id="c1"),
        ChatMessage("tool", "", tool_call_id="c:2"),
    ]
    _, asked, answered = request_messages(messages)
    assert asked["content"][1:] == [USED, {**USED, "id": "c_2", "name": "g", "input": {}}]
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "42"},
        {"type": "tool_result", "tool_use_id": "c_2"},
        {"type": "text", "text": "Well?"},
    ]


@pytest.mark.parametrize("broken", ['{"a": ', "[1]", "7", "[" * 100_000])
def test_broken_arguments_are_sent_back_as_what_they_were(broken):
    call = ChatMessage("assistant", "", tool_calls=(ToolCall("c", "f", broken),))
    _, turn = request_messages([call])
    assert turn["content"][0]["input"] == {"arguments": broken}


MESSAGES = st.builds(
    ChatMessage,
    st.sampled_from(["system", "user", "assistant", "tool"]),
    st.text(max_size=5),
    tool_call_id=st.just("c"),
)


@given(st.lists(MESSAGES).filter(lambda all_: any(m.content.strip() for m in all_)))
def test_whatever_is_said_user_and_assistant_speak_by_turns_and_no_text_is_lost(messages):
    if all(message.role == "system" or not message.content.strip() for message in messages):
        messages = [*messages, ChatMessage("user", "?")]
    turns = request_messages(messages)
    roles = [turn["role"] for turn in turns]
    assert roles == [("user", "assistant")[at % 2] for at in range(len(roles))]
    texts = [block.get("text", "") for turn in turns for block in turn["content"]]
    assert all(text.strip() or "text" not in text for text in texts)
    said = {m.content.rstrip() for m in messages if m.role in {"user", "assistant"}}
    assert {text for text in said if text.strip()} <= {text.rstrip() for text in texts}


def test_tools_are_described_by_their_schema():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tools = [{"name": "f", "description": "does f", "parameters": schema}, {"name": "g"}]
    assert request_tools(tools) == [
        {"name": "f", "description": "does f", "input_schema": schema},
        {"name": "g", "description": "", "input_schema": {"type": "object"}},
    ]


@pytest.mark.parametrize(
    ("choice", "there"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("f", {"type": "tool", "name": "f"}),
    ],
)
def test_a_choice_among_tools_is_called_otherwise_there(choice, there):
    assert request_tool_choice(choice) == there


def test_an_answer_becomes_a_message():
    thought = {"type": "thinking", "thinking": "Hm", "signature": "x"}
    answer = parse_message(anthropic_reply(thought, "Pa", "ris.").body)
    assert answer == ChatMessage("assistant", "Paris.", usage=Usage(7, 3), reasoning="Hm")
    assert answer.finish_reason == "stop"


def test_an_answer_may_call_tools():
    server = {"type": "server_tool_use", "id": "s", "name": "web", "input": {}}
    answer = parse_message(anthropic_reply("I look.", server, USED, stop_reason="tool_use").body)
    assert answer.tool_calls == (CALL,)
    assert answer.finish_reason == "tool_calls"


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_cut_short_says_so(reason):
    assert parse_message(anthropic_reply("Once", stop_reason=reason).body).truncated
    assert streamed(*unframed("Once", stop_reason=reason))[1].truncated


def unframed(*pieces, **how):
    return [json.loads(part.removeprefix(b"data: ")) for part in anthropic_events(*pieces, **how)]


def test_a_refusal_is_no_answer():
    with pytest.raises(AnswerRefused, match="declines"):
        parse_message(anthropic_reply("So first", stop_reason="refusal").body)
    with pytest.raises(AnswerRefused, match="declines"):
        streamed(*unframed("So first", stop_reason="refusal"))


def test_what_came_from_a_cache_was_read_too():
    counts = {"input_tokens": 1, "cache_read_input_tokens": 20, "output_tokens": 2}
    counts |= {"cache_creation_input_tokens": 300, "cache_creation": {"x": 1}}
    body = {**anthropic_reply("Yes.").body, "usage": counts}
    assert parse_message(body).usage == Usage(321, 2)


def test_calls_are_put_together_thoughts_told_apart_and_unknown_events_passed_over():
    pieces, whole = streamed(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
        begun(0, type="thinking", thinking=""),
        grown(0, type="thinking_delta", thinking="Hm"),
        grown(0, type="signature_delta", signature="x"),
        begun(1, type="text", text="I "),
        grown(1, type="text_delta", text="look."),
        begun(2, type="tool_use", id="c1", name="f", input={}),
        begun(3, type="tool_use", id="c2", name="g", input={}),
        grown(2, type="input_json_delta", partial_json=""),
        grown(2, type="input_json_delta", partial_json='{"a'),
        grown(2, type="input_json_delta", partial_json='": 1}'),
        begun(4, type="server_tool_use", id="s", name="web", input={}),
        grown(4, type="input_json_delta", partial_json='{"query": "x"}'),
        {"type": "something_new", "index": 4},
        ended("tool_use", output_tokens=9),
        {"type": "message_stop"},
    )
    assert pieces == [Reasoning("Hm"), "I ", "look."]
    assert whole.tool_calls == (CALL, ToolCall("c2", "g", "{}"))
    assert whole.usage == Usage(5, 9)


def test_arguments_that_come_at_once_or_broken_are_kept():
    _, whole = streamed(
        begun(0, type="tool_use", id="c1", name="f", input={"a": 1}),
        begun(1, type="tool_use", id="c2", name="g", input={}),
        grown(1, type="input_json_delta", partial_json='{"b'),
        ended("max_tokens"),
        {"type": "message_stop"},
    )
    assert whole.tool_calls == (CALL, ToolCall("c2", "g", '{"b'))
    assert whole.truncated


@pytest.mark.parametrize("last", [ended("end_turn"), {"type": "message_stop"}])
def test_a_stream_ends_with_its_mark_or_with_a_reason(last):
    text = [begun(0, type="text"), grown(0, type="text_delta", text="Yes.")]
    assert streamed(*text, last)[1].content == "Yes."


@pytest.mark.parametrize("event", [None, 7, {}, {"choices": []}, {"type": 7}])
def test_an_event_of_another_protocol_is_malformed(event):
    with pytest.raises(MalformedAnswer, match="base_url"):
        streamed(event)


@pytest.mark.parametrize(
    "event",
    [
        begun(0, type="tool_use", id="c", name=7),
        begun(0, type="text", text=7),
        {"type": "content_block_start", "content_block": "text"},
        {"type": "message_start", "message": []},
        ended(7),
    ],
)
def test_fields_of_the_wrong_kind_are_malformed(event):
    with pytest.raises(MalformedAnswer, match=r"[uU]pdate the server"):
        streamed(event)


@pytest.mark.parametrize("content", [None, "text", [7], {"type": "text"}])
def test_an_answer_without_blocks_is_malformed(content):
    with pytest.raises(MalformedAnswer, match="no list `content`"):
        parse_message({"content": content})


def test_a_call_without_a_name_is_malformed():
    with pytest.raises(MalformedAnswer, match="not functions with names"):
        parse_message(anthropic_reply({"type": "tool_use", "id": "c"}).body)
    with pytest.raises(MalformedAnswer, match="not functions with names"):
        streamed(begun(0, type="tool_use", id="c"), ended("tool_use"))
