"""What waits to be read, what is stored, and how it is taken along or erased."""

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Membership
from documents.tests.views.reading import parse, words
from memory import services
from memory.models import ExtractionItem, Fact, Pruning
from memory.scopes import UserScope
from memory.tests.views.reading import body, shown

pytestmark = pytest.mark.django_db


def test_a_conversation_that_was_given_up_is_seen_on_every_page(
    client: Client, alice: Membership, scope: UserScope, home: Fact
) -> None:
    for key, state in [("a", "dead"), ("b", "waiting"), ("c", "idle")]:
        ExtractionItem.objects.create(
            workspace=alice.workspace, user_id=scope.user_id, key=key, state=state,
            error="The model’s reply was no JSON." if state == "dead" else "",
        )  # fmt: skip
    assert "1 failed" in shown(client.get("/memory/"))
    page = parse(client.get("/memory/reading/"))
    rows = [words(row) for row in page.iterfind(".//li[@class='turn']")]
    assert len(rows) == 2
    assert rows[0].startswith("a Given up 0 messages waiting")
    assert "The model’s reply was no JSON." in rows[0]
    assert rows[1].startswith("b Waiting")


def test_a_conversation_that_was_given_up_is_read_again(
    client: Client, bob: Client, alice: Membership, scope: UserScope
) -> None:
    waiting = [{"content": "I live in <b>Rome</b>.", "at": timezone.now().isoformat()}]
    item = ExtractionItem.objects.create(
        workspace=alice.workspace, user_id=scope.user_id, key="chat", state="dead",
        attempts=5, error="No JSON.", messages=waiting,
    )  # fmt: skip
    page = parse(client.get("/memory/reading/"))
    assert "I live in <b>Rome</b>." in words(page.find(".//li[@class='turn']"))
    path = page.find(".//button[@form='retrying']").get("formaction")

    assert bob.post(path).status_code == 404
    item.refresh_from_db()
    assert item.state == "dead"
    assert "“chat” is in the queue again" in shown(client.post(path, follow=True))
    item.refresh_from_db()
    assert (item.state, item.attempts, item.messages) == ("waiting", 0, waiting)
    assert "has not failed for good" in shown(client.post(path, follow=True))


def test_storage_tells_the_quota_and_what_was_pruned(
    client: Client, alice: Membership, scope: UserScope, home: Fact, settings: Any
) -> None:
    settings.MEMORY_USER_ROWS = 500
    Pruning.objects.create(
        workspace=alice.workspace, user_id=scope.user_id, reason="user", rows=12, bytes=2048,
        until=timezone.now(),
    )  # fmt: skip
    page = shown(client.get("/memory/storage/"))

    assert "Turns of conversations 1 of 500" in page
    assert "Facts, former values included 2 of 10,000" in page
    assert "12 turns, 2.0 KB" in page


def test_the_export_is_a_file_of_everything(client: Client, home: Fact) -> None:
    answer = client.get("/memory/storage/export/")
    lines = [json.loads(line) for line in body(answer).splitlines()]

    assert re.fullmatch(
        r'attachment; filename="memory-[\d-]+\.jsonl"', answer["Content-Disposition"]
    )
    assert answer["Content-Type"] == "application/x-ndjson"
    assert [line["kind"] for line in lines] == ["memory", "fact", "fact", "context"]


def test_everything_is_erased_only_when_the_word_is_typed(
    client: Client, alice: Membership, home: Fact
) -> None:
    other = UserScope(alice.workspace.pk, "ana")
    services.set_fact(scope=other, key="plan", value="enterprise")
    path = "/memory/storage/erase/"
    assert "2 facts, former values included" in shown(client.get(path))
    for data in ({}, {"word": "ERASED"}, {"word": ""}):
        assert client.post(path, data).status_code == 400
    assert Fact.objects.count() == 3

    told = shown(client.post(path, {"word": " Erase "}, follow=True))
    assert "Facts: 2; turns: 1" in told
    assert "The memory is empty" in told
    assert [fact.value for fact in Fact.objects.all()] == ["enterprise"]
