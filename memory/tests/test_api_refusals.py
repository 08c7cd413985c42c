"""What the API of memory refuses, each with the field and the cure."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from memory.models import Context, Fact
from memory.tests.clients import CONTEXTS, FACTS, SEARCH

pytestmark = pytest.mark.django_db


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert body["detail"]
    assert not Context.objects.exists()
    assert not Fact.objects.exists()


@pytest.mark.parametrize(
    ("url", "query", "field"),
    [
        (CONTEXTS, "user_id=a%00b", "user_id"),
        (CONTEXTS, "user_id=Jos%E9", "user_id"),
        (CONTEXTS, "user_id=ada&user_id=bob", "user_id"),
        (CONTEXTS, "user_id=&user_id=ada", "user_id"),
        (CONTEXTS, "conversation=a%00b", "conversation"),
        (FACTS, "cursor=cD1hJTAwYg==", "cursor"),
        (SEARCH, "q=tea&threshold=nan", "threshold"),
        (SEARCH, "q=tea&recency=inf", "recency"),
        (SEARCH, "q=a%00b", "q"),
    ],
)
def test_addresses_that_cannot_be(api: APIClient, url: str, query: str, field: str) -> None:
    assert_refused(api.get(f"{url}?{query}"), field)
