"""Questions of chats are in the search log, and those that got no answer say so."""

import pytest

from documents.models import Document
from inference.tests.stub_server import StubServer, chat_stream
from rag.answering import answerability
from rag.answering.phrases import not_found_text
from rag.context import RagContext
from rag.services.answers import answer
from rag.services.questions import Question
from rag.tests.asking import reader
from search.models import SearchLog

pytestmark = pytest.mark.django_db

QUESTION = "When does the firm leave Mill Street?"


def test_an_answered_question_is_noted_with_what_it_found() -> None:
    context, collection = reader()
    list(answer(Question(QUESTION), context=context))
    row = SearchLog.objects.get()
    assert (row.query, row.source, row.user) == (QUESTION, "chat", context.user)
    assert (row.refused, row.collections) == (False, [collection.pk])
    assert row.total > 0
    assert row.confidence == "high"
    assert Document.objects.get(pk=row.documents[0]).key == "move.md"
    assert row.similarity is not None
    assert not SearchLog.objects.found_nothing().exists()


def test_a_refused_question_found_nothing(context: RagContext) -> None:
    list(answer(Question("Which enzyme breaks down lactose in cats?"), context=context))
    row = SearchLog.objects.found_nothing().get()
    assert (row.refused, row.confidence) == (True, "none")


def test_a_question_whose_answer_is_not_sure_is_no_refused_one(
    context: RagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answerability, "HIGH_CONFIDENCE", 1.1)
    list(answer(Question(QUESTION), context=context))
    row = SearchLog.objects.get()
    assert (row.refused, row.confidence) == (False, "low")
    assert not SearchLog.objects.found_nothing().exists()


def test_a_model_that_refuses_is_noted_afterwards(context: RagContext, server: StubServer) -> None:
    server.first(chat_stream(not_found_text("en")))
    list(answer(Question(QUESTION), context=context))
    row = SearchLog.objects.get()
    assert (row.refused, row.confidence) == (True, "none")


def test_small_talk_is_no_question(context: RagContext) -> None:
    list(answer(Question("Hello!"), context=context))
    assert not SearchLog.objects.exists()
