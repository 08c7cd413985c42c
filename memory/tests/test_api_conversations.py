"""The API of the queue that facts are learnt from."""

from typing import Any

import pytest
from django.test import override_settings
from rest_framework.test import APIClient

from accounts.models import Membership
from memory.models import ExtractionItem
from memory.tests.clients import MEMORY

pytestmark = pytest.mark.django_db
CONVERSATIONS = f"{MEMORY}conversations/"


def send(api: APIClient, *said: str, conversation: str = "monday", **given: Any) -> Any:
    messages = [{"role": "system", "content": "Be kind."}]
    for text in said:
        messages += [
            {"role": "user", "content": text, **given},
            {"role": "assistant", "content": "I live in Rome."},
        ]
    return api.post(CONVERSATIONS, {"conversation": conversation, "messages": messages})


def give_up(error: str) -> ExtractionItem:
    """What a worker does after its last attempt."""
    ExtractionItem.objects.update(state=ExtractionItem.State.DEAD, attempts=5, error=error)
    return ExtractionItem.objects.get()


def test_what_the_user_said_waits_to_be_read(api: APIClient, alice: Membership) -> None:
    answer = send(api, "I moved to Berlin.", "Call me Ada.")

    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["user_id"], shown["new"]) == (f"user:{alice.user.pk}", 2)
    conversation = shown["conversation"]
    assert (conversation["conversation"], conversation["state"]) == ("monday", "waiting")
    assert (conversation["waiting"], conversation["attempts"], conversation["error"]) == (2, 0, "")
    row = ExtractionItem.objects.get()
    assert row.user_id == f"user:{alice.user.pk}"
    assert [message["content"] for message in row.messages] == [
        "I moved to Berlin.",
        "Call me Ada.",
    ]


def test_a_message_may_say_when_it_was_said(api: APIClient) -> None:
    send(api, "I moved to Berlin.", at="2026-01-01T10:00:00+02:00")
    assert ExtractionItem.objects.get().messages[0]["at"] == "2026-01-01T08:00:00+00:00"


def test_conversations_are_listed_newest_first_and_by_state(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.", conversation="monday")
    give_up("The model's reply was no JSON.")
    send(api, "I like tea.", "I like cake.", conversation="tuesday")

    def names(**parameters: str) -> list[str]:
        rows = api.get(CONVERSATIONS, parameters).json()["results"]
        return [row["conversation"] for row in rows]

    assert names() == ["tuesday", "monday"]
    assert names(state="dead") == ["monday"]
    assert names(state="waiting") == ["tuesday"]
    dead = api.get(CONVERSATIONS, {"state": "dead"}).json()["results"][0]
    assert (dead["attempts"], dead["error"]) == (5, "The model's reply was no JSON.")
    assert "messages" not in dead


def test_one_that_was_given_up_is_tried_again(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.")
    url = f"{CONVERSATIONS}{give_up('No JSON.').pk}/retry/"

    answer = api.post(url)

    assert answer.status_code == 200
    conversation = answer.json()["conversation"]
    assert (conversation["state"], conversation["attempts"]) == ("waiting", 0)
    again = api.post(url)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


@override_settings(MEMORY_EXTRACTION_QUEUE_LIMIT=2)
def test_a_full_queue_says_when_to_come_again(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.")

    refused = send(api, "I like tea.", conversation="tuesday")

    assert (refused.status_code, refused.json()["code"]) == (429, "extraction_queue_full")
    assert int(refused.headers["Retry-After"]) > 0
    assert ExtractionItem.objects.count() == 1
