"""The chat page: whose conversations it shows, what of them, and how it asks without scripts."""

from typing import Any

import pytest
from django.test import Client

from documents.models import Document
from documents.tests.factories import CollectionFactory
from documents.tests.views.reading import href, parse, words
from inference.tests.stub_server import Reply, chat_stream
from rag.answering import answerability
from rag.context import RagContext
from rag.models import Conversation, Message
from rag.services.chat import chat
from rag.services.questions import Question
from rag.tests.asking import chat_server, document
from tests.kit import logged_in

pytestmark = pytest.mark.django_db

MOVE = "When does the firm leave Mill Street?"


@pytest.fixture
def client(context: RagContext) -> Client:
    return logged_in(context)


def kept(context: RagContext, question: str = MOVE, **how: Any) -> Conversation:
    for _ in chat(Question(question), context=context, **how):
        pass
    return Conversation.objects.latest("pk")


def states(answer: Any) -> list[str]:
    return [str(turn.get("data-state")) for turn in parse(answer).iterfind(".//li[@data-turn]")]


def test_a_question_is_answered_and_the_page_leads_to_it(client: Client) -> None:
    answer = client.post("/chat/", {"question": MOVE})

    conversation = Conversation.objects.get()
    answered = conversation.messages.latest("pk")
    assert answer.status_code == 302
    assert answer["Location"] == f"/chat/{conversation.pk}/#turn-{answered.pk}"
    page = client.get(answer["Location"])
    assert states(page) == ["answered"]
    assert "14 March" in words(parse(page).find(".//main"))
    assert page["Cache-Control"] == "private, no-store"


def test_who_has_not_asked_yet_is_offered_questions_to_begin_with(
    client: Client, context: RagContext
) -> None:
    collection = context.workspace.collections.get()
    document(collection, "desk.md", "# Who packs the desks of all?\n\nMovers pack the desks.\n")
    page = parse(client.get("/chat/"))
    [example] = page.xpath("//a[contains(@href, '/chat/?q=')]")
    assert words(example) == "Who packs the desks of all?"
    asking = parse(client.get(example.get("href")))
    assert words(asking.get_element_by_id("question")) == words(example)

    kept(context)
    assert "Try one of these" not in client.get("/chat/").text


def test_an_empty_question_is_asked_for(client: Client) -> None:
    answer = client.post("/chat/", {"question": "  "})
    assert answer.status_code == 400
    assert "Write a question first." in answer.text
    assert not Conversation.objects.exists()


def test_a_question_that_cannot_be_asked_is_not_lost(client: Client) -> None:
    answer = client.post("/chat/", {"question": MOVE, "model": "no-such-model"})
    assert answer.status_code == 400
    assert "no-such-model" in answer.text
    assert parse(answer).find(".//textarea").text.strip() == MOVE
    assert not Conversation.objects.exists()


def test_a_model_that_fails_is_told_with_the_question(client: Client, settings: Any) -> None:
    with chat_server(settings) as server:
        server.first(Reply({"error": {"message": "no"}}, status=503))
        answer = client.post("/chat/", {"question": MOVE}, follow=True)
    assert states(answer) == ["failed"]
    assert "The language model does not respond" in answer.text
    assert MOVE in words(parse(answer).find(".//main"))


def test_answering_again_replaces_the_last_answer(client: Client, context: RagContext) -> None:
    conversation = kept(context)
    answer = conversation.messages.latest("pk")
    client.post(f"/chat/{conversation.pk}/", {"again": answer.pk, "question": ""})
    rows = conversation.messages.order_by("pk")
    assert [row.role for row in rows] == ["user", "assistant"]
    assert rows[0].content == MOVE
    assert rows[1].pk > answer.pk


@pytest.mark.parametrize("again", ["x", "", "9" * 30, "-1"])
def test_a_strange_answer_is_not_made_again(
    client: Client, context: RagContext, again: str
) -> None:
    conversation = kept(context)
    answer = client.post(f"/chat/{conversation.pk}/", {"again": again, "question": ""})
    assert answer.status_code == 400
    assert conversation.messages.count() == 2


def test_collections_and_the_state_of_the_box_follow_the_conversation(
    client: Client, context: RagContext
) -> None:
    CollectionFactory(workspace=context.workspace, slug="garden", name="Garden")
    client.post("/chat/", {"question": MOVE, "collection": ["office"]})
    conversation = Conversation.objects.get()
    assert conversation.collections == ["office"]

    page = parse(client.get(f"/chat/{conversation.pk}/"))
    ticked = page.xpath("//input[@name='collection'][@checked]/@value")
    assert ticked == ["office"]

    client.post(f"/chat/{conversation.pk}/", {"question": "When are receipts paid back?"})
    page = parse(client.get(f"/chat/{conversation.pk}/"))
    assert page.xpath("//input[@name='collection'][@checked]") == []


def test_what_may_be_read_no_longer_is_withheld(client: Client, context: RagContext) -> None:
    conversation = kept(context)
    Document.objects.filter(key="move.md").update(access=["user:0"])
    answer = client.get(f"/chat/{conversation.pk}/")
    assert states(answer) == ["withheld"]
    assert "14 March" not in answer.text


def test_a_refusal_offers_the_other_collections_where_there_are_others(
    client: Client, context: RagContext
) -> None:
    nowhere = "Who won the chess championship of Reykjavik in 1972?"
    CollectionFactory(workspace=context.workspace, slug="garden")
    offers = "Ask in all collections"
    for asked, offered in [(["office"], True), (["office", "garden"], False), ([], False)]:
        answer = client.post("/chat/", {"question": nowhere, "collection": asked}, follow=True)
        assert "Not in your documents." in answer.text
        assert (offers in answer.text) == offered, asked
        assert "Nothing that was found mentions “Reykjavik”, “1972”." in answer.text
        linked = 'Searched 1 collection with 2 documents: <a href="/documents/office/">Office</a>.'
        assert (linked in answer.text) == (asked == ["office"])
        assert "Try other words" not in answer.text, "the page says it in its own words"


def test_an_answer_that_is_not_sure_is_marked(
    client: Client, context: RagContext, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = ">Not sure</span>"
    assert mark not in client.get(f"/chat/{kept(context).pk}/").text
    monkeypatch.setattr(answerability, "HIGH_CONFIDENCE", 1.1)
    page = client.get(f"/chat/{kept(context).pk}/")
    assert states(page) == ["answered"]
    assert mark in page.text
    hint = "The passages found may not answer this question."
    assert hint not in page.text, "the answer begins with it"
    with chat_server(settings) as server:
        server.first(chat_stream("It leaves on 14 March [1]."))
        page = client.get(f"/chat/{kept(context).pk}/")
    assert mark in page.text
    assert hint in page.text


def test_a_turn_is_there_as_a_part(client: Client, context: RagContext) -> None:
    conversation = kept(context)
    question, answer = conversation.messages.order_by("pk")
    path = f"/chat/{conversation.pk}/turns/"
    assert states(client.get(f"{path}{answer.pk}/")) == ["answered"]
    assert client.get(f"{path}{question.pk}/").status_code == 404
    assert client.get(f"{path}{answer.pk + 1}/").status_code == 404


def test_conversations_come_last_said_first_in_pages_that_meet(
    client: Client, context: RagContext
) -> None:
    rows = [
        Conversation.objects.create(
            workspace=context.workspace, user=context.user, title=f"No {at}."
        )
        for at in range(45)
    ]
    rows[3].save()  # something was said
    first = parse(client.get("/chat/"))
    second = parse(client.get(f"/chat/{href(first, 'Older')}"))
    third = parse(client.get(f"/chat/{href(second, 'Older')}"))
    told = [
        link.text
        for page in (first, second, third)
        for link in page.xpath("//ul[contains(@class, 'former')]/li/a")
    ]
    expected = Conversation.objects.order_by("-updated_at", "-pk")
    assert told == [row.title for row in expected]
    assert told[0] == "No 3."


def test_a_long_conversation_shows_its_end_first(client: Client, context: RagContext) -> None:
    conversation = kept(context)
    fields = {"workspace": context.workspace, "conversation": conversation}
    for at in range(30):
        Message.objects.create(role="user", content=f"Question {at}", **fields)
        Message.objects.create(role="assistant", content=f"Answer {at}.", **fields)
    path = f"/chat/{conversation.pk}/"
    last = parse(client.get(path))
    earlier = parse(client.get(path + href(last, "Earlier questions")))
    questions = [
        heading.text for page in (earlier, last) for heading in page.xpath("//li[@data-turn]//h2")
    ]
    assert questions == [MOVE, *(f"Question {at}" for at in range(30))]
    assert len(last.xpath("//button[@name='again']")) == 1
    assert earlier.xpath("//button[@name='again']") == []
    assert href(earlier, "Later questions")


def test_a_title_is_changed_and_must_not_be_empty(client: Client, context: RagContext) -> None:
    conversation = kept(context)
    path = f"/chat/{conversation.pk}/rename/"
    assert client.post(path, {"title": " "}).status_code == 400
    assert client.post(path, {"title": "The move"}).status_code == 302
    conversation.refresh_from_db()
    assert conversation.title == "The move"


@pytest.mark.usefixtures("model_down")
def test_an_answer_by_words_only_says_so(client: Client) -> None:
    answer = client.post("/chat/", {"question": MOVE}, follow=True)
    assert "Words only." in words(parse(answer).find(".//li[@data-turn]"))


def test_with_a_model_the_page_does_not_call_itself_extractive(
    client: Client, settings: Any
) -> None:
    assert "Extractive: quotes from your documents" in client.get("/chat/").text
    with chat_server(settings) as server:
        server.first(chat_stream("On 14 March [1]."))
        page = client.get("/chat/")
        assert "Extractive: quotes from your documents" not in page.text
        answer = client.post("/chat/", {"question": MOVE}, follow=True)
    assert states(answer) == ["answered"]
    assert parse(answer).xpath("//a[@data-cite]/text()") == ["1"]
