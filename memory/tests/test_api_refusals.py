"""What the API of memory refuses, each with the field and the cure."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from memory.models import Context, Fact
from memory.store import MAX_TEXT_BYTES
from memory.tests.clients import CONTEXTS, FACTS, MEMORY, SEARCH

pytestmark = pytest.mark.django_db
CITY = f"{FACTS}city/"
INJECT = f"{MEMORY}inject/"
LEARN = f"{MEMORY}conversations/"
TEA = {"role": "user", "content": "tea"}


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert body["detail"]
    assert not Context.objects.exists()
    assert not Fact.objects.exists()


HUGE = "x" * 1_000_000
NO_TEXT = [" \n", 7, None, "a\0b", HUGE]
#: Of each address a good body, and what each field must not be.
BODIES: list[tuple[str, str, dict[str, Any], dict[str, list[Any]]]] = [
    (
        "post",
        CONTEXTS,
        {"user_message": "tea"},
        {
            "user_message": ["", *NO_TEXT, True, "ä" * MAX_TEXT_BYTES],
            "assistant_response": [HUGE],
            "conversation": [7],
            "at": [1_700_000_000, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"],
        },
    ),
    ("post", f"{CONTEXTS}clear/", {"question": "tea"}, {"question": [7]}),
    ("put", CITY, {"value": "Basel"}, {"value": NO_TEXT}),
    ("post", SEARCH, {"q": "tea"}, {"q": [" ", 7]}),
    (
        "post",
        INJECT,
        {"messages": [TEA]},
        {
            "messages.0": [
                *(["tea"], [{"content": "tea"}], [{"role": 7, "content": "tea"}]),
                [{"role": "user", "content": ["tea"]}],
            ],
            "messages.1": [[TEA, {"role": "user", "content": 7}]],
        },
    ),
    (
        "post",
        LEARN,
        {"conversation": "c", "messages": [TEA]},
        {
            "messages.0": [[{**TEA, "at": 7}], [{**TEA, "at": "x"}]],
        },
    ),
]


@pytest.mark.parametrize(("method", "url", "good", "faults"), BODIES, ids=[b[1] for b in BODIES])
def test_bodies_that_cannot_be(
    api: APIClient, method: str, url: str, good: Any, faults: dict[str, list[Any]]
) -> None:
    for field, values in faults.items():
        for value in values:
            name = field.partition(".")[0]
            body = {**good, name: value}
            if value == " \n" and url == CONTEXTS:
                body["assistant_response"] = "\t"  # else it is a turn with an answer only
            assert_refused(getattr(api, method)(url, body), field)


def test_half_a_character_is_no_text(api: APIClient) -> None:
    answer = api.generic(
        "POST", CONTEXTS, b'{"user_message": "\\ud83d"}', content_type="application/json"
    )
    assert_refused(answer, "user_message")


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


@pytest.mark.parametrize("number", ["0", "99999999999999999999", "9" * 400])
def test_ids_of_contexts_that_cannot_be_are_not_there(api: APIClient, number: str) -> None:
    url = f"{CONTEXTS}{number}/"
    assert [api.get(url).status_code, api.delete(url).status_code] == [404, 404]
