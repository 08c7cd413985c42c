"""Conversations are kept for their user alone, and hold nothing of what was deleted."""

from contextlib import closing
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from documents.models import Chunk, Document
from documents.services import delete_document, document_text, edit_chunk
from documents.tests.factories import DocumentFactory
from rag.context import RagContext
from rag.events import Done, Failed, Metadata, Token
from rag.models import Conversation, Message
from rag.services.answers import answer
from rag.services.conversations import (
    conversation_history,
    fail_stale_answers,
    record_answer,
    start_conversation,
    visible_messages,
)
from rag.services.questions import Question
from rag.tests.asking import reader

pytestmark = pytest.mark.django_db

QUESTION = "When does the firm leave Mill Street?"


def ask(context: RagContext, conversation: Conversation, question: str = QUESTION) -> Message:
    """Ask in a conversation; the kept answer."""
    history, earlier = conversation_history(conversation, context=context)
    events = answer(Question(question, history=history), context=context)
    told = list(
        record_answer(
            events,
            question=question,
            conversation=conversation,
            context=context,
            earlier_documents=earlier,
        )
    )
    assert isinstance(told[0], Metadata)
    assert isinstance(told[-1], Done)
    assert told[0].conversation == conversation.pk
    assert told[0].message == told[-1].message
    return Message.objects.get(pk=told[-1].message)


def test_an_answer_is_kept_with_what_it_rests_on(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    kept = ask(context, conversation)
    conversation.refresh_from_db()
    assert conversation.title == QUESTION
    assert kept.state == Message.State.COMPLETE
    assert "14 March" in kept.content
    assert kept.citations[0]["quote"] in Chunk.objects.get(pk=kept.citations[0]["chunk"]).text
    assert "text" not in kept.passages[0]
    assert set(kept.documents) == {passage["document"] for passage in kept.passages}
    asked = conversation.messages.first()
    assert asked is not None
    assert (asked.role, asked.content) == ("user", QUESTION)


def test_passages_are_shown_with_their_texts(context: RagContext) -> None:
    kept = ask(context, start_conversation(context=context))
    (shown,) = visible_messages(rows=[kept], context=context)
    assert "Mill Street" in shown.passages[0]["text"]
    assert not shown.is_withheld


def test_citations_stand_where_their_quotes_are_when_a_passage_is_changed(
    context: RagContext,
) -> None:
    kept = ask(context, start_conversation(context=context))
    cited = kept.citations[0]
    chunk = Chunk.objects.get(pk=cited["chunk"])
    edit_chunk(chunk=chunk, text=f"A beginning that was not there. {chunk.text}")
    (shown,) = visible_messages(rows=[kept], context=context)
    now = shown.citations[0]
    whole = document_text(Document.objects.get(pk=cited["document"])).text
    assert whole[now["start"] : now["end"]] == cited["quote"] == now["quote"]
    chunk.refresh_from_db()
    edit_chunk(chunk=chunk, text=chunk.text.replace(cited["quote"], "It stays where it is."))
    (shown,) = visible_messages(rows=[kept], context=context)
    assert shown.citations[0]["quote"] == cited["quote"]
    assert shown.citations[0]["start"] == shown.citations[0]["end"]
    assert "It stays where it is." in shown.passages[cited["number"] - 1]["text"]


def test_the_next_question_takes_the_former_along(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    first = ask(context, conversation)
    history, documents = conversation_history(conversation, context=context)
    assert [turn.role for turn in history] == ["user", "assistant"]
    assert history[1].content == first.content
    assert documents == first.documents


def test_deleting_a_document_empties_every_answer_that_may_hold_its_text(
    context: RagContext,
) -> None:
    conversation = start_conversation(context=context)
    first = ask(context, conversation)
    second = ask(context, conversation, "Hello!")
    delete_document(document=Document.objects.get(key="move.md"))
    for message in (first, second):
        message.refresh_from_db()
        assert message.state == Message.State.REMOVED
        assert (message.content, message.citations, message.passages) == ("", [], [])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM rag_message AS row WHERE row::text ~ '14 March'")
        assert cursor.fetchone() == (0,)


def test_no_way_of_deleting_goes_around_it() -> None:
    context, collection = reader()
    quoted = DocumentFactory(collection=collection)
    kept = Message.objects.create(
        workspace=context.workspace,
        conversation=start_conversation(context=context),
        role="assistant",
        content="Quoted.",
        documents=[quoted.pk],
    )
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM documents_document WHERE id = %s", [quoted.pk])
    kept.refresh_from_db()
    assert (kept.state, kept.content) == ("removed", "")


def test_a_document_that_goes_while_it_is_quoted_leaves_nothing(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    events = record_answer(
        answer(Question(QUESTION), context=context),
        question=QUESTION,
        conversation=conversation,
        context=context,
    )
    for event in events:
        if isinstance(event, Token) and "14 March" in event.text:
            delete_document(document=Document.objects.get(key="move.md"))
    kept = conversation.messages.get(role="assistant")
    assert (kept.state, kept.content, kept.citations) == ("removed", "", [])


def test_what_a_user_may_read_no_longer_is_withheld(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    kept = ask(context, conversation)
    Document.objects.filter(key="move.md").update(access=["user:0"])
    (shown,) = visible_messages(rows=[kept], context=context)
    assert shown.is_withheld
    assert (shown.content, shown.passages, shown.citations) == ("", (), ())
    assert conversation_history(conversation, context=context) == ([], [])


def test_hanging_up_keeps_what_was_said_so_far(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    events = record_answer(
        answer(Question(QUESTION), context=context),
        question=QUESTION,
        conversation=conversation,
        context=context,
    )
    with closing(events):  # type: ignore[type-var]
        said = next(event.text for event in events if isinstance(event, Token))
    kept = conversation.messages.get(role="assistant")
    assert (kept.state, kept.content) == (Message.State.STOPPED, said)


def test_a_failure_is_kept_as_one_and_not_taken_along(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    events = [
        Metadata(question=QUESTION, model="m", generator="model"),
        Token("The fi"),
        Failed("model_error", "It broke."),
    ]
    list(record_answer(events, question=QUESTION, conversation=conversation, context=context))
    kept = conversation.messages.get(role="assistant")
    assert (kept.state, kept.error_code, kept.error) == ("failed", "model_error", "It broke.")
    assert conversation_history(conversation, context=context) == ([], [])


def test_a_request_that_is_refused_leaves_nothing(context: RagContext) -> None:
    conversation = start_conversation(context=context)

    def refused() -> Any:
        raise ValueError
        yield

    with pytest.raises(ValueError):  # noqa: PT011 - any error
        list(record_answer(refused(), question="?", conversation=conversation, context=context))
    assert not conversation.messages.exists()


def test_answers_of_a_process_that_died_are_said_to_have_failed(
    context: RagContext, settings: Any
) -> None:
    conversation = start_conversation(context=context)
    row = Message.objects.create(
        workspace=context.workspace, conversation=conversation, role="assistant", state="running"
    )
    assert fail_stale_answers() == 0
    settings.RAG_ANSWER_SECONDS = 0
    assert fail_stale_answers() == 1
    row.refresh_from_db()
    assert (row.state, row.error_code) == ("failed", "interrupted")


def client_of(context: RagContext) -> APIClient:
    client = APIClient()
    client.force_authenticate(context.user)
    return client


def test_the_api_lists_renames_and_deletes_ones_own(context: RagContext) -> None:
    conversation = start_conversation(context=context)
    ask(context, conversation)
    client = client_of(context)
    (listed,) = client.get("/api/v1/conversations/").json()["results"]
    assert (listed["id"], listed["title"]) == (conversation.pk, QUESTION)
    path = f"/api/v1/conversations/{conversation.pk}/"
    assert client.patch(path, {"title": "The move"}).json()["title"] == "The move"
    assert client.patch(path, {"title": " "}).status_code == 400
    messages = client.get(f"{path}messages/").json()["results"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    assert messages[1]["passages"][0]["text"]
    assert client.delete(path).status_code == 204
    assert not Message.objects.exists()
