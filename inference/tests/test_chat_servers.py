"""Streams as servers of OpenAI's protocol really send them: empty events, odd line ends, faults."""

import json

import pytest

from inference.backends.chat_openai import OpenAIChat
from inference.interfaces import BackendUnavailable, ChatMessage, Usage
from inference.tests.chatting import ASKED, read
from inference.tests.stub_server import Stream, delta

TEXT = "Größe 😀 – 修复方法: Zeile\u2028zwei [1]."
ENDED = delta(finish="stop")
COUNTED = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
NULL_DELTA = {"choices": [{"index": 0, "delta": None}]}


def event(data, end="\n"):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}{end}{end}".encode()


def asked(stub, *parts):
    stub.first(Stream(*parts))
    return read(OpenAIChat("m", base_url=stub.url, timeout=5, attempts=1).stream(ASKED))


SAID = [delta(TEXT[:9]), delta(TEXT[9:])]
PLAIN = [*SAID, ENDED, COUNTED, "[DONE]"]
EVENTS = {
    "plain": PLAIN,
    "empty choices first": [{"id": "", "choices": [], "prompt_filter_results": []}, *PLAIN],
    "empty choices last": [*SAID, ENDED, COUNTED, {"choices": []}, "[DONE]"],
    "null delta first": [NULL_DELTA, *PLAIN],
    "null delta last": [*SAID, ENDED, NULL_DELTA, COUNTED, "[DONE]"],
    "null delta with the reason": [
        *SAID,
        {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]},
        COUNTED,
        "[DONE]",
    ],
    "no delta with the reason": [
        *SAID,
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
        COUNTED,
        "[DONE]",
    ],
    "usage without choices": [*SAID, ENDED, {"usage": COUNTED["usage"]}, "[DONE]"],
    "usage with null choices": [*SAID, ENDED, {**COUNTED, "choices": None}, "[DONE]"],
    "usage in the last event": [*SAID, {**ENDED, "usage": COUNTED["usage"]}, "[DONE]"],
    "usage null until the end": [*({**each, "usage": None} for each in SAID), *PLAIN[2:]],
    "no mark at the end": [*SAID, ENDED, COUNTED],
    "a blank after the mark": [*SAID, ENDED, COUNTED, "[DONE] "],
    "empty data as a keep-alive": ["", SAID[0], "", *PLAIN[1:]],
    "an empty object as a keep-alive": [{}, SAID[0], {}, *PLAIN[1:]],
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_the_answer_is_read_whatever_the_server_adds_or_leaves_out(stub, events):
    pieces, whole = asked(stub, *map(event, events))
    assert "".join(pieces) == TEXT
    assert whole == ChatMessage("assistant", TEXT, usage=Usage(7, 3))


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_bytes_may_be_cut_anywhere(stub, end, size):
    ping, kind = f": ping{end}{end}", f"event: message{end}"
    data = b"".join(
        [ping.encode(), *(kind.encode() + event(each, end) for each in PLAIN[:2]), ping.encode()]
        + [event(each, end) for each in PLAIN[2:]]
    )
    pieces, whole = asked(stub, *(data[at : at + size] for at in range(0, len(data), size)))
    assert "".join(pieces) == TEXT
    assert whole.usage == Usage(7, 3)


SEPARATORS = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg"


def test_line_ends_of_unicode_end_no_line(stub):
    kept = json.dumps(delta(SEPARATORS), ensure_ascii=False)
    pieces, whole = asked(stub, event(kept), event(ENDED), event("[DONE]"))
    assert pieces == [SEPARATORS]
    assert whole.content == SEPARATORS


FAULTS = {
    "an object": {"error": {"message": "overloaded", "type": "server_error"}},
    "a text": {"error": "overloaded"},
    "beside choices": {**delta(finish="error"), "error": {"message": "overloaded", "code": 502}},
    "of a kind": {"object": "error", "message": "overloaded", "code": 400},
    "after the reason": None,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_an_error_in_the_middle_ends_the_answer_in_the_servers_words(stub, fault):
    before = [SAID[0], ENDED] if fault is None else [SAID[0]]
    fault = fault or FAULTS["an object"]
    stub.first(Stream(*map(event, [*before, fault, "[DONE]"])))
    stream = OpenAIChat("m", base_url=stub.url, timeout=5, attempts=1).stream(ASKED)
    assert next(stream) == TEXT[:9]
    with pytest.raises(BackendUnavailable, match="breaks off: overloaded"):
        next(stream)


@pytest.mark.parametrize("last", [delta(finish="error"), SAID[1]], ids=["reason", "cut"])
def test_an_answer_that_breaks_off_without_a_word_is_an_error(stub, last):
    with pytest.raises(BackendUnavailable, match=r"broke off|ended before"):
        asked(stub, *map(event, [SAID[0], last]))
