"""What only Anthropic's chat models are asked in their own way."""

import pytest

from inference.backends.chat_anthropic import AnthropicChat
from inference.interfaces import BackendUnavailable, ChatMessage, ToolCall
from inference.tests.chatting import ASKED, KEY, completed, read, streamed
from inference.tests.stub_answers import anthropic_events, anthropic_reply
from inference.tests.stub_server import Reply, Stream, event

TOOL = {"name": "f", "description": "does f", "parameters": {"type": "object"}}
SCHEMA = {"name": "f", "description": "does f", "input_schema": {"type": "object"}}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
EITHER_WAY = pytest.mark.parametrize("answered", [completed, streamed])


@pytest.fixture
def stub(stub):
    stub.always(
        lambda payload: (
            Stream(*anthropic_events("Paris."))
            if "stream" in payload
            else anthropic_reply("Paris.")
        )
    )
    return stub


def chat(stub, **options):
    options = {"timeout": 5, "api_key": KEY, **options}
    return AnthropicChat("claude-x", base_url=stub.url, **options)


def test_a_conversation_goes_there_with_key_and_version(stub):
    chat(stub).complete([ChatMessage("system", "Be brief."), *ASKED])
    request = stub.requests[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.json == {
        "model": "claude-x",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": ASKED[0].content}]}],
        "max_tokens": 4096,
    }


@EITHER_WAY
def test_a_call_has_its_way_over_the_options(stub, answered):
    model = chat(stub, max_tokens=100, temperature=0.7, extra={"metadata": {"user_id": "u"}})
    answered(model)
    answered(model, max_tokens=5, temperature=1.5, stop=["\n", "###"])
    first, second = (each.json for each in stub.requests)
    assert (first["max_tokens"], first["temperature"]) == (100, 0.7)
    assert (second["max_tokens"], second["temperature"]) == (5, 1.0)
    assert second["stop_sequences"] == ["###"]
    assert first["metadata"] == {"user_id": "u"}


def test_of_temperature_and_top_p_only_one_is_sent(stub):
    chat(stub).complete(ASKED, temperature=0.5, top_p=0.9)
    chat(stub).complete(ASKED, top_p=0.9)
    assert [each.json.get("top_p") for each in stub.requests] == [None, 0.9]


@EITHER_WAY
@pytest.mark.parametrize("wish", [{"temperature": 0.1}, {"top_p": 0.9}], ids=str)
def test_a_model_that_takes_no_temperature_is_sent_none_from_then_on(stub, answered, wish):
    no = {"message": f"`{next(iter(wish))}` is deprecated for this model."}
    stub.first(Reply({"type": "error", "error": no}, 400))
    model = chat(stub)
    for _ in range(2):
        assert answered(model, **wish).content == "Paris."
    assert [bool(each.json.keys() & wish.keys()) for each in stub.requests] == [True, False, False]


@EITHER_WAY
def test_tools_and_the_choice_among_them_go_along(stub, answered):
    answered(chat(stub), tools=[TOOL], tool_choice="required")
    assert stub.requests[0].json["tools"] == [SCHEMA]
    assert stub.requests[0].json["tool_choice"] == {"type": "any"}


def test_tools_called_before_are_named_even_if_none_may_be_called_now(stub):
    called = ChatMessage("assistant", "", tool_calls=(ToolCall("c", "f", "{}"),))
    chat(stub).complete([*ASKED, called, ChatMessage("tool", "42", tool_call_id="c")])
    assert [tool["name"] for tool in stub.requests[0].json["tools"]] == ["f"]
    assert stub.requests[0].json["tool_choice"] == {"type": "none"}


def test_a_streamed_call_of_a_tool_is_in_the_whole_message(stub):
    block = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    stub.first(Stream(*map(event, events)))
    pieces, whole = read(chat(stub).stream(ASKED, tools=[TOOL]))
    assert pieces == []
    assert whole.tool_calls == (ToolCall("c1", "f", '{"a": 1}'),)


def test_a_stream_that_begins_with_too_much_to_do_is_asked_for_again(stub):
    stub.first(Stream(event(OVERLOADED)))
    assert streamed(chat(stub)).content == "Paris."
    assert len(stub.requests) == 2


def test_a_stream_that_begins_with_a_lasting_error_is_not(stub):
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "no overload"}}
    stub.first(Stream(event(error)))
    with pytest.raises(BackendUnavailable, match="breaks off: no overload"):
        streamed(chat(stub))
    assert len(stub.requests) == 1


def test_too_much_to_do_midway_is_an_error_and_nothing_is_said_twice(stub):
    stub.first(Stream(*anthropic_events("Par")[:-3], event(OVERLOADED)))
    pieces = chat(stub).stream(ASKED)
    assert next(pieces) == "Par"
    with pytest.raises(BackendUnavailable, match="breaks off: Overloaded"):
        next(pieces)
    assert len(stub.requests) == 1


@EITHER_WAY
def test_a_wrong_key_is_said_to_be_wrong_and_not_shown(stub, answered):
    said = {"type": "authentication_error", "message": f"invalid x-api-key {KEY}"}
    stub.first(Reply({"type": "error", "error": said}, 401))
    with pytest.raises(BackendUnavailable, match="ANTHROPIC_API_KEY") as failed:
        answered(chat(stub))
    assert KEY not in str(failed.value)


@pytest.mark.parametrize(("option", "sent"), [(None, "sk-2"), ("", None)])
def test_the_key_comes_from_the_options_or_the_environment(stub, monkeypatch, option, sent):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-2")
    chat(stub, api_key=option).complete(ASKED)
    assert stub.requests[0].headers.get("x-api-key") == sent


def test_anthropic_itself_is_not_asked_without_a_key(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(BackendUnavailable, match="Set ANTHROPIC_API_KEY"):
        AnthropicChat("claude-x")


def test_a_stream_ends_with_its_own_mark_and_not_with_a_text_that_looks_like_it(stub):
    pieces = ['{"type":"message_stop"}', " That is all."]
    stub.first(Stream(*anthropic_events(*pieces)))
    assert read(chat(stub).stream(ASKED))[0] == pieces
