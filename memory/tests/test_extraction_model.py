"""Facts by a chat model: a real client, a server that answers as told, and a queue that goes on."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.utils import timezone

from accounts.models import Workspace
from inference.tests.stub_server import (
    CutOff,
    Endless,
    Reply,
    Silence,
    StubServer,
    chat_reply,
    stub_server,
)
from memory import tasks
from memory.extraction.queue import due_items
from memory.extraction.rules import RULES_EXTRACTOR
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services import get_all_facts, history, set_fact
from memory.services.memories import record_messages, retry_extractions
from memory.tests.factories import make_scope
from model_servers.tests.servers import OWN, choose_own

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

State = ExtractionItem.State
NOTHING_LISTENS = "http://127.0.0.1:9"


def answer(contexts: Any = (), **facts: Any) -> Reply:
    return chat_reply(json.dumps({"facts": facts, "context": list(contexts)}))


@pytest.fixture
def stub(settings: Any) -> Iterator[StubServer]:
    with stub_server() as server:
        server.always(lambda payload: answer(name="Sam"))
        use_chat(settings, server.url)
        yield server


def use_chat(settings: Any, url: str) -> None:
    options = {"model": "stub-1", "base_url": url, "timeout": 5, "attempts": 1}
    chat = {"BACKEND": "inference.backends.chat_openai.OpenAIChat", "OPTIONS": options}
    settings.INFERENCE = {**settings.INFERENCE, "chat": {"default": chat}}


def record(scope: UserScope, *said: str, conversation: str = "chat") -> ExtractionItem:
    messages = [{"role": "user", "content": text} for text in said]
    record_messages(scope=scope, conversation=conversation, messages=messages)
    return ExtractionItem.objects.of(scope).get(key=conversation)


def come_due(item: ExtractionItem) -> None:
    """The interval before the next attempt is over, and the pause for all with it."""
    cache.delete("memory.extraction.pause")
    soon = timezone.now() - timedelta(seconds=1)
    ExtractionItem.objects.filter(pk=item.pk, state=State.WAITING).update(due_at=soon)


def facts(scope: UserScope) -> dict[str, str]:
    return {fact.key: fact.value for fact in get_all_facts(scope=scope)}


def test_the_model_reads_the_users_words_and_its_facts_are_kept(stub: StubServer) -> None:
    scope = make_scope()
    set_fact(scope=scope, key="home", value="Munich")
    stub.first(answer([{"q": "Where is my bike?", "a": "In the shed"}], home="Berlin", job=7))
    item = record(scope, "My bike is in the shed", "I moved to Berlin")
    assert tasks.extract(item.pk)
    assert facts(scope) == {"home": "Berlin"}
    fact = Fact.objects.of(scope).current().get()
    context = Context.objects.of(scope).get()
    assert (fact.origin, context.origin) == ("model", "model")
    assert (context.user_message, context.assistant_response) == (
        "Where is my bike?",
        "In the shed",
    )
    item.refresh_from_db()
    assert (item.extractor, item.facts, item.contexts, item.messages) == ("stub-1", 1, 1, [])
    [request] = stub.requests
    system, said = request.json["messages"]
    assert "home" in system["content"]
    assert [turn["text"] for turn in json.loads(said["content"])] == [
        "My bike is in the shed",
        "I moved to Berlin",
    ]
    assert (request.json["max_tokens"], request.json["temperature"]) == (512, 0.1)


def test_the_model_ends_facts_by_key_or_value(stub: StubServer) -> None:
    scope = make_scope()
    for key, value in {"home": "Nantes", "chien": "Rex", "name": "Léa", "job": "vet"}.items():
        set_fact(scope=scope, key=key, value=value)
    reply = {
        "facts": {"job": "baker"},
        "context": [],
        "ended": ["Home", "rex", "job", "Paris", "dog"],
    }
    stub.first(chat_reply(json.dumps(reply)))
    item = record(scope, "Je n'habite plus à Nantes. Rex est mort. Je suis boulangère.")
    assert tasks.extract(item.pk)
    assert facts(scope) == {"name": "Léa", "job": "baker"}
    former, current = history(scope=scope, key="job")[::-1]
    assert (former.state, current.state) == (Fact.State.SUPERSEDED, Fact.State.CURRENT)
    [home] = history(scope=scope, key="home")
    assert home.state == Fact.State.ENDED


BAD = {
    "prose": chat_reply("I'd rather not."),
    "half": chat_reply('{"facts": {"name": "Sa', finish="length"),
    "empty": chat_reply(""),
    "no JSON": Reply(b"<html>hello</html>"),
    "another protocol": Reply({"choices": []}),
    "refused": chat_reply(None, finish="content_filter"),
    "too long": Reply({"error": {"message": "maximum context length is 512"}}, status=400),
    "huge": chat_reply("{" * 200_000),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_answer_is_not_counted_as_done_and_given_up_after_some(
    stub: StubServer, kind: str
) -> None:
    scope, other = make_scope(), make_scope()
    stub.always(lambda payload: BAD[kind] if "poison" in str(payload) else answer(name="Eve"))
    item, good = record(scope, "poison"), record(other, "My name is Eve")
    waits = []
    for _ in range(5):
        come_due(item)
        assert tasks.extract(item.pk)
        item.refresh_from_db()
        assert (item.facts, len(item.messages), item.extracted_at) == (0, 1, None)
        if item.due_at:
            waits.append((item.due_at - timezone.now()).total_seconds())
    assert item.state == State.DEAD
    assert "Given up after 5 attempts" in item.error
    assert [round(seconds / 5) for seconds in waits] == [1, 2, 4, 8]
    assert len(stub.requests) == 5
    # the queue goes on
    assert tasks.extract(good.pk)
    assert facts(other) == {"name": "Eve"}
    # and so does the conversation, once it is tried again and answered well
    stub.always(lambda payload: answer(name="Sam"))
    retry_extractions(item_ids=[item.pk])
    assert tasks.extract(item.pk)
    assert facts(scope) == {"name": "Sam"}


def test_after_a_failure_fewer_messages_are_asked_about(stub: StubServer) -> None:
    stub.first(*(chat_reply("hm") for _ in range(3)))
    item = record(make_scope(), *(f"message {number}" for number in range(20)))
    for _ in range(4):
        come_due(item)
        tasks.extract(item.pk)
    sizes = [len(json.loads(one.json["messages"][1]["content"])) for one in stub.requests]
    assert sizes == [20, 10, 5, 2]
    item.refresh_from_db()
    assert (len(item.messages), item.state, item.attempts) == (18, State.WAITING, 0)


AWAY = {
    "error": Reply({"error": "no"}, status=500),
    "overloaded": Reply({}, status=503),
    "wrong key": Reply({"error": "who are you?"}, status=401),
    "slow": Silence(),
    "cut off": CutOff(),
}


@pytest.mark.parametrize("kind", AWAY)
def test_a_model_that_is_away_costs_no_attempt_and_pauses_the_queue(
    stub: StubServer, kind: str, settings: Any
) -> None:
    settings.MEMORY_EXTRACTION_SECONDS = 0.3
    scope, other = make_scope(), make_scope()
    item, next_one = record(scope, "My name is Sam"), record(other, "My name is Eve")
    stub.first(AWAY[kind])
    assert tasks.extract(item.pk)
    item.refresh_from_db()
    assert (item.state, item.attempts, item.outages) == (State.WAITING, 0, 1)
    assert item.error
    asked = len(stub.requests)
    assert tasks.extract(next_one.pk) is False
    assert tasks.recover_extractions() == 0
    assert len(stub.requests) == asked
    come_due(item)
    settings.MEMORY_EXTRACTION_SECONDS = 5
    assert tasks.extract(item.pk)
    item.refresh_from_db()
    assert (facts(scope), item.error, item.outages) == ({"name": "Sam"}, "", 0)
    assert tasks.extract(next_one.pk)


def test_an_unreachable_model_is_waited_for_long_but_not_for_ever(settings: Any) -> None:
    use_chat(settings, NOTHING_LISTENS)
    settings.MEMORY_EXTRACTION_MAX_OUTAGES = 8
    item = record(make_scope(), "My name is Sam")
    waits = []
    while item.state != State.DEAD:
        come_due(item)
        tasks.extract(item.pk)
        item.refresh_from_db()
        if item.due_at:
            waits.append(round((item.due_at - timezone.now()).total_seconds()))
    assert waits == [5, 10, 20, 40, 80, 160, 320]
    assert "cannot be reached" in item.error
    assert len(item.messages) == 1


def test_the_longest_wait_is_an_hour(settings: Any) -> None:
    use_chat(settings, NOTHING_LISTENS)
    item = record(make_scope(), "My name is Sam")
    ExtractionItem.objects.update(outages=40)
    tasks.extract(item.pk)
    item.refresh_from_db()
    assert item.due_at is not None
    assert 3590 < (item.due_at - timezone.now()).total_seconds() <= 3600


def test_an_endless_answer_ends(stub: StubServer) -> None:
    item = record(make_scope(), "My name is Sam")
    stub.first(Endless())
    assert tasks.extract(item.pk)
    item.refresh_from_db()
    assert item.state == State.WAITING
    assert item.error
    assert len(item.messages) == 1


def test_a_chat_model_that_is_configured_wrong_is_an_outage(settings: Any) -> None:
    chat = {"BACKEND": "inference.backends.chat_openai.Nothing", "OPTIONS": {}}
    settings.INFERENCE = {**settings.INFERENCE, "chat": {"default": chat}}
    item = record(make_scope(), "My name is Sam")
    assert tasks.extract(item.pk)
    item.refresh_from_db()
    assert (item.attempts, item.outages) == (0, 1)
    assert "cannot be made" in item.error


def test_a_fact_is_as_old_as_the_message_that_holds_it(stub: StubServer) -> None:
    scope = make_scope()
    said = timezone.now() - timedelta(days=9)
    stub.first(answer(home="Berlin", mood="fine"))
    messages = [
        {"role": "user", "content": "I moved to Berlin", "at": said},
        {"role": "user", "content": "All is well", "at": said + timedelta(days=1)},
    ]
    record_messages(scope=scope, conversation="chat", messages=messages)
    tasks.extract(ExtractionItem.objects.get().pk)
    ages = {fact.key: fact.valid_from - said for fact in get_all_facts(scope=scope)}
    assert ages == {"home": timedelta(0), "mood": timedelta(days=1)}


@pytest.mark.usefixtures("connected")
def test_the_model_that_a_workspace_chose_reads_its_conversations(stub: StubServer) -> None:
    scope, other = make_scope(), make_scope()
    with stub_server() as own:
        own.always(lambda payload: answer(name="Eve"))
        choose_own(Workspace.objects.get(pk=scope.workspace_id), own.url)
        items = [record(each, "I have a name") for each in (scope, other)]
        assert [tasks.extract(item.pk) for item in items] == [True, True]
        assert [request.json["model"] for request in own.requests] == [OWN]
    assert (facts(scope), facts(other)) == ({"name": "Eve"}, {"name": "Sam"})
    extractors = ExtractionItem.objects.values_list("workspace", "extractor")
    assert dict(extractors) == {scope.workspace_id: OWN, other.workspace_id: "stub-1"}


@pytest.mark.usefixtures("connected")
def test_the_model_of_a_workspace_reads_where_the_site_has_none() -> None:
    scope, other = make_scope(), make_scope()
    with stub_server() as own:
        own.always(lambda payload: answer(name="Eve"))
        choose_own(Workspace.objects.get(pk=scope.workspace_id), own.url)
        for each in (scope, other):
            assert tasks.extract(record(each, "My name is Sam").pk)
    assert (facts(scope), facts(other)) == ({"name": "Eve"}, {"name": "Sam"})
    assert ExtractionItem.objects.of(other).get().extractor == RULES_EXTRACTOR


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("away", ["own", "site"])
def test_a_model_that_is_away_pauses_only_the_workspaces_that_it_serves(
    stub: StubServer, settings: Any, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    monkeypatch.setattr("inference.remote.retry.pause", lambda wait, until: None)
    scope, other = make_scope(), make_scope()
    with stub_server() as own:
        own.always(lambda payload: answer(name="Eve"))
        choose_own(
            Workspace.objects.get(pk=scope.workspace_id),
            NOTHING_LISTENS if away == "own" else own.url,
        )
        if away == "site":
            use_chat(settings, NOTHING_LISTENS)
        served, reading = (scope, other) if away == "own" else (other, scope)
        assert tasks.extract(record(served, "I have a name").pk)
        waits = record(served, "I have another", conversation="later")
        reads = record(reading, "I have a name")
        assert not tasks.extract(waits.pk)
        assert due_items() == [reads.pk]
        assert tasks.extract(reads.pk)
    assert (bool(facts(served)), bool(facts(reading))) == (False, True)
