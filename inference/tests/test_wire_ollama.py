"""Conversations to and messages from Ollama's protocol, and what servers make of it."""

import json

import pytest

from inference.backends.chat_ollama import OllamaChat, request_messages
from inference.interfaces import (
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    MalformedAnswer,
    ToolCall,
    Usage,
)
from inference.reasoning import Reasoning
from inference.tests.chatting import read
from inference.tests.stub_answers import ollama_line

parse_message, parse_stream = OllamaChat.parse_message, OllamaChat.parse_stream
CALLED = {"function": {"name": "f", "arguments": {"a": 1}}}


def streamed(*lines):
    return read(parse_stream(json.dumps(line) for line in lines))


def test_calls_are_sent_back_as_objects_and_their_results_with_the_tools_name():
    call = ToolCall("c1", "f", '{"a": 1}')
    messages = [
        ChatMessage("user", "half \ud800"),
        ChatMessage("assistant", "", tool_calls=(call,)),
        ChatMessage("tool", "42", tool_call_id="c1"),
        ChatMessage("tool", "?", tool_call_id="another"),
    ]
    assert request_messages(messages) == [
        {"role": "user", "content": "half ?"},
        {"role": "assistant", "content": "", "tool_calls": [CALLED]},
        {"role": "tool", "content": "42", "tool_name": "f"},
        {"role": "tool", "content": "?"},
    ]


def test_an_answer_becomes_a_message():
    answer = parse_message(ollama_line("Paris.", done="stop", thinking="Hm"))
    assert answer == ChatMessage("assistant", "Paris.", usage=Usage(7, 3), reasoning="Hm")


def test_an_answer_cut_short_says_so():
    assert parse_message(ollama_line("Once", done="length")).truncated
    assert streamed(ollama_line("Once"), ollama_line(done="length"))[1].truncated


def test_calls_get_ids_of_their_own():
    whole = parse_message(ollama_line(done="stop", tool_calls=[CALLED, CALLED]))
    _, stream = streamed(
        ollama_line(tool_calls=[CALLED]), ollama_line(tool_calls=[CALLED]), ollama_line(done="stop")
    )
    for message in (whole, stream):
        assert [call.name for call in message.tool_calls] == ["f", "f"]
        assert [json.loads(call.arguments) for call in message.tool_calls] == [{"a": 1}] * 2
        assert len({call.id for call in message.tool_calls}) == 2
        assert message.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("written", "kept"), [(None, "{}"), ({}, "{}"), ('{"a": ', '{"a": '), ([1], "[1]")]
)
def test_arguments_are_kept_as_they_were_written(written, kept):
    call = {"id": "own", "function": {"name": "f", "arguments": written}}
    whole = parse_message(ollama_line(done="stop", tool_calls=[call]))
    assert whole.tool_calls == (ToolCall("own", "f", kept),)


@pytest.mark.parametrize("calls", [7, "f", ["f"], [{}], [{"function": {"name": ""}}]])
def test_calls_that_name_no_function_are_malformed(calls):
    with pytest.raises(MalformedAnswer, match="not functions with names"):
        streamed(ollama_line(tool_calls=calls))


def test_what_was_cached_as_a_whole_is_not_counted():
    line = ollama_line("Yes.", done="stop")
    del line["prompt_eval_count"]
    assert parse_message(line).usage == Usage(0, 3)
    del line["eval_count"]
    assert parse_message(line).usage is None


def test_what_a_model_thinks_is_a_piece_of_its_own():
    lines = [ollama_line(thinking="Hm"), ollama_line("Yes."), ollama_line(done="stop")]
    assert streamed(*lines)[0] == [Reasoning("Hm"), "Yes."]
    with pytest.raises(EmptyAnswer, match="Raise max_tokens"):
        streamed(ollama_line(thinking="Hm"), ollama_line(done="length"))


def test_an_error_midway_is_told_in_the_servers_words():
    with pytest.raises(BackendUnavailable, match="breaks off: out of memory"):
        streamed(ollama_line("Yes"), {"error": "out of memory"})
    with pytest.raises(BackendUnavailable, match="breaks off: out of memory"):
        parse_message({"error": "out of memory"})


@pytest.mark.parametrize("line", [None, 7, {}, {"message": "x"}, {"choices": []}])
def test_a_line_of_another_protocol_is_malformed(line):
    with pytest.raises(MalformedAnswer, match="base_url that of Ollama"):
        streamed(line)


def test_content_that_is_no_text_is_malformed():
    with pytest.raises(MalformedAnswer, match="'content' is no text"):
        streamed(ollama_line(["x"]))
