"""What chat models of all three protocols do alike, with servers good and bad."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from inference.cancellation import Cancelled, cancellation
from inference.interfaces import (
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
    Usage,
)
from inference.tests.chatting import ASKED, KEY, PROTOCOLS, completed, read, streamed
from inference.tests.stub_server import (
    CutOff,
    Dripping,
    Reply,
    Silence,
    Stream,
    stub_server,
)

PARIS = ChatMessage("assistant", "Paris.", usage=Usage(7, 3))
TOOL = {"name": "f", "description": "does f", "parameters": {"type": "object"}}

EITHER_WAY = pytest.mark.parametrize("answered", [completed, streamed])


@pytest.fixture(params=PROTOCOLS, ids=lambda protocol: protocol.name)
def protocol(request):
    return request.param


@pytest.fixture
def stub(stub, protocol):
    stub.always(lambda payload: protocol.answer(payload, "Pa", "ris."))
    return stub


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@EITHER_WAY
def test_an_answer_comes_with_its_tokens_counted(stub, protocol, answered):
    assert answered(protocol.chat(stub)) == PARIS


def test_a_stream_gives_each_piece_as_it_comes(stub, protocol):
    seen = threading.Event()
    whole = protocol.stream("Pa", "ris.")
    at = next(at for at, part in enumerate(whole.parts) if b'"Pa"' in part)
    stub.first(Stream(*whole.parts[: at + 1], seen, *whole.parts[at + 1 :], kind=whole.kind))
    pieces = protocol.chat(stub).stream(ASKED)
    assert next(pieces) == "Pa"
    seen.set()
    assert read(pieces) == (["ris."], PARIS)


def test_a_connection_whose_stream_has_ended_is_used_again(stub, protocol):
    model = protocol.chat(stub)
    for _ in range(3):
        assert streamed(model) == PARIS
    assert len({request.port for request in stub.requests}) == 1


def test_a_stream_may_be_cut_anywhere_on_its_way(stub, protocol):
    whole = protocol.stream("grün 🌿", " {}")
    joined = b"".join(whole.parts)
    cut = (joined[at : at + 3] for at in range(0, len(joined), 3))
    stub.first(Stream(*cut, kind=whole.kind))
    assert streamed(protocol.chat(stub)).content == "grün 🌿 {}"


def test_a_conversation_without_a_message_is_refused(stub, protocol):
    with pytest.raises(InferenceError, match="has no message"):
        protocol.chat(stub).complete([])
    with pytest.raises(InferenceError, match="has no message"):
        next(protocol.chat(stub).stream([]))
    assert stub.requests == []


@EITHER_WAY
@pytest.mark.parametrize(
    "fault",
    [
        Reply({"error": "slow down"}, 429, {"Retry-After": "0"}),
        Reply({"error": "busy"}, 500),
        Reply({"error": {"type": "overloaded_error", "message": "Overloaded"}}, 529),
        CutOff(),
    ],
    ids=["429", "500", "529", "cut off"],
)
def test_a_passing_failure_is_tried_again(stub, protocol, fault, answered):
    stub.first(fault)
    assert answered(protocol.chat(stub)) == PARIS
    assert len(stub.requests) == 2


@EITHER_WAY
@pytest.mark.parametrize(
    "fault", [Silence(), Dripping(), Dripping(in_headers=True)], ids=["silent", "body", "headers"]
)
def test_the_timeout_is_for_everything(stub, protocol, fault, answered):
    stub.always(lambda _: fault)
    with pytest.raises((BackendUnavailable, MalformedAnswer), match="did not answer within 0"):
        answered(protocol.chat(stub, timeout=60), timeout=0.15)


@pytest.mark.parametrize("after", ["silence", "pings"])
def test_a_stream_that_stops_midway_ends_at_the_deadline(stub, protocol, after):
    stub.first(protocol.begin("Pa", after=after))
    pieces = protocol.chat(stub, timeout=0.3).stream(ASKED)
    assert next(pieces) == "Pa"
    with pytest.raises((BackendUnavailable, MalformedAnswer), match=r"did not answer|not JSON"):
        next(pieces)
    assert len(stub.requests) == 1


def test_a_stream_that_breaks_off_is_an_error_and_not_begun_anew(stub, protocol):
    stub.first(protocol.begin("Pa", after="cut"))
    pieces = protocol.chat(stub).stream(ASKED)
    assert next(pieces) == "Pa"
    with pytest.raises(BackendUnavailable, match="broke off"):
        next(pieces)
    assert len(stub.requests) == 1


def test_a_stream_that_ends_without_its_end_is_an_error(stub, protocol):
    stub.first(protocol.begin("Pa"))
    with pytest.raises(BackendUnavailable, match="ended before the answer did"):
        streamed(protocol.chat(stub))


@pytest.mark.parametrize("text", ["", " \n"])
@EITHER_WAY
def test_an_answer_without_a_word_is_an_error(stub, protocol, answered, text):
    stub.always(lambda payload: protocol.answer(payload, text))
    with pytest.raises(EmptyAnswer, match="empty answer"):
        answered(protocol.chat(stub))


@EITHER_WAY
@pytest.mark.parametrize("body", [b"<!doctype html><title>Hi</title>", b"null", b"{}", b"[1]"])
def test_what_is_no_answer_is_said_to_be_none(stub, protocol, answered, body):
    stub.always(lambda _: Reply(body))
    with pytest.raises(MalformedAnswer, match="base_url"):
        answered(protocol.chat(stub))
    assert len(stub.requests) == 1


@EITHER_WAY
def test_a_conversation_that_is_too_long_is_said_to_be(stub, protocol, answered):
    stub.always(lambda _: Reply({"error": {"message": "prompt is too long: 9 > 8"}}, 400))
    with pytest.raises(BackendUnavailable, match=r"too long: 9 > 8.*shortened"):
        answered(protocol.chat(stub))
    assert len(stub.requests) == 1


@EITHER_WAY
def test_the_key_goes_along_and_never_to_another_address(stub, protocol, answered):
    with stub_server() as thief:
        stub.first(Reply(b"", 307, {"Location": thief.url}))
        with pytest.raises(BackendUnavailable, match="redirects elsewhere"):
            answered(protocol.chat(stub, api_key=KEY))
        assert thief.requests == []
    assert KEY in str(stub.requests[0].headers)


@pytest.mark.parametrize(
    "fault",
    [
        Reply({"error": {"message": f"Incorrect API key: {KEY}."}}, 401),
        Reply(f"no answer but {KEY}".encode()),
        Reply({"error": f"{KEY} is out of credit"}),
        Silence(),
    ],
    ids=["refused", "no JSON", "an error as a success", "silence"],
)
@EITHER_WAY
def test_the_key_is_in_no_message_traceback_or_log(stub, protocol, answered, fault, caplog):
    caplog.set_level("DEBUG")
    stub.always(lambda _: fault)
    with pytest.raises(InferenceError) as failed:
        answered(protocol.chat(stub, api_key=KEY), timeout=0.3)
    told = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + caplog.text
    assert KEY not in told


def test_a_streamed_error_is_told_without_the_key(stub, protocol):
    begun = protocol.begin("Pa")
    error = b'{"type": "error", "error": {"message": "bad key ' + KEY.encode() + b'"}}'
    framed = b"data: " + error + b"\n\n" if "event" in begun.kind else error + b"\n"
    stub.first(Stream(*begun.parts, framed, kind=begun.kind))
    with pytest.raises(BackendUnavailable, match=r"breaks off: bad key \[secret\]"):
        streamed(protocol.chat(stub, api_key=KEY))


def test_who_has_enough_hangs_up(stub, protocol):
    endless = protocol.begin("Once", after="silence")
    stub.first(endless)
    pieces = protocol.chat(stub).stream(ASKED)
    assert next(pieces) == "Once"
    pieces.close()
    assert endless.gone.wait(5)


@EITHER_WAY
def test_an_answer_that_nobody_waits_for_is_cancelled(stub, protocol, answered):
    silence, cancelled = Silence(), threading.Event()
    stub.first(silence)

    def ask():
        with cancellation(cancelled):
            answered(protocol.chat(stub, timeout=60))

    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask)
        assert silence.heard.wait(5)
        cancelled.set()
        with pytest.raises(Cancelled):
            asked.result(10)
    assert silence.gone.wait(5)
    assert len(stub.requests) == 1


def test_a_hundred_streams_at_once_over_one_instance_are_not_mixed(stub, protocol):
    together = threading.Barrier(100)

    def answer(payload):
        together.wait(20)
        said = payload["messages"][0]["content"]
        said = said if isinstance(said, str) else said[0]["text"]
        return protocol.stream(*(f"{said}-{at} " for at in range(20)))

    stub.always(answer)
    model = protocol.chat(stub, timeout=60)

    def ask(number):
        return read(model.stream([ChatMessage("user", str(number))]))[1].content

    with ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(ask, range(100)))
    assert answers == ["".join(f"{number}-{at} " for at in range(20)) for number in range(100)]


@EITHER_WAY
def test_a_choice_of_a_tool_that_is_not_there_is_refused(stub, protocol, answered):
    with pytest.raises(InferenceError, match="'g' is none of the tools"):
        answered(protocol.chat(stub), tools=[TOOL], tool_choice="g")
    assert stub.requests == []


@pytest.mark.parametrize("option", ["max_tokens", "timeout", "attempts"])
def test_an_option_that_lets_nothing_through_is_refused(stub, protocol, option):
    with pytest.raises(BackendUnavailable, match=rf"OPTIONS\['{option}'\] is 0"):
        protocol.chat(stub, **{option: 0})
