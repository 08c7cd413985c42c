"""The API that puts what is remembered before a chat model."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.tests.factories import MembershipFactory
from memory.tests.clients import MEMORY, archive, put_fact
from tests.kit import client_of

pytestmark = pytest.mark.django_db
SYSTEM = {"role": "system", "content": "Be kind."}
QUESTION = {"role": "user", "content": "Which instrument does my sister Clara play?"}


@pytest.fixture
def client() -> APIClient:
    client = client_of(MembershipFactory())
    said = "My sister Clara plays an instrument, the cello."
    archive(client, said, "How lovely!", at="2023-05-08T10:00:00Z")
    put_fact(client, "sister", "Clara")
    return client


def inject(client: APIClient, *messages: Any, **given: Any) -> Any:
    answer = client.post(f"{MEMORY}inject/", {"messages": messages, **given})
    assert answer.status_code == 200
    return answer.json()


def test_the_last_question_gets_what_is_remembered_behind_it(client: APIClient) -> None:
    shown = inject(client, SYSTEM, QUESTION)

    system, question = shown["messages"]
    assert system == SYSTEM
    assert question["content"].startswith(QUESTION["content"] + "\n\n[memory ")
    assert "cello" in question["content"]
    assert shown["facts"] == [{"key": "sister", "value": "Clara"}]
    assert shown["context"] == [
        {
            "said_on": "2023-05-08",
            "user_message": "My sister Clara plays an instrument, the cello.",
            "assistant_response": "How lovely!",
        }
    ]
    assert shown["tokens"] > 0
    assert shown["degraded"] == []


def test_whatever_else_a_message_holds_comes_back_as_it_was(client: APIClient) -> None:
    strange = [
        {"role": "tool", "content": None, "tool_call_id": "x", "more": {"a": [1, 2.5, None]}},
        {"role": "assistant", "tool_calls": [{"id": "x"}]},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]},
        {"role": "", "content": "  \n"},
    ]
    assert inject(client, *strange, QUESTION)["messages"][:-1] == strange
