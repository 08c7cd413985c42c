"""Real workers that read conversations: killed in the middle, and several at once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from inference.tests.stub_server import Reply, Silence, StubServer, chat_reply, stub_server
from memory.extraction import worker as extraction_worker
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services.memories import record_messages
from memory.tests.factories import make_scope
from tests.plugin import WorkerProcess, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("at_once")]

State = ExtractionItem.State
CHAT = "inference.backends.chat_openai.OpenAIChat"


def answer(payload: Any) -> Reply:
    """A fact and a context out of each message, as a model would find them."""
    said = json.loads(payload["messages"][1]["content"])
    facts = {f"fact {turn['text']}": turn["text"] for turn in said}
    contexts = [{"q": turn["text"], "a": "yes"} for turn in said]
    return chat_reply(json.dumps({"facts": facts, "context": contexts}))


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with stub_server() as server:
        server.always(answer)
        yield server


def options(stub: StubServer) -> dict[str, Any]:
    return {"model": "stub-1", "base_url": stub.url, "timeout": 30, "attempts": 1}


def record(scope: UserScope, conversation: str, *said: str) -> None:
    messages = [{"role": "user", "content": text} for text in said]
    record_messages(scope=scope, conversation=conversation, messages=messages)


def all_are_read() -> bool:
    return not ExtractionItem.objects.exclude(state=State.IDLE).exists()


@pytest.mark.nightly
def test_a_killed_worker_loses_nothing_and_nothing_is_there_twice(
    unstarted_worker_process: WorkerProcess, stub: StubServer
) -> None:
    worker = unstarted_worker_process
    worker.environment |= {"CHAT_BACKEND": CHAT, "CHAT_OPTIONS": json.dumps(options(stub))}
    scope = make_scope()
    for number in range(4):
        record(scope, f"chat {number}", f"{number} a", f"{number} b")
    stub.first(Silence(), Silence())
    worker.start()
    wait_until(lambda: len(stub.requests) >= 2, what="the model is asked")
    worker.kill()
    assert not Fact.objects.exists()
    held = ExtractionItem.objects.filter(state=State.RUNNING)
    assert set(held.values_list("attempts", flat=True)) == {1}
    worker.start()
    wait_until(all_are_read, what="all conversations are read")
    assert Fact.objects.of(scope).current().count() == Fact.objects.count() == 8
    assert Context.objects.of(scope).count() == 8
    assert set(ExtractionItem.objects.values_list("facts", "contexts")) == {(2, 2)}


def test_two_workers_at_once_read_each_conversation_once(stub: StubServer, settings: Any) -> None:
    chat = {"BACKEND": CHAT, "OPTIONS": options(stub)}
    settings.INFERENCE = {**settings.INFERENCE, "chat": {"default": chat}}
    scope = make_scope()
    for number in range(5):
        record(scope, f"chat {number}", f"{number} a", f"{number} b")
    ids = list(ExtractionItem.objects.values_list("pk", flat=True))
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(read, ids * 4))
    assert sum(outcome is not None for outcome in outcomes) == 5
    assert len(stub.requests) == 5
    assert all_are_read()
    assert Fact.objects.of(scope).count() == Context.objects.of(scope).count() == 10


def test_messages_that_come_while_others_are_read_are_read_too(
    stub: StubServer, settings: Any
) -> None:
    chat = {"BACKEND": CHAT, "OPTIONS": options(stub)}
    settings.INFERENCE = {**settings.INFERENCE, "chat": {"default": chat}}
    scope = make_scope()
    said = [f"message {number}" for number in range(12)]

    def talk(count: int) -> None:
        try:
            record(scope, "chat", *said[:count])
            for pk in ExtractionItem.objects.values_list("pk", flat=True):
                extraction_worker.extract_conversation(pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(talk, range(1, len(said) + 1)))
    while not all_are_read():
        assert extraction_worker.extract_conversation(ExtractionItem.objects.get().pk) is not None
    assert ExtractionItem.objects.get().seen == 12
    assert set(Context.objects.values_list("user_message", flat=True)) == set(said)
    assert Fact.objects.of(scope).current().count() == 12


def read(item_id: int) -> Any:
    try:
        return extraction_worker.extract_conversation(item_id)
    finally:
        connections.close_all()
