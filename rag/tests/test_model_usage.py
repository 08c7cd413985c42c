"""What chat models read and write is counted once: whoever asks, and whatever becomes of it."""

import ast
import json
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import Membership
from accounts.rate_limits import TooManyRequests
from accounts.tests.keys import make_key
from common.rls import workspace_context
from documents.tests.factories import MembershipFactory
from graph.extraction import worker as graph_worker
from graph.models import Extraction
from graph.tests.factories_extraction import waiting
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import BackendUnavailable, ChatMessage
from inference.tests.stub_server import (
    Silence,
    Stream,
    StubServer,
    chat_reply,
    chat_stream,
    delta,
    event,
)
from memory import tasks as memory_tasks
from memory.extraction.queue import State
from memory.models import ExtractionItem
from memory.scopes import UserScope, account_id
from memory.services import record_messages
from model_servers import usage
from model_servers.models import ModelUsage
from model_servers.usage import Purpose, metered_chat
from rag.context import RagContext
from rag.services.answers import answer
from rag.services.pipelines import run_pipeline
from rag.services.questions import Question
from rag.services.summaries import create_written_summary
from rag.services.written_summaries import write_summary
from rag.tests.graphs import node, pipeline
from rag.tests.test_summaries import handbook
from rag.tools.summaries import document_text_of

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
QUESTION = "When does the firm leave Mill Street?"
COUNTED = {"choices": [], "usage": {"prompt_tokens": 900, "completion_tokens": 100}}
ASKED = [ChatMessage("user", "What is a library?")]


@pytest.fixture
def counting(server: StubServer) -> StubServer:
    """Says that a streamed answer took 1,000 tokens, and a whole one 10."""
    events = [delta("On 14 March [1]."), delta(finish="stop"), COUNTED, "[DONE]"]
    server.always(
        lambda payload: (
            Stream(*map(event, events))
            if payload.get("stream")
            else chat_reply(json.dumps({"facts": {"name": "Sam"}, "entities": [], "relations": []}))
        )
    )
    return server


def used() -> list[tuple[Any, ...]]:
    """Purpose, user, calls, estimated calls, tokens read and written of all rows."""
    fields = ("purpose", "user", "calls", "estimated_calls", "input_tokens", "output_tokens")
    return sorted(ModelUsage.objects.values_list(*fields))


def test_an_answer_is_counted_for_who_asked(context: RagContext, counting: StubServer) -> None:
    for _ in range(2):
        list(answer(Question(QUESTION), context=context))
    assert used() == [("answer", context.user_id, 2, 0, 1800, 200)]
    row = ModelUsage.objects.get()
    assert (row.workspace_id, row.model, row.day) == (
        context.workspace.pk,
        "stub",
        timezone.localdate(),
    )
    assert row.cost is None


def test_openai_and_pipelines_are_counted_too(context: RagContext, counting: StubServer) -> None:
    secret = make_key(Membership.objects.get(user=context.user))[1]
    client = APIClient(headers={"Authorization": f"Bearer {secret}"})
    body = {"model": "stub", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    streamed = client.post("/v1/chat/completions", body, format="json")
    list(streamed.streaming_content)
    streamed.close()
    list(run_pipeline(pipeline(node("only")), QUESTION, context=context))
    assert [row[:3] for row in used()] == [
        ("chat", context.user_id, 1),
        ("pipeline", context.user_id, 1),
    ]


def test_an_answer_is_counted_once_where_nobody_waits_for_its_end(
    context: RagContext, server: StubServer
) -> None:
    server.always(lambda payload: chat_stream(*["On 14 March the firm leaves. "] * 50))
    events = answer(Question(QUESTION), context=context)
    for each in events:
        if type(each).__name__ == "Token":
            break
    context.cancelled.set()
    with pytest.raises(Cancelled):
        list(events)
    [(purpose, user, calls, estimated, read, written)] = used()
    assert (purpose, user, calls, estimated) == ("answer", context.user_id, 1, 1)
    assert read > 50
    assert 0 < written < 400


def test_a_call_that_is_cancelled_before_its_answer_has_read_its_prompt(
    context: RagContext, server: StubServer
) -> None:
    silence, event = Silence(), Event()
    server.always(lambda payload: (event.set(), silence)[1])
    model = metered_chat(workspace_id=context.workspace.pk, purpose=Purpose.SUMMARY)
    assert model is not None
    with cancellation(event), pytest.raises(Cancelled):
        model.complete(ASKED)
    [(purpose, user, calls, estimated, read, written)] = used()
    assert (purpose, user, calls, estimated, written) == ("summary", None, 1, 1, 0)
    assert 4 < read < 20


def test_a_server_that_is_not_there_has_used_nothing(context: RagContext, settings: Any) -> None:
    backend = "inference.backends.chat_openai.OpenAIChat"
    gone = {"model": "gone", "base_url": "http://127.0.0.1:9", "api_key": "", "attempts": 1}
    settings.INFERENCE = {"chat": {"default": {"BACKEND": backend, "OPTIONS": gone}}}
    model = metered_chat(workspace_id=context.workspace.pk, purpose=Purpose.CHAT)
    assert model is not None
    for call in (model.complete, lambda asked: list(model.stream(asked))):
        with pytest.raises(BackendUnavailable):
            call(ASKED)
    assert used() == []


def test_a_summary_is_counted_call_by_call(counting: StubServer, settings: Any) -> None:
    context, row = handbook(parts=4)
    settings.RAG_CONTEXT_TOKENS = 60
    text = document_text_of(row)
    made = create_written_summary(text, "summary", user=context.user, max_tokens=150)
    assert write_summary(made.pk)
    calls = len(counting.requests)
    assert calls > 2
    assert used() == [("summary", context.user_id, calls, 0, 7 * calls, 3 * calls)]


@pytest.mark.usefixtures("fresh_limits")
def test_the_limit_counts_summaries_and_refuses_the_next(
    counting: StubServer, settings: Any
) -> None:
    context, row = handbook()
    settings.MODEL_TOKENS_PER_USER = "5/day"
    text = document_text_of(row)
    made = create_written_summary(text, "about", user=context.user, max_tokens=1000)
    assert write_summary(made.pk)
    with pytest.raises(TooManyRequests, match="You have used up"):
        create_written_summary(text, "summary", user=context.user, max_tokens=1000)


@pytest.mark.usefixtures("fresh_limits")
def test_the_graph_is_counted_and_waits_for_the_limit_without_an_attempt(
    counting: StubServer, settings: Any
) -> None:
    cache.clear()
    settings.MODEL_TOKENS_PER_WORKSPACE = "10/hour"
    first, second = waiting("Ada was born in London.", "Ada met Charles.", graph="llm")
    graph_worker.extract([first.pk, second.pk])
    assert graph_worker.extract_with_model(first.pk).read == 1
    calls = len(counting.requests)
    assert used() == [("graph", None, calls, 0, 7 * calls, 3 * calls)]
    outcome = graph_worker.extract_with_model(second.pk)
    row = Extraction.objects.get(document=second)
    assert (row.state, row.attempts) == (Extraction.State.WAITING, 0)
    assert outcome.again[second.pk] == row.due_at
    assert "has used up" in row.error
    assert len(counting.requests) == calls


@pytest.mark.usefixtures("fresh_limits")
def test_memory_is_counted_for_its_user_and_waits_for_the_limit(
    alice: Membership, counting: StubServer, settings: Any
) -> None:
    settings.MODEL_TOKENS_PER_USER = "10/hour"
    scope = UserScope(alice.workspace_id, account_id(alice.user))
    for conversation in ("one", "two"):
        said = [{"role": "user", "content": "My name is Sam"}] * 20
        record_messages(scope=scope, conversation=conversation, messages=said)
        memory_tasks.extract(ExtractionItem.objects.get(key=conversation).pk)
    assert used() == [("memory", alice.user_id, 1, 0, 7, 3)]
    late = ExtractionItem.objects.get(key="two")
    assert (late.state, late.attempts) == (State.WAITING, 0)
    assert late.due_at > timezone.now()
    assert "You have used up" in late.error


def test_calls_at_the_same_time_are_all_counted(context: RagContext, counting: StubServer) -> None:
    def ask() -> None:
        model = metered_chat(workspace_id=context.workspace.pk, purpose=Purpose.CHAT)
        assert model is not None
        for _ in range(5):
            model.complete(ASKED)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert used() == [("chat", None, 20, 0, 140, 60)]


def test_other_workspaces_do_not_see_it_and_it_goes_with_its_own(
    context: RagContext, counting: StubServer
) -> None:
    list(answer(Question(QUESTION), context=context))
    elsewhere = MembershipFactory().workspace
    with workspace_context(elsewhere.pk):
        assert not ModelUsage.objects.exists()
    with workspace_context(context.workspace.pk):
        assert ModelUsage.objects.get().calls == 1
    context.user.delete()
    assert ModelUsage.objects.get().input_tokens == 900  # the sum stays
    model = metered_chat(workspace_id=context.workspace.pk, purpose=Purpose.CHAT)
    context.workspace.delete()
    assert model is not None
    assert model.complete(ASKED).content  # whose workspace is gone meanwhile
    assert used() == []


def test_old_rows_are_deleted(context: RagContext, counting: StubServer, settings: Any) -> None:
    list(answer(Question(QUESTION), context=context))
    assert usage.prune_usage() == 0
    settings.MODEL_USAGE_DAYS = -1
    assert usage.prune_usage() == 1


def test_every_chat_model_of_a_workspace_is_metered() -> None:
    """Whoever takes a model from the registries themselves asks it nothing, or wraps it."""
    taking = set()
    apps = (each.parent for each in ROOT.glob("*/apps.py"))
    for path in (path for app in apps for path in app.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] == "inference" or "tests" in place.parts:
            continue
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("inference."):
                names = {alias.name for alias in each.names}
                taking |= {place.as_posix()} if names & {"chat_model", "chats"} else set()
    assert taking == {
        "model_servers/services.py",  # reads the settings
        "model_servers/usage.py",  # wraps it
        "rag/services/pipelines.py",  # checks a name
        "rag/services/summaries.py",  # checks a name
        "rag/views/chat.py",  # whether there is one
        "rag/views/pipelines.py",  # whether there is one
        "rag/views/summaries.py",  # whether there is one
    }
