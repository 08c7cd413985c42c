"""POST /api/v1/chat/: questions answered as events or whole, and refused with what to do."""

import json
import threading
from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.models import Chunk
from documents.tests.factories import CollectionFactory, MembershipFactory
from inference.tests.stub_server import (
    Reply,
    Stream,
    StubServer,
    chat_reply,
    chat_stream,
    delta,
    event,
)
from rag.context import RagContext
from rag.models import Conversation, Message
from tests.kit import client_of

# The answer is made in another thread, which sees only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When does the firm leave Mill Street?"


@pytest.fixture
def client(context: RagContext) -> APIClient:
    return client_of(context, raise_request_exception=False)


def ask(client: APIClient, message: str = QUESTION, **body: Any) -> Any:
    return client.post("/api/v1/chat/", {"message": message, **body}, format="json")


def told(answer: Any) -> list[tuple[str, Any]]:
    """The stream's events, read to their end."""
    assert answer.status_code == 200, answer.content
    found = []
    for block in b"".join(answer.streaming_content).decode().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    answer.close()
    return found


def whole(client: APIClient, message: str = QUESTION, **body: Any) -> Any:
    answer = ask(client, message, stream=False, **body)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def refused(client: APIClient, status: int = 400, **body: Any) -> Any:
    """The fault that both forms of the request are answered with."""
    faults = []
    for streamed in (True, False):
        answer = client.post("/api/v1/chat/", {**body, "stream": streamed}, format="json")
        assert answer.status_code == status, answer
        faults.append(answer.json())
    assert faults[0] == faults[1]
    return faults[0]["errors"][0]


# --- answers -------------------------------------------------------------------------------------


def test_an_answer_is_told_event_by_event(client: APIClient) -> None:
    events = told(ask(client))
    names = [name for name, _ in events]
    assert names[0] == "metadata"
    assert names[1] == "retrieval"
    assert names[-1] == "done"
    assert {"token", "citation"} <= set(names)
    metadata, retrieval = events[0][1], events[1][1]
    assert (metadata["question"], metadata["generator"]) == (QUESTION, "extractive")
    text = "".join(data["text"] for name, data in events if name == "token")
    assert "14 March" in text
    for citation in (data for name, data in events if name == "citation"):
        assert citation["number"] in {passage["number"] for passage in retrieval["passages"]}
        chunk = Chunk.objects.get(pk=citation["chunk"])
        quoted = chunk.text[citation["start"] - chunk.start : citation["end"] - chunk.start]
        assert quoted == citation["quote"]
        assert text[citation["at"] :].startswith(f"[{citation['number']}]")


def test_the_same_answer_whole(client: APIClient) -> None:
    events = told(ask(client, history=[]))
    answer = whole(client, history=[])
    assert answer["answer"] == "".join(data["text"] for name, data in events if name == "token")
    assert answer["citations"] == [data for name, data in events if name == "citation"]
    assert answer["passages"] == events[1][1]["passages"]
    assert (answer["confidence"], answer["verdict"]["refused"]) == ("high", False)
    assert answer["queries"] == [QUESTION]
    assert answer["usage"] == {"input_tokens": 0, "output_tokens": 0}


def test_any_accept_header_gets_the_stream(client: APIClient) -> None:
    for accepted in ("text/event-stream", "text/html", "*/*"):
        answer = client.post(
            "/api/v1/chat/", {"message": QUESTION}, format="json", headers={"Accept": accepted}
        )
        assert answer["Content-Type"] == "text/event-stream"
        assert answer["X-Accel-Buffering"] == "no"
        assert told(answer)[-1][0] == "done"


def test_a_chat_model_gets_what_the_request_says_of_it(
    client: APIClient, server: StubServer
) -> None:
    server.always(lambda payload: chat_stream("They leave ", "on 14 March [1]."))
    answer = whole(client, model="stub", temperature=0.3, top_p=0.9, max_tokens=77)
    assert answer["answer"] == "They leave on 14 March [1]."
    assert (answer["generator"], answer["model"]) == ("model", "stub")
    assert [citation["number"] for citation in answer["citations"]] == [1]
    sent = server.requests[-1].json
    assert (sent["temperature"], sent["top_p"]) == (0.3, 0.9)
    assert 77 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))


def test_a_history_goes_before_the_question_and_nothing_is_kept(
    client: APIClient, server: StubServer
) -> None:
    server.always(lambda payload: chat_stream("At seven [1]."))
    history = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "On 14 March."},
    ]
    answer = whole(client, "At what time do movers come on 14 March?", history=history)
    assert answer["conversation"] is answer["message"] is None
    said = [each["content"] for each in server.requests[-1].json["messages"]]
    assert any(QUESTION in each for each in said[:-1])
    assert not Conversation.objects.exists()


def test_only_the_collections_that_are_named_are_asked(
    client: APIClient, context: RagContext
) -> None:
    CollectionFactory(workspace=context.workspace, slug="empty")
    assert whole(client, collections=["empty"])["passages"] == []
    answer = whole(client, collections=["office"])
    assert {passage["collection"] for passage in answer["passages"]} == {"office"}
    without = whole(client, filter={"title": "Travel"}, history=[])
    assert (without["confidence"], without["verdict"]["refused"]) == ("none", True)
    assert without["verdict"]["searched"]["filtered"] is True


def test_a_pipeline_answers_and_tells_its_steps(client: APIClient, server: StubServer) -> None:
    server.always(
        lambda payload: chat_stream("Hello.") if payload.get("stream") else chat_reply("Hello.")
    )
    events = told(ask(client, pipeline_id="simple-chat"))
    assert (events[0][1]["generator"], events[0][1]["pipeline"]) == ("pipeline", "simple-chat")
    states = [data["state"] for name, data in events if name == "node"]
    assert (states[0], states[-1]) == ("started", "ended")
    assert events[-1][1]["trace"]
    assert Conversation.objects.get().pipeline == "simple-chat"
    answer = whole(client, pipeline="simple-chat", history=[])
    assert answer["answer"] == "Hello."
    assert refused(client, 404, message=QUESTION, pipeline="no-such")["code"] == "not_found"


# --- conversations -------------------------------------------------------------------------------


def test_a_question_begins_a_conversation_and_others_continue_it(
    client: APIClient, context: RagContext
) -> None:
    begun = told(ask(client, collections=["office"]))[0][1]
    kept = Conversation.objects.get(pk=begun["conversation"])
    assert (kept.user, kept.title, kept.collections) == (context.user, QUESTION, ["office"])
    answer = whole(client, "What does everybody pack?", conversation=kept.pk)
    assert answer["conversation"] == kept.pk
    assert [each.role for each in kept.messages.order_by("id")] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert kept.messages.order_by("id").last().pk == answer["message"]
    kept.refresh_from_db()
    assert kept.collections == ["office"]


def test_null_keeps_nothing(client: APIClient) -> None:
    assert whole(client, conversation=None)["conversation"] is None
    assert not Message.objects.exists()


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "attr"),
    [
        ({"message": "a\0b"}, "message"),
        ({"message": "a", "history": [{"role": "system", "content": "b"}]}, "history.0.role"),
        ({"message": "a", "history": [{"role": "user"}]}, "history.0.content"),
        ({"message": "a", "history": [{"role": "user", "content": "b", "x": 1}]}, "history.0.x"),
        ({"message": "a", "history": [{"role": "user", "content": "b\0"}]}, "history.0.content"),
        ({"message": "a", "history": [{"role": "user", "content": "b"}] * 201}, "history"),
        ({"message": "a", "history": [], "conversation": 1}, "history"),
        ({"message": "a", "conversation": 2**63}, "conversation"),
        ({"message": "a", "pipeline": "rag", "pipeline_id": "sql"}, "pipeline_id"),
        ({"message": "a", "pipeline": "rag", "temperature": 1}, "temperature"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_is_named(body: dict[str, Any], attr: str) -> None:
    client = APIClient()
    client.force_login(MembershipFactory().user)
    assert refused(client, **body)["attr"] == attr


def test_a_filter_that_cannot_be_says_so(client: APIClient) -> None:
    assert refused(client, message=QUESTION, filter={"year": {"$near": 1}})["attr"] == "filter"


# --- what goes wrong -----------------------------------------------------------------------------


def broken(*pieces: str) -> Stream:
    return Stream(*(event(delta(piece)) for piece in pieces), after="cut")


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (Reply({"error": "down"}, status=500), 503, "model_unavailable"),
        (Reply(b"no json", headers={"Content-Type": "text/event-stream"}), 502, None),
        (broken("They leave"), 503, "model_unavailable"),
        (Stream(event(delta(finish="stop")), event("[DONE]")), 502, "model_empty"),
        (Stream(event(delta(finish="content_filter")), event("[DONE]")), 422, "model_refused"),
    ],
    ids=["down", "nonsense", "cut", "empty", "refuses"],
)
def test_a_model_that_fails_ends_the_answer_with_what_to_do(
    client: APIClient, server: StubServer, reply: Any, status: int, code: str | None
) -> None:
    server.always(lambda payload: reply)
    *before, (name, error) = told(ask(client))
    assert name == "error"
    assert "done" not in {name for name, _ in before}
    assert set(error) == {"code", "detail"}
    assert "Traceback" not in error["detail"]
    assert code in (None, error["code"])
    kept = Message.objects.filter(role="assistant").latest("pk")
    assert (kept.state, kept.error_code) == ("failed", error["code"])
    answer = ask(client, stream=False)
    assert (answer.status_code in (status, 503), answer.json()["code"]) == (True, error["code"])


def test_a_model_that_is_slow_is_left_when_its_time_is_up(
    client: APIClient, server: StubServer, settings: Any
) -> None:
    settings.RAG_ANSWER_SECONDS = 0.0  # a second at least is left to the model
    server.always(lambda payload: Stream(event(delta("They")), after="silence"))
    *_, (name, error) = told(ask(client))
    assert (name, error["code"]) == ("error", "model_unavailable")


def test_a_database_that_is_cut_in_the_middle_is_told(
    client: APIClient, server: StubServer
) -> None:
    """Where no connection is held there is nothing to cut: the answer is even kept."""
    going_on = threading.Event()
    pieces = (event(delta("They leave ")), going_on, event(delta("on 14 March [1].")))
    ended = (event(delta(finish="stop")), event("[DONE]"))
    server.always(lambda payload: Stream(*pieces, *ended))
    answer = ask(client)
    chunks = iter(answer.streaming_content)
    read = b""
    while b"They leave" not in read:
        read += next(chunks)
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    going_on.set()
    read += b"".join(chunks)
    answer.close()
    assert b"event: done" in read
    assert Message.objects.get(role="assistant").state == "complete"


# --- models --------------------------------------------------------------------------------------


def test_models_are_listed_by_what_they_do(client: APIClient, server: StubServer) -> None:
    listed = client.get("/api/v1/models/").json()
    assert {"name": "stub", "owner": "ragsite", "is_default": True} in listed["chat"]
    assert "extractive" in {model["name"] for model in listed["chat"]}
    (embedder,) = (each for each in listed["embedders"] if each["is_default"])
    assert (embedder["name"], embedder["dimensions"]) == ("default", 384)
    assert listed["rerankers"] == []
