"""After erasing a user's memory no column of any table and nothing in Valkey holds what the user
said, and of nobody else anything is gone."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import connection
from django.urls import reverse
from redis import Redis

from accounts.models import Workspace
from common.tools import run_tool
from documents.tests.factories import MembershipFactory, UserFactory
from memory import services
from memory.embedding import embed_waiting
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import UserScope, user_scope
from memory.tasks import enqueue_extraction, prune_memories, recover_extractions
from memory.tools import TOOLS
from ragsite.celery import app
from tests.kit import logged_in

pytestmark = pytest.mark.django_db(transaction=True)

#: In texts, names of conversations, keys and values; as a language stems them too.
WORDS = ("zanzibarit", "quokkasnam", "wombattitl")
ALICE, BOB = "numbatuser-alice", "numbatuser-bob"
SAID = "The xylophonist keeps a {}zanzibarite in the cellar."
ANSWER = "A {}zanzibarite! And who feeds it?"


@pytest.fixture
def workspace() -> Workspace:
    return MembershipFactory(role="owner").workspace


@pytest.fixture
def people(workspace: Workspace, settings: Any) -> dict[str, UserScope]:
    """Two users with the same life, which went through every door there is. What is the other
    one's has another letter before each word."""
    scopes = {}
    for name, mark in ((ALICE, ""), (BOB, "x")):
        scope = user_scope(workspace=workspace, user_id=name)
        assert scope is not None
        live(scope, mark)
        scopes[name] = scope
    embed_waiting()
    settings.MEMORY_USER_ROWS = 4
    assert prune_memories() == 2
    return scopes


def live(scope: UserScope, mark: str) -> None:
    for number in range(5):
        services.archive_turn(
            scope=scope,
            user_message=f"{SAID.format(mark)} {number}",
            assistant_response=ANSWER.format(mark),
            conversation=f"{mark}quokkasname",
        )
    source = Context.objects.of(scope).order_by("-pk")[0]
    for value in (f"a {mark}zanzibarite", f"two {mark}wombattitles"):
        services.set_fact(scope=scope, key=f"{mark}quokkasname kept", value=value, source=source)
    services.clear_fact(scope=scope, key=f"{mark}quokkasname kept")
    services.set_fact(scope=scope, key=f"{mark}quokkasname", value=f"{mark}wombattitle")
    run_tool(
        TOOLS,
        "set_fact",
        {"key": f"{mark}quokkasname tool", "value": f"{mark}wombattitle"},
        scope=scope,
    )
    converse(scope, mark)
    question = SAID.format(mark)
    services.search_memory(scope=scope, query=question)
    services.inject(messages=[{"role": "user", "content": question}], scope=scope, enabled=True)


def converse(scope: UserScope, mark: str) -> None:
    """One conversation that has been read, one that waits, one that was given up."""
    for name in ("read", "waits", "dead"):
        messages = [
            {"role": "user", "content": text}
            for text in (f"My name is {mark}Quokkasname.", SAID.format(mark), "I live in Basel.")
        ]
        recorded = services.record_messages(
            scope=scope, conversation=f"{mark}quokkasname {name}", messages=messages
        )
        assert recorded is not None
        rows = ExtractionItem.objects.filter(pk=recorded.item_id)
        if name == "read":
            rows.update(due_at="2026-01-01T00:00Z")
            app.tasks["memory.tasks.extract"](recorded.item_id)
            assert not rows.get().messages
        if name == "dead":
            rows.update(state="dead", error=f"Of “{mark}wombattitle” no reply could be read.")
    enqueue_extraction(recorded.item_id)
    recover_extractions()


def curate(scope: UserScope) -> None:
    """What the admin's log notes."""
    client = logged_in(UserFactory(is_superuser=True))
    kept = services.get_all_facts(scope=scope)
    rows = {"action": "clear", "_selected_action": [row.pk for row in kept[:1]]}
    client.post(reverse("admin:memory_fact_changelist"), rows)
    gone = Context.objects.of(scope).first()
    assert gone is not None
    client.post(reverse("admin:memory_context_delete", args=[gone.pk]), {"post": "yes"})
    assert LogEntry.objects.count() == 2


# --- looking everywhere --------------------------------------------------------------------------


def tables_with(words: tuple[str, ...]) -> set[str]:
    """Tables in which some row holds one of the words in some column, whatever its type."""
    found = set()
    pattern = "|".join(rf"(?<!x){word}" for word in words)
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(
                f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE row::text ~* %s)', [pattern]
            )
            if cursor.fetchone()[0]:
                found.add(table)
    # encoded in their column
    sessions = json.dumps([each.get_decoded() for each in Session.objects.all()])
    return found | ({"sessions"} if any(word in sessions.lower() for word in words) else set())


def stored_in_valkey() -> Iterator[bytes]:
    """Every key and every value, of the cache and of the queues, with their messages decoded."""
    client = Redis.from_url(settings.REDIS_URL)
    readers = {
        b"string": lambda key: [client.get(key)],
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": lambda key: list(client.smembers(key)),
        b"hash": lambda key: [part for pair in client.hgetall(key).items() for part in pair],
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": lambda key: [repr(client.xrange(key)).encode()],
    }
    for key in client.scan_iter():
        yield key
        for value in readers[client.type(key)](key):
            yield value
            yield from bodies(value)


def bodies(value: bytes) -> Iterator[bytes]:
    """What a Celery message carries: base64 within JSON, and in lists of unacknowledged ones."""
    try:
        message = json.loads(value)
    except ValueError:
        return
    parts = message if isinstance(message, list) else [message]
    for part in parts:
        if isinstance(part, dict) and isinstance(part.get("body"), str):
            yield base64.b64decode(part["body"])


def valkey_holds(words: tuple[str, ...]) -> bool:
    return any(word.encode() in data.lower() for data in stored_in_valkey() for word in words)


def rows_of(scope: UserScope) -> dict[str, list[Any]]:
    """Everything there is of a user, to the last column."""
    return {
        model.__name__: list(model.objects.of(scope).order_by("pk").values_list())
        for model in (Context, Fact, ExtractionItem, Pruning)
    }


# --- the tests -----------------------------------------------------------------------------------


def test_the_search_for_words_finds_them_where_they_are(people: dict[str, UserScope]) -> None:
    """What the next test rests on."""
    assert tables_with(WORDS) == {"memory_context", "memory_fact", "memory_extractionitem"}
    assert "memory_pruning" in tables_with((ALICE,))
    assert all(len(rows) for rows in rows_of(people[ALICE]).values())
    assert any(b"memory.tasks.embed_memories" in data for data in stored_in_valkey())

    assert not valkey_holds(WORDS)
    cache.set("key", "zanzibarite")
    assert valkey_holds(WORDS)
    cache.delete("key")
    app.send_task("memory.tasks.extract", ["quokkasname"])
    assert valkey_holds(WORDS)


def test_nothing_of_an_erased_user_is_left_and_everything_of_another(
    people: dict[str, UserScope],
) -> None:
    before = rows_of(people[BOB])
    curate(people[ALICE])
    facts = Fact.objects.of(people[ALICE]).count()

    erased = services.erase_memory(scope=people[ALICE])

    assert (erased.contexts, erased.conversations, erased.prunings) == (3, 3, 1)
    assert erased.facts == facts > 3
    assert tables_with((*WORDS, ALICE)) == set()
    assert not valkey_holds((*WORDS, ALICE))
    assert rows_of(people[BOB]) == before
    # What was deleted before is noted by its number; of what was erased nothing is.
    assert [row.object_repr[:8] for row in LogEntry.objects.all()] == ["Context "]


def test_messages_that_were_sent_before_bring_nothing_back(people: dict[str, UserScope]) -> None:
    items = list(ExtractionItem.objects.of(people[ALICE]).values_list("pk", flat=True))
    rows = list(Context.objects.of(people[ALICE]).values_list("pk", flat=True))
    services.erase_memory(scope=people[ALICE])

    for item in items:
        assert app.tasks["memory.tasks.extract"](item) is False
    assert app.tasks["memory.tasks.embed_memories"](rows, []) == 0
    recover_extractions()
    assert tables_with((*WORDS, ALICE)) == set()


def test_the_api_erases_as_wholly(people: dict[str, UserScope], workspace: Workspace) -> None:
    client = logged_in(workspace.memberships.get())
    before = rows_of(people[BOB])
    address = "/api/v1/memory/"

    refused = client.delete(f"{address}?user_id={ALICE}&confirm={BOB}")
    assert refused.status_code == 400
    assert tables_with(WORDS)
    done = client.delete(f"{address}?user_id={ALICE}&confirm={ALICE}")

    assert done.status_code == 200
    assert tables_with((*WORDS, ALICE)) == set()
    assert not valkey_holds((*WORDS, ALICE))
    assert rows_of(people[BOB]) == before
