"""What a model thinks is shown, and is never cited, judged, remembered, traced or counted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Document
from documents.services import delete_document
from documents.tests.views.reading import parse, words
from inference.tests.stub_server import (
    Stream,
    StubServer,
    chat_reply,
    chat_stream,
    delta,
    event,
)
from memory.models import Context
from rag.context import RagContext
from rag.events import (
    Citation,
    Done,
    Event,
    Metadata,
    ReasoningToken,
    Token,
    answer_text,
    reasoning_text,
    without_withdrawn,
)
from rag.models import Conversation, Message, Span
from rag.services.chat import chat
from rag.services.conversations import conversation_history, visible_messages
from rag.services.questions import Question
from rag.tests.graphs import edge, node, pipeline
from rag.tests.mcp_world import secret_of
from rag.tests.piped import told
from tests.kit import client_of, logged_in

# Answers are made in threads of their own, which see what is committed.
pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When does the firm leave Mill Street?"
THOUGHT = "The enzyme breaks down lactose [1] [9]."
ANSWER = "It leaves on 14 March [1]."
TAGGED = [f"<think>{THOUGHT}", "</thi", f"nk>\n{ANSWER}"]
UNOPENED = [THOUGHT, "\n</think>\n\n", ANSWER]


def fields() -> Stream:
    deltas = [delta(reasoning_content=THOUGHT), delta(ANSWER), delta(finish="stop")]
    return Stream(*map(event, [*deltas, "[DONE]"]))


@pytest.fixture(params=["tags", "unopened", "fields"])
def thinking(request: pytest.FixtureRequest, server: StubServer) -> Iterator[StubServer]:
    """A model server whose model thinks and then answers, in three forms."""
    forms = {"tags": chat_stream(*TAGGED), "unopened": chat_stream(*UNOPENED), "fields": fields()}
    server.always(lambda payload: forms[request.param])
    return server


def asked(context: RagContext, **how: Any) -> list[Event]:
    return list(chat(Question(QUESTION, **how), context=context))


def test_an_answer_is_cited_and_judged_without_what_was_thought(
    context: RagContext, thinking: StubServer
) -> None:
    events = without_withdrawn(asked(context))
    assert answer_text(events) == ANSWER
    assert reasoning_text(events) == THOUGHT
    cited = [event for event in events if isinstance(event, Citation)]
    assert [each.at for each in cited] == [ANSWER.index("[1]")]
    done = events[-1]
    assert isinstance(done, Done)
    assert (done.verdict.unsupported, done.verdict.dropped_citations) == ((), 0)


def test_it_is_kept_beside_the_answer_and_put_before_no_model(
    context: RagContext, thinking: StubServer
) -> None:
    asked(context, memory=True)
    message = Message.objects.get(role="assistant")
    assert (message.content, message.reasoning) == (ANSWER, THOUGHT)
    assert message.reasoning_ms is not None
    assert [each["at"] for each in message.citations] == [ANSWER.index("[1]")]
    history, _ = conversation_history(Conversation.objects.get(), context=context)
    assert [each.content for each in history] == [QUESTION, ANSWER]
    assert not Context.objects.filter(assistant_response__contains="enzyme").exists()
    conversation = Conversation.objects.get().pk
    list(chat(Question("And why?"), context=context, conversation=conversation))
    assert "enzyme" not in json.dumps([each.json for each in thinking.requests])


def test_what_was_thought_goes_with_a_document_and_is_withheld_with_the_answer(
    context: RagContext, server: StubServer
) -> None:
    server.always(lambda payload: chat_stream(*TAGGED))
    asked(context)
    message = Message.objects.get(role="assistant")
    Document.objects.filter(pk__in=message.documents).update(access=["user:0"])
    (hidden,) = visible_messages(rows=[message], context=context)
    assert (hidden.is_withheld, hidden.reasoning) == (True, "")
    for document in Document.objects.filter(pk__in=message.documents):
        delete_document(document=document)
    message.refresh_from_db()
    assert (message.reasoning, message.reasoning_ms) == ("", None)


def test_the_api_streams_it_as_events_of_their_own_and_has_it_whole(
    context: RagContext, thinking: StubServer
) -> None:
    client: APIClient = client_of(context)
    body = {"message": QUESTION}
    stream = client.post("/api/v1/chat/", body, format="json")
    text = b"".join(stream.streaming_content).decode()
    stream.close()
    found = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    thought = [each["text"] for each in found if "withdrawn_from" in each]
    assert "".join(thought) == THOUGHT
    whole = client.post("/api/v1/chat/", {**body, "stream": False}, format="json").json()
    assert (whole["answer"], whole["reasoning"]) == (ANSWER, THOUGHT)
    assert [each["at"] for each in whole["citations"]] == [ANSWER.index("[1]")]
    url = f"/api/v1/conversations/{whole['conversation']}/messages/"
    assert client.get(url).json()["results"][-1]["reasoning"] == THOUGHT


@pytest.mark.parametrize("more", [{}, {"collections": ["office"]}], ids=["direct", "documents"])
def test_openais_clients_get_it_as_reasoning_content(
    context: RagContext, server: StubServer, more: dict[str, Any]
) -> None:
    server.always(lambda payload: fields())
    secret = secret_of(Membership.objects.get(user=context.user))
    client = APIClient(headers={"Authorization": f"Bearer {secret}"})
    body = {"model": "stub", "messages": [{"role": "user", "content": QUESTION}], **more}
    message = client.post("/v1/chat/completions", body, format="json").json()["choices"][0][
        "message"
    ]
    assert (message["content"], message["reasoning_content"]) == (ANSWER, THOUGHT)
    stream = client.post("/v1/chat/completions", {**body, "stream": True}, format="json")
    text = b"".join(stream.streaming_content).decode()
    stream.close()
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"]
        for line in text.splitlines()
        if line.startswith("data: {")
    ]
    assert "".join(each.get("reasoning_content", "") for each in deltas) == THOUGHT
    assert "".join(each.get("content", "") for each in deltas) == ANSWER


def test_the_page_shows_it_folded(context: RagContext, server: StubServer) -> None:
    server.always(lambda payload: chat_stream("<think><b>plan</b></think>", ANSWER))
    client: Client = logged_in(context)
    page = client.get(client.post("/chat/", {"question": QUESTION})["Location"])
    thought = parse(page).find(".//details[@data-thought]")
    assert thought.get("open") is None
    assert "Thought for 1 s" in words(thought.find("summary"))
    assert words(thought.find("div")) == "<b>plan</b>"


def test_a_pipeline_passes_on_what_its_last_node_thinks_and_traces_none(
    context: RagContext, thinking: StubServer
) -> None:
    graph = pipeline(node("first"), node("last"), edge("first", "last"))
    thinking.first(chat_reply(f"<think>{THOUGHT}</think>Notes."))
    events = without_withdrawn(told(graph, context))
    assert reasoning_text(events) == THOUGHT
    assert answer_text(events).startswith("It leaves on 14 March")
    assert not Span.objects.filter(output__contains="enzyme").exists()
    assert not Span.objects.filter(input__contains="enzyme").exists()


def test_only_text_and_citations_after_the_offset_are_withdrawn() -> None:
    beginning = Metadata(question="q", model="m", generator="pipeline")
    first, thought = Token("One.\n\n"), ReasoningToken("Hm", withdrawn_from=6)
    events = [beginning, first, Token("Hm"), thought, Token("Two.")]
    assert without_withdrawn(events) == [beginning, first, Token(""), thought, Token("Two.")]


def test_a_model_that_only_thinks_fails_and_keeps_no_answer(
    context: RagContext, server: StubServer
) -> None:
    server.always(lambda payload: chat_stream(f"<think>{THOUGHT}"))
    asked(context)
    message = Message.objects.get(role="assistant")
    assert (message.state, message.error_code) == ("failed", "model_empty")
    assert (message.content, message.citations) == ("", [])
    assert message.reasoning == THOUGHT
