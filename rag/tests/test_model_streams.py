"""What servers really stream, on its way through each endpoint that answers."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from inference.tests.stub_server import Stream, StubServer, delta
from rag.context import RagContext
from rag.tests.mcp_world import secret_of

# Answers are made in threads of their own, which see what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When does the firm leave Mill Street?"
TEXT = "😀 – The firm leaves Mill Street\u2028on\u008514 March [1]."
THOUGHT = "secret plan [9]"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
SAID = [delta(role="assistant"), *map(delta, TEXT), delta(finish="stop")]


def sent(*events: Any, end: str = "\n", size: int = 7, last: str = "[DONE]") -> Stream:
    """The events in pieces of `size` bytes."""
    texts = [json.dumps(each, ensure_ascii=False) for each in events]
    data = "".join(f"data: {text}{end}{end}" for text in [*texts, *filter(None, [last])]).encode()
    return Stream(*(data[at : at + size] for at in range(0, len(data), size)))


STREAMS = {
    "split": sent(*SAID, size=1),
    "crlf": sent(*SAID, end="\r\n"),
    "empty": sent(
        {"id": "", "choices": [], "prompt_filter_results": []},
        *SAID,
        {"id": "x", "choices": [{"index": 0, "delta": None}]},
        {"id": "x", "choices": [], "usage": USAGE},
    ),
    "think": sent(SAID[0], delta(f"<think>{THOUGHT}</think>\n"), *SAID[1:]),
}
UNOPENED = sent(SAID[0], delta("A plan [1]."), delta(" More."), delta("\n</think>\n\n"), *SAID[1:])
BROKEN = {
    "nodone": sent(*SAID[:-1], last=""),
    "error": sent(*SAID[:6], {"error": {"message": "overloaded"}}, *SAID[6:]),
}
DOORS: dict[str, dict[str, Any]] = {
    "/api/v1/chat/": {"message": QUESTION},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": QUESTION}]},
    "/v1/messages": {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 100},
}


def client(context: RagContext) -> APIClient:
    secret = secret_of(Membership.objects.get(user=context.user))
    headers = {"Authorization": f"Bearer {secret}"}
    return APIClient(headers=headers, raise_request_exception=False)


def events_of(response: Any) -> list[Any]:
    """The data of the events. They are ASCII: some clients end lines at U+2028 and U+0085."""
    chunks = [bytes(chunk) for chunk in response.streaming_content]
    response.close()
    assert all(chunk.isascii() and chunk.endswith(b"\n\n") for chunk in chunks)
    lines = b"".join(chunks).decode().splitlines()
    data = [line[6:] for line in lines if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


def told(event: Mapping[str, Any]) -> tuple[str, str, int]:
    """Text, reasoning and number of citations of an event of any of the doors."""
    if "choices" in event:
        (choice,) = event["choices"] or [{"delta": {}}]
        said = choice["delta"]
        return (
            said.get("content") or "",
            said.get("reasoning_content", ""),
            len(said.get("citations", ())),
        )
    if isinstance(said := event.get("delta"), dict):
        return said.get("text", ""), said.get("thinking", ""), int("citation" in said)
    if "withdrawn_from" in event:
        return "", event["text"], 0
    if set(event) == {"text"}:
        return event["text"], "", 0
    return "", "", int("quote" in event)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", STREAMS)
def test_an_answer_is_the_same_however_its_server_sends_it(
    context: RagContext, server: StubServer, how: str, door: str
) -> None:
    server.always(lambda payload: STREAMS[how])
    asked = {"model": "stub", "collections": ["office"], **DOORS[door]}
    response = client(context).post(door, {**asked, "stream": True}, format="json")
    texts, thoughts, cited = zip(*map(told, events_of(response)), strict=True)
    thought = THOUGHT if how == "think" else ""
    assert ("".join(texts), "".join(thoughts), sum(cited)) == (TEXT, thought, 1)
    whole = client(context).post(door, {**asked, "stream": False}, format="json").json()
    text = json.dumps(whole, ensure_ascii=False)
    assert json.dumps(TEXT, ensure_ascii=False) in text
    assert len(whole.get("citations") or whole["choices"][0]["message"]["citations"]) == 1


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", BROKEN)
def test_an_answer_that_breaks_off_ends_with_an_error(
    context: RagContext, server: StubServer, how: str, door: str
) -> None:
    server.always(lambda payload: BROKEN[how])
    asked = {"model": "stub", "collections": ["office"], **DOORS[door]}
    response = client(context).post(door, {**asked, "stream": True}, format="json")
    *events, last = events_of(response)
    assert TEXT.startswith("".join(told(each)[0] for each in events))
    assert last.get("error", last)["code"] == "model_unavailable"
    whole = client(context).post(door, {**asked, "stream": False}, format="json")
    assert whole.status_code == 503


@pytest.mark.parametrize("door", ["/v1/chat/completions", "/v1/messages"])
def test_sources_of_text_that_turns_out_to_be_reasoning_are_not_listed(
    context: RagContext, server: StubServer, door: str
) -> None:
    server.always(lambda payload: UNOPENED)
    asked = {"model": "stub", "collections": ["office"], **DOORS[door]}
    response = client(context).post(door, {**asked, "stream": True}, format="json")
    events = events_of(response)
    listed = [
        each.get("citations") or each["choices"][0]["delta"]["citations"]
        for each in events
        if "citations" in each or "citations" in str(each.get("choices"))
    ]
    assert [[source["at"] for source in sources] for sources in listed] == [[TEXT.index("[1]")]]
