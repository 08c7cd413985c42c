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
    "usage first": [COUNTED, *SAID, ENDED, "[DONE]"],
    "usage so far in each event": [
        {**SAID[0], "usage": {"prompt_tokens": 7, "completion_tokens": 1}},
        {**SAID[1], "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        {**ENDED, "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        "[DONE]",
    ],
    "null in every field": [
        {"id": None, "model": None, "error": None, "choices": None, "usage": None},
        *SAID,
        {
            "id": None,
            "choices": [
                {
                    "index": None,
                    "delta": dict.fromkeys(
                        ["role", "content", "reasoning_content", "refusal", "tool_calls"]
                    ),
                    "finish_reason": None,
                    "logprobs": None,
                }
            ],
            "error": None,
        },
        ENDED,
        {**COUNTED, "usage": {**COUNTED["usage"], "prompt_tokens_details": None}},
        "[DONE]",
    ],
    "a role and nothing else": [delta(role="assistant"), delta(""), *PLAIN],
    "what is no object": ["null", "[]", "1", *PLAIN],
    "the reason twice": [*SAID, ENDED, ENDED, COUNTED, "[DONE]"],
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


def test_a_stream_may_be_cut_at_each_of_its_bytes(stub):
    data = b"".join(event(each, "\r\n") for each in [delta("ü😀"), ENDED, "[DONE]"])
    for at in range(1, len(data)):
        assert asked(stub, data[:at], data[at:])[1].content == "ü😀", at


def lines(*each, end="\n"):
    """Each event is a list of its lines."""
    return "".join(f"{end.join(event)}{end}{end}" for event in each).encode()


FIRST, SECOND, LAST = (json.dumps(each, ensure_ascii=False) for each in (SAID[0], SAID[1], ENDED))
#: A line of data may end wherever JSON allows white space.
HALVES = FIRST.partition(" ")
FORMS = {
    "no blank behind the colon": lines(*([f"data:{each}"] for each in (FIRST, SECOND, LAST))),
    "CR": lines(*([f"data: {each}"] for each in (FIRST, SECOND, LAST)), end="\r"),
    "one line end after another": lines([f"data: {FIRST}"], end="\r\n")
    + lines([f"data: {SECOND}"], end="\r")
    + lines([f"data: {LAST}"]),
    "a byte order mark": b"\xef\xbb\xbf" + lines(*([f"data: {x}"] for x in (FIRST, SECOND, LAST))),
    "data of several lines": lines(
        [f"data: {HALVES[0]}", f"data: {HALVES[2]}"], [f"data: {SECOND}"], [f"data: {LAST}"]
    ),
    "events without data": lines(
        ["event: ping"], ["id: 1"], ["retry: 3000"], [": a comment"], [":"], ["data"], ["data:"]
    )
    + lines(*([f"data: {each}"] for each in (FIRST, SECOND, LAST))),
    "fields that nobody knows": lines(
        *(["event: chunk", "id: 7", "other: x", "other", f"data: {x}"] for x in (FIRST, SECOND)),
        [f"data: {LAST}", "after: y"],
    ),
    "more empty lines than one": lines([f"data: {FIRST}"], [""], ["", ""], [f"data: {SECOND}"])
    + lines([f"data: {LAST}"]),
}


@pytest.mark.parametrize("size", [1, 5, 10_000])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_events_are_read_in_each_form_that_the_standard_allows(stub, form, size):
    pieces, whole = asked(stub, *(form[at : at + size] for at in range(0, len(form), size)))
    assert "".join(pieces) == TEXT
    assert whole.content == TEXT


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "nonsense"])
def test_events_are_utf_8_whatever_the_header_says(stub, charset):
    kind = f"text/event-stream; charset={charset}"
    stub.first(Stream(*map(event, PLAIN), kind=kind))
    pieces, _ = read(OpenAIChat("m", base_url=stub.url, timeout=5, attempts=1).stream(ASKED))
    assert "".join(pieces) == TEXT


def test_a_very_long_line_is_read(stub):
    text = "Größe 😀 " * 50_000
    data = event(delta(text)) + event(ENDED) + event("[DONE]")
    size = 8191
    pieces, whole = asked(stub, *(data[at : at + size] for at in range(0, len(data), size)))
    assert pieces == [text]
    assert whole.content == text


def test_the_last_event_may_lack_its_empty_line(stub):
    assert asked(stub, event(SAID[0]), event(ENDED), b"data: [DONE]")[1].content == TEXT[:9]


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
    "beside no choices": {"choices": [], "error": {"message": "overloaded"}, "usage": None},
    "of a type": {"type": "error", "error": {"type": "x", "message": "overloaded"}},
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
