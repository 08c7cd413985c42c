"""What the API of memory refuses, each with the field and the cure."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.tests.factories import MembershipFactory
from memory.models import Context, Fact
from memory.store import MAX_TEXT_BYTES
from memory.tests.clients import CONTEXTS, FACTS, MEMORY, SEARCH, client_of

pytestmark = pytest.mark.django_db
CITY = f"{FACTS}city/"
CLEAR = f"{CONTEXTS}clear/"
INJECT = f"{MEMORY}inject/"
LEARN = f"{MEMORY}conversations/"
TEA = {"role": "user", "content": "tea"}


@pytest.fixture
def client() -> APIClient:
    return client_of(MembershipFactory())


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert body["detail"]
    assert not Context.objects.exists()
    assert not Fact.objects.exists()


@pytest.mark.parametrize(
    ("method", "url", "body", "field"),
    [
        ("post", CONTEXTS, {}, "user_message"),
        ("post", CONTEXTS, {"user_message": ""}, "user_message"),
        ("post", CONTEXTS, {"user_message": " \n", "assistant_response": "\t"}, "user_message"),
        ("post", CONTEXTS, {"user_message": 7}, "user_message"),
        ("post", CONTEXTS, {"user_message": True}, "user_message"),
        ("post", CONTEXTS, {"user_message": None}, "user_message"),
        ("post", CONTEXTS, {"user_message": ["tea"]}, "user_message"),
        ("post", CONTEXTS, {"user_message": {"text": "tea"}}, "user_message"),
        ("post", CONTEXTS, {"user_message": "a\0b"}, "user_message"),
        ("post", CONTEXTS, {"user_message": "x" * 1_000_000}, "user_message"),
        ("post", CONTEXTS, {"user_message": "ä" * MAX_TEXT_BYTES}, "user_message"),
        (
            "post",
            CONTEXTS,
            {"user_message": "tea", "assistant_response": "x" * 1_000_000},
            "assistant_response",
        ),
        ("post", CONTEXTS, {"user_message": "tea", "conversation": "x" * 256}, "conversation"),
        ("post", CONTEXTS, {"user_message": "tea", "conversation": 7}, "conversation"),
        ("post", CONTEXTS, {"user_message": "tea", "at": "yesterday"}, "at"),
        ("post", CONTEXTS, {"user_message": "tea", "at": 1_700_000_000}, "at"),
        ("post", CONTEXTS, {"user_message": "tea", "at": "0001-01-01T00:00:00+14:00"}, "at"),
        ("post", CONTEXTS, {"user_message": "tea", "at": "9999-12-31T23:59:59-12:00"}, "at"),
        ("post", CONTEXTS, {"user_message": "tea", "user_id": "ada"}, "user_id"),
        ("post", CONTEXTS, {"user_message": "tea", "origin": "model"}, "origin"),
        ("post", CLEAR, {}, "question"),
        ("post", CLEAR, {"question": ""}, "question"),
        ("post", CLEAR, {"question": 7}, "question"),
        ("put", CITY, {}, "value"),
        ("put", CITY, {"value": ""}, "value"),
        ("put", CITY, {"value": "  "}, "value"),
        ("put", CITY, {"value": 7}, "value"),
        ("put", CITY, {"value": None}, "value"),
        ("put", CITY, {"value": "a\0b"}, "value"),
        ("put", CITY, {"value": "x" * 1_000_000}, "value"),
        ("put", CITY, {"value": "Basel", "at": "soon"}, "at"),
        ("put", CITY, {"value": "Basel", "key": "town"}, "key"),
        ("post", SEARCH, {}, "query"),
        ("post", SEARCH, {"query": " "}, "query"),
        ("post", SEARCH, {"query": 7}, "query"),
        ("post", SEARCH, {"query": "x" * 4001}, "query"),
        ("post", SEARCH, {"query": "tea", "max_results": 0}, "max_results"),
        ("post", SEARCH, {"query": "tea", "max_results": 101}, "max_results"),
        ("post", SEARCH, {"query": "tea", "threshold": 1.1}, "threshold"),
        ("post", SEARCH, {"query": "tea", "threshold": "high"}, "threshold"),
        ("post", SEARCH, {"query": "tea", "recency": -1}, "recency"),
        ("post", SEARCH, {"query": "tea", "mode": "magic"}, "mode"),
        ("post", INJECT, {}, "messages"),
        ("post", INJECT, {"messages": []}, "messages"),
        ("post", INJECT, {"messages": "tea"}, "messages"),
        ("post", INJECT, {"messages": ["tea"]}, "messages.0"),
        ("post", INJECT, {"messages": [{"content": "tea"}]}, "messages.0"),
        ("post", INJECT, {"messages": [{"role": 7, "content": "tea"}]}, "messages.0"),
        ("post", INJECT, {"messages": [TEA, {"role": "user", "content": 7}]}, "messages.1"),
        ("post", INJECT, {"messages": [{"role": "user", "content": ["tea"]}]}, "messages.0"),
        ("post", INJECT, {"messages": [TEA], "max_tokens": -1}, "max_tokens"),
        ("post", INJECT, {"messages": [TEA], "max_context": 21}, "max_context"),
        ("post", INJECT, {"messages": [TEA], "threshold": 2}, "threshold"),
        ("post", LEARN, {"messages": [TEA]}, "conversation"),
        ("post", LEARN, {"conversation": "", "messages": [TEA]}, "conversation"),
        ("post", LEARN, {"conversation": "x" * 256, "messages": [TEA]}, "conversation"),
        ("post", LEARN, {"conversation": "c", "messages": []}, "messages"),
        ("post", LEARN, {"conversation": "c", "messages": [{**TEA, "at": 7}]}, "messages.0"),
        ("post", LEARN, {"conversation": "c", "messages": [{**TEA, "at": "x"}]}, "messages.0"),
        ("post", LEARN, {"conversation": "c", "messages": [TEA], "at": "x"}, "at"),
        ("post", SEARCH, {"query": "tea", "now": "2026-01-01T00:00:00Z"}, "now"),
    ],
)
def test_bodies_that_cannot_be(
    client: APIClient, method: str, url: str, body: Any, field: str
) -> None:
    assert_refused(getattr(client, method)(url, body), field)


def test_half_a_character_is_no_text(client: APIClient) -> None:
    answer = client.generic(
        "POST", CONTEXTS, b'{"user_message": "\\ud83d"}', content_type="application/json"
    )
    assert_refused(answer, "user_message")


@pytest.mark.parametrize(
    ("url", "query", "field"),
    [
        (CONTEXTS, "user_id=" + "x" * 256, "user_id"),
        (CONTEXTS, "user_id=a%00b", "user_id"),
        (CONTEXTS, "user_id=Jos%E9", "user_id"),
        (CONTEXTS, "user_id=ada&user_id=bob", "user_id"),
        (CONTEXTS, "user_id=&user_id=ada", "user_id"),
        (CONTEXTS, "userid=ada", "userid"),
        (CONTEXTS, "conversation=a%00b", "conversation"),
        (CONTEXTS, "page_size=0", "page_size"),
        (FACTS, "as_of=then", "as_of"),
        (FACTS, "cursor=cD1hJTAwYg==", "cursor"),
        (CITY, "as_of=2026-13-01", "as_of"),
        (SEARCH, "query=tea&threshold=nan", "threshold"),
        (SEARCH, "query=tea&recency=inf", "recency"),
        (SEARCH, "query=a%00b", "query"),
        (LEARN, "state=lost", "state"),
    ],
)
def test_addresses_that_cannot_be(client: APIClient, url: str, query: str, field: str) -> None:
    assert_refused(client.get(f"{url}?{query}"), field)


@pytest.mark.parametrize("number", ["0", "99999999999999999999", "9" * 400])
def test_ids_of_contexts_that_cannot_be_are_not_there(client: APIClient, number: str) -> None:
    url = f"{CONTEXTS}{number}/"
    assert [client.get(url).status_code, client.delete(url).status_code] == [404, 404]
