"""`/v1/messages` as Anthropic's clients call it, with a stub model behind it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from inference.tests.stub_server import Reply, Stream, StubServer, delta, event
from rag.anthropic.messages import Message
from rag.context import RagContext
from rag.events import Metadata, ReasoningToken, Token
from rag.tests.asking import reader
from rag.tests.mcp_world import secret_of

# Answers are made in threads of their own, which see what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When does the firm leave Mill Street?"
ANSWER = "It leaves on 14 March [1]."
USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
URL = "/v1/messages"
Post = Callable[..., Any]


def said(*pieces: str, thought: str = "", finish: str = "stop") -> Stream:
    thinking = [delta(reasoning_content=thought)] if thought else []
    events = [*thinking, *map(delta, pieces), delta(finish=finish), USAGE, "[DONE]"]
    return Stream(*map(event, events))


@pytest.fixture
def post(context: RagContext) -> Post:
    secret = secret_of(Membership.objects.get(user=context.user))
    headers = {"x-api-key": secret, "anthropic-version": "2023-06-01"}
    client = APIClient(headers=headers, raise_request_exception=False)

    def send(**body: Any) -> Any:
        messages = [{"role": "user", "content": QUESTION}]
        asked = {"model": "stub", "max_tokens": 100, "messages": messages, **body}
        return client.post(URL, asked, format="json")

    return send


def streamed(response: Any) -> list[dict[str, Any]]:
    """The events of a stream, whose names are their types."""
    text = b"".join(response.streaming_content).decode()
    response.close()
    found = []
    for block in text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def test_a_message_is_answered_by_the_model(post: Post, server: StubServer) -> None:
    server.always(lambda payload: said("Good ", "day."))
    answer = post(
        system=[{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        messages=[
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": ""},
                    {"type": "text", "text": "Hi", "citations": None},
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "And now?"}]},
        ],
        max_tokens=20,
        temperature=0.5,
        stop_sequences=["END"],
        top_k=5,
        metadata={"user_id": "somebody"},
        thinking={"type": "enabled", "budget_tokens": 1024},
    ).json()
    assert answer["id"].startswith("msg_")
    assert {name: answer[name] for name in ("type", "role", "model", "content")} == {
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": [{"type": "text", "text": "Good day."}],
    }
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("end_turn", None)
    assert answer["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert "citations" not in answer
    asked = server.requests[-1].json
    assert [(each["role"], each["content"]) for each in asked["messages"]] == [
        ("system", "Be brief.\nBe kind."),
        ("user", "Hello"),
        ("assistant", "Hi"),
        ("user", "And now?"),
    ]
    assert (asked["max_tokens"], asked["temperature"], asked["stop"]) == (20, 0.5, ["END"])


def test_null_means_left_out(post: Post, server: StubServer) -> None:
    server.always(lambda payload: said("Yes."))
    names = ("system", "max_tokens", "temperature", "top_p", "stop_sequences", "metadata", "tools")
    left_out = {**dict.fromkeys(names), "stream": None, "collections": None, "ragsite": None}
    answer = post(**left_out)
    assert (answer.status_code, answer.json()["content"][0]["text"]) == (200, "Yes.")
    answer = post(metadata={"user_id": None}, ragsite={"memory": None}, model=None)
    assert (answer.status_code, answer.json()["model"]) == (200, "stub")
    assert "temperature" not in server.requests[-1].json


def test_an_answer_that_is_cut_off_says_so(post: Post, server: StubServer) -> None:
    server.always(lambda payload: said("Half", finish="length"))
    assert post().json()["stop_reason"] == "max_tokens"
    assert streamed(post(stream=True))[-2]["delta"]["stop_reason"] == "max_tokens"


def test_a_stream_has_anthropics_events(post: Post, server: StubServer) -> None:
    server.always(lambda payload: said("Good ", "day.", thought="Greet."))
    start, ping, *blocks, end, stop = streamed(post(stream=True))
    assert (start["message"]["model"], start["message"]["content"]) == ("stub", [])
    assert start["message"]["stop_reason"] is None
    assert ping == {"type": "ping"}
    assert blocks == [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        _delta(0, type="thinking_delta", thinking="Greet."),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        _delta(1, type="text_delta", text="Good "),
        _delta(1, type="text_delta", text="day."),
        {"type": "content_block_stop", "index": 1},
    ]
    assert end["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert end["usage"] == {"input_tokens": 7, "output_tokens": 3}
    assert stop == {"type": "message_stop"}


def _delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": fields}


def test_text_that_turns_out_to_be_reasoning_is_followed_by_a_block_of_it() -> None:
    message = Message("m")
    withdrawn = ReasoningToken("Hm", withdrawn_from=0)
    events = [Metadata(question="", model="m", generator="model"), Token("Hm"), withdrawn]
    encoded = b"".join(map(message.encode, [*events, ReasoningToken("."), Token("Yes")]))
    found = [json.loads(line[6:]) for line in encoded.splitlines() if line.startswith(b"data: ")]
    begun = [each for each in found if each["type"] == "content_block_start"]
    assert [each["content_block"]["type"] for each in begun] == ["text", "thinking", "text"]
    assert [each["index"] for each in begun] == [0, 1, 2]
    assert [each["index"] for each in found if each["type"] == "content_block_stop"] == [0, 1]
    deltas = [each["delta"] for each in found if each["type"] == "content_block_delta"]
    assert "".join(each.get("thinking", "") for each in deltas) == "Hm."


@pytest.mark.parametrize("how", ["model", "extractive"])
def test_an_answer_from_documents_has_citations(post: Post, server: StubServer, how: str) -> None:
    server.always(lambda payload: said(*ANSWER.split(" ", 1), thought="Look [1]."))
    body = {"collections": ["office"], **({"model": how} if how == "extractive" else {})}
    answer = post(**body).json()
    (text,) = [block for block in answer["content"] if block["type"] == "text"]
    assert "14 March" in text["text"]
    (source,) = answer["citations"]
    assert (source["number"], source["title"]) == (1, "The move")
    cited = {
        "type": "search_result_location",
        "cited_text": source["quote"],
        "source": source["url"],
        "title": "The move",
        "search_result_index": 0,
        "start_block_index": 0,
        "end_block_index": 1,
    }
    assert text["citations"] == [cited]
    assert answer["ragsite"]["generator"] == how
    events = streamed(post(**body, stream=True))
    deltas = [each["delta"] for each in events if each["type"] == "content_block_delta"]
    assert [each["citation"] for each in deltas if each["type"] == "citations_delta"] == [cited]
    assert "".join(each.get("text", "") for each in deltas) == text["text"]
    assert events[-2]["citations"] == [source]
    thought = [block["thinking"] for block in answer["content"] if block["type"] == "thinking"]
    assert thought == (["Look [1]."] if how == "model" else [])


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"system": 5}, "system"),
        ({"temperature": 1.5}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop_sequences": [1]}, "stop_sequences"),
        ({"metadata": {"user_id": 5 * ["x"]}}, "metadata.user_id"),
        ({"tools": [{"name": "f", "input_schema": {"type": "object"}}]}, "tools"),
        ({"mcp_servers": [{"type": "url"}]}, "mcp_servers"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config"),
        ({"ragsite": {"depths": 5}}, "ragsite.depths"),
    ],
)
def test_a_wrong_field_is_named(
    post: Post, server: StubServer, wrong: dict[str, Any], param: str
) -> None:
    answer = post(**wrong)
    error = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (400, "invalid_request_error"), error
    assert error["param"] == param
    assert error["message"].startswith(f"{param}: ")
    assert answer.json()["type"] == "error"
    assert server.requests == []


@pytest.mark.parametrize("kind", ["image", "document", "tool_use", "tool_result", "search_result"])
def test_blocks_that_are_not_text_are_refused_by_name(
    post: Post, server: StubServer, kind: str
) -> None:
    content = [{"type": "text", "text": "What is this?"}, {"type": kind, "source": {}}]
    error = post(messages=[{"role": "user", "content": content}]).json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "messages.0.content.1")
    assert f"“{kind}”" in error["message"]


def test_errors_have_their_status_and_type(post: Post, server: StubServer) -> None:
    def outcome(answer: Any) -> tuple[int, str]:
        return answer.status_code, answer.json()["error"]["type"]

    assert outcome(post(model="claude-opus-9")) == (404, "not_found_error")
    assert outcome(post(collections=["nowhere"])) == (404, "not_found_error")
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    nobody = APIClient(headers={"x-api-key": "rs_wrong"}).post(URL, body, format="json")
    assert outcome(nobody) == (401, "authentication_error")
    member, _ = reader()
    reads = secret_of(Membership.objects.get(user=member.user), "read")
    answer = APIClient(headers={"x-api-key": reads}).post(URL, body, format="json")
    assert outcome(answer) == (403, "permission_error")
    server.always(lambda payload: Reply({"error": {"message": "busy"}}, status=503))
    assert outcome(post()) == (503, "overloaded_error")
    assert outcome(post(stream=True)) == (503, "overloaded_error")
    server.always(lambda payload: said(""))
    assert outcome(post()) == (502, "api_error")


def test_a_stream_that_breaks_off_ends_with_an_error(post: Post, server: StubServer) -> None:
    server.always(lambda payload: Stream(event(delta("Half an ")), after="cut"))
    events = streamed(post(stream=True))
    assert [each["type"] for each in events[-2:]] == ["content_block_delta", "error"]
    assert events[-1]["error"]["type"] == "overloaded_error"
    assert events[-1]["error"]["code"] == "model_unavailable"


def test_a_bearer_token_opens_too_and_a_session_does_not(context: RagContext) -> None:
    secret = secret_of(Membership.objects.get(user=context.user))
    body = {"model": "extractive", "messages": [{"role": "user", "content": QUESTION}]}
    for headers in ({"Authorization": f"Bearer {secret}"}, {"x-api-key": secret}):
        for path in (URL, f"{URL}/count_tokens"):
            answer = APIClient(headers=headers).post(path, body, format="json")
            assert answer.status_code == 200, answer.content
    client = APIClient(headers={"x-api-key": secret})
    # The rest of the API takes no key from this header.
    assert client.get("/api/v1/collections/").status_code == 401
    # A header without a key is none.
    assert APIClient(headers={"x-api-key": ""}).post(URL, body, format="json").status_code == 401
    login = {"Authorization": f"Bearer {secret}", "x-api-key": ""}
    assert APIClient(headers=login).post(URL, body, format="json").status_code == 200
    browser = APIClient()
    assert context.user is not None
    browser.force_login(context.user)
    assert browser.post(URL, body, format="json").status_code == 401


def test_tokens_are_estimated_without_asking_the_model(
    context: RagContext, server: StubServer
) -> None:
    client = APIClient(headers={"x-api-key": secret_of(Membership.objects.get(user=context.user))})

    def count(**body: Any) -> Any:
        return client.post(f"{URL}/count_tokens", {"model": "stub", **body}, format="json")

    short = [{"role": "user", "content": "Hello there"}]
    few = count(messages=short).json()["input_tokens"]
    more = count(messages=short, system="Be brief, and kind to everybody.").json()["input_tokens"]
    assert 0 < few < more
    assert count(messages=short, model="gpt-99").json()["error"]["type"] == "not_found_error"
    assert count(messages=short, tools=[{"name": "f"}]).status_code == 400
    assert server.requests == []


def test_models_are_listed_as_anthropic_does(context: RagContext, server: StubServer) -> None:
    secret = secret_of(Membership.objects.get(user=context.user))
    listed = APIClient(headers={"x-api-key": secret}).get("/v1/models").json()
    first = listed["data"][0]
    assert (first["type"], first["id"], first["display_name"]) == ("model", "stub", "stub")
    assert first["created_at"].startswith("1970-01-01T00:00:00")
    assert listed["has_more"] is False
