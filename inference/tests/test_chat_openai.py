"""Chat models by the OpenAI protocol, against servers that keep to it and servers that do not."""

import threading

import pytest
from django.test import override_settings

from inference.backends.chat_openai import OpenAIChat
from inference.base import (
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
    Usage,
)
from inference.handler import chats
from inference.tests.stub_server import (
    CutOff,
    Dripping,
    Reply,
    Silence,
    Stream,
    chat_reply,
    chat_stream,
    delta,
    event,
    stub_server,
)

OPENAI_CHAT = "inference.backends.chat_openai.OpenAIChat"
KEY = "sk-never-to-be-seen-0123456789"
MESSAGES = [ChatMessage("system", "Be brief."), ChatMessage("user", "Capital of France?")]
PARIS = ChatMessage("assistant", "Paris.", usage=Usage(7, 3))


@pytest.fixture
def stub():
    with stub_server() as server:
        server.always(
            lambda payload: (
                chat_stream("Pa", "ris.") if "stream" in payload else chat_reply("Paris.")
            )
        )
        yield server


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def chat(stub, **options):
    return OpenAIChat("a-model", base_url=stub.url, **{"timeout": 5, **options})


def completed(model, **how):
    return model.complete(MESSAGES, **how)


def streamed(model, **how):
    return ChatMessage("assistant", "".join(model.stream(MESSAGES, **how)))


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


def test_a_stream_gives_each_piece_as_it_comes(stub):
    seen = threading.Event()
    end = (event(delta(finish="stop")), event("[DONE]"))
    stub.first(Stream(event(delta("Pa")), seen, event(delta("ris.")), *end))
    pieces = chat(stub).stream(MESSAGES)
    assert next(pieces) == "Pa"
    seen.set()
    assert list(pieces) == ["ris."]
    assert stub.requests[0].json["stream"] is True


def test_a_streams_last_word_is_the_whole_message(stub):
    pieces, whole = chat(stub).stream(MESSAGES), None
    try:
        while next(pieces):
            pass
    except StopIteration as end:
        whole = end.value
    assert whole == ChatMessage("assistant", "Paris.")


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1_or_not(stub, suffix):
    OpenAIChat("m", base_url=stub.url + suffix).complete(MESSAGES)
    assert stub.requests[0].path == "/v1/chat/completions"


@EITHER_WAY
def test_a_call_has_its_way_over_the_options(stub, answered):
    model = chat(stub, max_tokens=100, temperature=0.7)
    answered(model)
    answered(model, max_tokens=5, temperature=0.0)
    wishes = [(each.json["max_tokens"], each.json["temperature"]) for each in stub.requests]
    assert wishes == [(100, 0.7), (5, 0.0)]


def test_a_model_that_takes_no_temperature_is_sent_none(stub):
    chat(stub, send_temperature=False).complete(MESSAGES, temperature=0.1)
    assert "temperature" not in stub.requests[0].json


def test_a_temperature_that_is_refused_is_cured_by_an_option(stub):
    stub.first(Reply({"error": {"message": "Unsupported value: 'temperature'"}}, 400))
    with pytest.raises(BackendUnavailable, match="send_temperature"):
        chat(stub).complete(MESSAGES, temperature=0.1)


def test_what_the_longest_answer_is_called_may_be_chosen(stub):
    chat(stub, max_tokens_field="max_completion_tokens").complete(MESSAGES, max_tokens=9)
    assert stub.requests[0].json["max_completion_tokens"] == 9
    assert "max_tokens" not in stub.requests[0].json


def test_further_fields_go_along_but_replace_none_of_ours(stub):
    chat(stub, extra={"reasoning_effort": "low", "model": "other"}).complete(MESSAGES)
    assert stub.requests[0].json["reasoning_effort"] == "low"
    assert stub.requests[0].json["model"] == "a-model"


def test_tools_are_described_as_functions(stub):
    tool = {"name": "f", "description": "does f", "parameters": {"type": "object"}}
    chat(stub).complete(MESSAGES, tools=[tool])
    assert stub.requests[0].json["tools"] == [{"type": "function", "function": tool}]


def test_a_conversation_without_a_message_is_refused(stub):
    with pytest.raises(InferenceError, match="without a message"):
        chat(stub).complete([])
    with pytest.raises(InferenceError, match="without a message"):
        next(chat(stub).stream([]))
    assert stub.requests == []


@EITHER_WAY
@pytest.mark.parametrize(
    "fault", [Reply({}, 429, {"Retry-After": "0"}), Reply({"error": "busy"}, 500)]
)
def test_a_passing_failure_is_tried_again(stub, fault, answered):
    stub.first(fault)
    assert answered(chat(stub)).content == "Paris."
    assert len(stub.requests) == 2


def test_a_connection_that_is_cut_off_is_tried_again(stub):
    stub.first(CutOff())
    assert chat(stub).complete(MESSAGES) == PARIS


@EITHER_WAY
def test_a_wait_longer_than_the_call_has_is_not_waited(stub, answered):
    stub.first(Reply({}, 429, {"Retry-After": "60"}))
    with pytest.raises(BackendUnavailable, match="asks to wait 60 s"):
        answered(chat(stub), timeout=2)
    assert len(stub.requests) == 1


@EITHER_WAY
@pytest.mark.parametrize("fault", [Silence(), Dripping(), Dripping(in_headers=True)])
def test_the_timeout_is_for_everything(stub, fault, answered):
    stub.always(lambda payload: fault)
    with pytest.raises((BackendUnavailable, MalformedAnswer), match="did not answer within 0"):
        answered(chat(stub, timeout=60), timeout=0.15)


@EITHER_WAY
def test_tries_and_waits_share_the_timeout(stub, answered):
    stub.first(Reply({}, 503), Silence())
    with pytest.raises(BackendUnavailable, match=r"did not answer within 0\.[0-4] s"):
        answered(chat(stub, timeout=0.6))


def test_half_an_answer_is_an_error(stub):
    stub.first(Stream(event(delta("Pa")), after="cut"))
    pieces = chat(stub).stream(MESSAGES)
    assert next(pieces) == "Pa"
    with pytest.raises(BackendUnavailable, match="broke off"):
        next(pieces)


def test_a_stream_that_ends_without_its_end_is_an_error(stub):
    stub.first(Stream(event(delta("Pa"))))
    with pytest.raises(BackendUnavailable, match="ended before the answer did"):
        list(chat(stub).stream(MESSAGES))


def test_a_reader_who_has_enough_hangs_up(stub):
    endless = Stream(event(delta("Once")), after="pings")
    stub.first(endless)
    pieces = chat(stub).stream(MESSAGES)
    assert next(pieces) == "Once"
    pieces.close()
    assert endless.gone.wait(5)


@EITHER_WAY
def test_a_web_page_is_no_answer(stub, answered):
    stub.always(lambda payload: Reply(b"<!doctype html><title>Welcome to nginx</title>"))
    with pytest.raises(MalformedAnswer, match="a web page “Welcome to nginx”"):
        answered(chat(stub))
    assert len(stub.requests) == 1


def test_an_answer_without_a_word_is_an_error(stub):
    stub.first(chat_reply(None))
    with pytest.raises(EmptyAnswer):
        chat(stub).complete(MESSAGES)


@EITHER_WAY
def test_a_conversation_that_is_too_long_is_said_to_be(stub, answered):
    stub.first(Reply({"error": "maximum context length is 9 tokens"}, 400))
    with pytest.raises(BackendUnavailable, match=r"context length.*must be shortened"):
        answered(chat(stub))


@EITHER_WAY
def test_the_key_goes_along_and_never_to_another_address(stub, answered):
    with stub_server() as thief:
        stub.first(Reply(b"", 307, {"Location": thief.url}))
        with pytest.raises(BackendUnavailable, match="redirects elsewhere"):
            answered(chat(stub, api_key=KEY))
        assert thief.requests == []
    assert stub.requests[0].headers["authorization"] == f"Bearer {KEY}"


@EITHER_WAY
def test_a_wrong_key_is_said_to_be_wrong_and_not_shown(stub, answered):
    stub.first(Reply({"error": {"message": f"Incorrect API key: {KEY}."}}, 401))
    with pytest.raises(BackendUnavailable, match="OPENAI_API_KEY") as failed:
        answered(chat(stub, api_key=KEY))
    assert KEY not in str(failed.value)


@pytest.mark.parametrize("quoting", [{"error": f"Bad key: {KEY}"}, f"no JSON but {KEY}"])
def test_a_stream_that_quotes_the_key_is_told_without_it(stub, quoting):
    stub.first(Stream(event(delta("Pa")), event(quoting)))
    with pytest.raises((BackendUnavailable, MalformedAnswer), match=r"\[secret\]") as failed:
        list(chat(stub, api_key=KEY).stream(MESSAGES))
    assert KEY not in str(failed.value)


@pytest.mark.parametrize(("option", "sent"), [(None, "Bearer sk-1"), ("", None)])
def test_the_key_comes_from_the_options_or_the_environment(stub, monkeypatch, option, sent):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    chat(stub, api_key=option).complete(MESSAGES)
    assert stub.requests[0].headers.get("authorization") == sent


def test_openai_itself_is_not_asked_without_a_key():
    with pytest.raises(BackendUnavailable, match="set OPENAI_API_KEY"):
        OpenAIChat("gpt-5-mini")


@pytest.mark.parametrize("option", ["max_tokens", "timeout", "attempts"])
def test_an_option_that_lets_nothing_through_is_refused(stub, option):
    with pytest.raises(BackendUnavailable, match=rf"OPTIONS\['{option}'\] is 0"):
        chat(stub, **{option: 0})


def test_the_settings_configure_it(stub):
    entry = {"BACKEND": OPENAI_CHAT, "OPTIONS": {"model": "m", "base_url": stub.url}}
    with override_settings(INFERENCE={"chat": {"default": entry}}):
        assert chats["default"].model_name == "m"
        assert chats["default"].complete(MESSAGES) == PARIS
