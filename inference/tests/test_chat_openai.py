"""What only chat models by OpenAI's protocol are asked in their own way."""

import pytest

from inference.backends.chat_openai import OpenAIChat
from inference.interfaces import BackendUnavailable, ChatMessage, ToolCall, Usage
from inference.tests.chatting import read
from inference.tests.stub_server import (
    Reply,
    Silence,
    Stream,
    chat_reply,
    chat_stream,
    delta,
    event,
)

KEY = "sk-never-to-be-seen-0123456789"
MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Capital of France?")]
PARIS = ChatMessage("assistant", "Paris.", usage=Usage(7, 3))


@pytest.fixture
def stub(stub):
    stub.always(
        lambda payload: chat_stream("Pa", "ris.") if "stream" in payload else chat_reply("Paris.")
    )
    return stub


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def chat(stub, **options):
    return OpenAIChat("a-model", base_url=stub.url, **{"timeout": 5, **options})


def completed(model, **how):
    return model.complete(MESSAGES, **how)


def streamed(model, **how):
    return read(model.stream(MESSAGES, **how))[1]


EITHER_WAY = pytest.mark.parametrize("answered", [completed, streamed])


def test_a_conversation_goes_there_and_the_answer_comes_back(stub):
    assert chat(stub).complete(MESSAGES) == PARIS
    request = stub.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.json == {
        "model": "a-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Capital of France?"},
        ],
    }


@EITHER_WAY
def test_a_call_has_its_way_over_the_options(stub, answered):
    model = chat(stub, max_tokens=100, temperature=0.7)
    answered(model)
    answered(model, max_tokens=5, temperature=0.0)
    wishes = [(each.json["max_tokens"], each.json["temperature"]) for each in stub.requests]
    assert wishes == [(100, 0.7), (5, 0.0)]


def test_a_model_that_takes_no_temperature_is_sent_none(stub):
    chat(stub, send_temperature=False).complete(MESSAGES, temperature=0.1, top_p=0.5)
    assert stub.requests[0].json.keys() & {"temperature", "top_p"} == set()


@EITHER_WAY
def test_a_temperature_that_no_caller_may_choose_is_left_out_from_then_on(stub, answered):
    no = "Unsupported value: 'temperature' does not support 0.1 with this model."
    stub.first(Reply({"error": {"message": no}}, 400))
    model = chat(stub)
    for _ in range(2):
        assert answered(model, temperature=0.1, top_p=0.5).content == "Paris."
    assert ["temperature" in each.json for each in stub.requests] == [True, False, False]
    assert "top_p" not in stub.requests[1].json


@EITHER_WAY
def test_a_temperature_out_of_its_range_is_an_error(stub, answered):
    no = "Invalid 'temperature': decimal above maximum value. Expected at most 2."
    stub.always(lambda _: Reply({"error": {"message": no}}, 400))
    with pytest.raises(BackendUnavailable, match="above maximum"):
        answered(chat(stub), temperature=9)


def test_what_the_longest_answer_is_called_may_be_chosen(stub):
    chat(stub, max_tokens_field="max_completion_tokens").complete(MESSAGES, max_tokens=9)
    assert stub.requests[0].json["max_completion_tokens"] == 9
    assert "max_tokens" not in stub.requests[0].json


def test_further_fields_go_along_but_replace_none_of_ours(stub):
    chat(stub, extra={"reasoning_effort": "low", "model": "other"}).complete(MESSAGES)
    assert stub.requests[0].json["reasoning_effort"] == "low"
    assert stub.requests[0].json["model"] == "a-model"


TOOL = {"name": "f", "description": "does f", "parameters": {"type": "object"}}


@EITHER_WAY
def test_tools_are_described_as_functions(stub, answered):
    answered(chat(stub), tools=[TOOL], tool_choice="required")
    assert stub.requests[0].json["tools"] == [{"type": "function", "function": TOOL}]
    assert stub.requests[0].json["tool_choice"] == "required"


@EITHER_WAY
def test_a_choice_without_tools_is_not_sent(stub, answered):
    answered(chat(stub), tool_choice="none")
    assert stub.requests[0].json.keys() & {"tools", "tool_choice"} == set()


@EITHER_WAY
def test_what_ends_an_answer_and_how_freely_it_is_chosen_go_along(stub, answered):
    answered(chat(stub), stop=["\n", "###"], top_p=0.5)
    assert stub.requests[0].json["stop"] == ["\n", "###"]
    assert stub.requests[0].json["top_p"] == 0.5


def test_a_streamed_call_of_a_tool_is_in_the_whole_message(stub):
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    events = [delta(tool_calls=[call]), delta(finish="tool_calls"), "[DONE]"]
    stub.first(Stream(*map(event, events)))
    pieces, whole = read(chat(stub).stream(MESSAGES, tools=[TOOL]))
    assert pieces == []
    assert whole.tool_calls == (ToolCall("c1", "f", '{"a": 1}'),)


COUNT = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def counting(payload):
    """A server that counts a stream's tokens where it is asked to."""
    counted = [COUNT] if payload.get("stream_options") == {"include_usage": True} else []
    return Stream(*map(event, [delta("Paris."), delta(finish="stop"), *counted, "[DONE]"]))


def test_a_streams_tokens_are_counted(stub):
    stub.always(counting)
    assert read(chat(stub).stream(MESSAGES))[1] == PARIS


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_knows_no_stream_options_is_asked_for_none_from_then_on(stub, status):
    refusal = Reply({"detail": "extra fields not permitted: stream_options"}, status)
    stub.always(lambda payload: refusal if "stream_options" in payload else counting(payload))
    model = chat(stub)
    for _ in range(2):
        assert read(model.stream(MESSAGES))[1] == ChatMessage("assistant", "Paris.")
    assert ["stream_options" in each.json for each in stub.requests] == [True, False, False]


def test_a_request_that_is_wrong_without_stream_options_too_says_nothing_about_them(stub):
    stub.first(Reply({"error": "bad model"}, 400), Reply({"error": "bad model"}, 400))
    stub.always(counting)
    model = chat(stub)
    with pytest.raises(BackendUnavailable, match="bad model"):
        next(model.stream(MESSAGES))
    assert read(model.stream(MESSAGES))[1] == PARIS


def test_a_server_that_has_counted_is_not_asked_twice_when_it_refuses(stub):
    stub.always(counting)
    model = chat(stub)
    read(model.stream(MESSAGES))
    stub.first(Reply({"error": "bad temperature"}, 400))
    with pytest.raises(BackendUnavailable, match="bad temperature"):
        next(model.stream(MESSAGES))
    assert len(stub.requests) == 2


def test_stream_options_of_the_configuration_are_left_alone(stub):
    chosen = {"include_usage": False}
    read(chat(stub, extra={"stream_options": chosen}).stream(MESSAGES))
    assert stub.requests[0].json["stream_options"] == chosen


@EITHER_WAY
def test_tries_and_waits_share_the_timeout(stub, answered):
    stub.first(Reply({}, 503), Silence())
    with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.[0-4] s"):
        answered(chat(stub, timeout=0.6))


@EITHER_WAY
def test_a_wrong_key_is_said_to_be_wrong_and_not_shown(stub, answered):
    stub.first(Reply({"error": {"message": f"Incorrect API key: {KEY}."}}, 401))
    with pytest.raises(BackendUnavailable, match="OPENAI_API_KEY") as failed:
        answered(chat(stub, api_key=KEY))
    assert KEY not in str(failed.value)


@pytest.mark.parametrize(("option", "sent"), [(None, "Bearer sk-1"), ("", None)])
def test_the_key_comes_from_the_options_or_the_environment(stub, monkeypatch, option, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    chat(stub, api_key=option).complete(MESSAGES)
    assert stub.requests[0].headers.get("authorization") == sent


def test_openai_itself_is_not_asked_without_a_key():
    with pytest.raises(BackendUnavailable, match="Set OPENAI_API_KEY"):
        OpenAIChat("gpt-5-mini")
