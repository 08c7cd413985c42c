"""The API of facts, and of everything remembered of a user: exported, erased."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.test import override_settings
from rest_framework.test import APIClient

from accounts.models import Membership
from memory.models import Context, Fact
from memory.tests.clients import FACTS, MEMORY, archive, put_fact
from memory.tests.factories import make_scope, remember

pytestmark = pytest.mark.django_db
USAGE = f"{MEMORY}usage/"
EXPORT = f"{MEMORY}export/"


def test_a_fact_is_set_and_read(api: APIClient, alice: Membership) -> None:
    put = put_fact(api, "city", "Basel")

    assert put.status_code == 200
    assert (put.json()["changed"], put.json()["superseded"]) == (True, None)
    assert put.json()["user_id"] == f"user:{alice.user.pk}"
    fact = api.get(f"{FACTS}city/").json()["fact"]
    assert fact == put.json()["fact"]
    assert (fact["key"], fact["value"], fact["is_current"]) == ("city", "Basel", True)
    assert (fact["valid_to"], fact["origin"], fact["source"]) == (None, "given", None)


def test_another_value_supersedes_and_as_of_answers_the_past(api: APIClient) -> None:
    put_fact(api, "city", "Basel", at="2024-02-01T00:00:00Z")
    moved = put_fact(api, "city", "Berlin", at="2026-05-01T00:00:00Z").json()

    assert moved["superseded"]["value"] == "Basel"
    assert moved["superseded"]["valid_to"] == moved["fact"]["valid_from"] == "2026-05-01T00:00:00Z"
    assert api.get(f"{FACTS}city/").json()["fact"]["value"] == "Berlin"
    then = {"as_of": "2025-01-01T00:00:00Z"}
    assert api.get(f"{FACTS}city/", then).json()["fact"]["value"] == "Basel"
    assert [fact["value"] for fact in api.get(FACTS, then).json()["results"]] == ["Basel"]
    assert api.get(f"{FACTS}city/", {"as_of": "2020-01-01T00:00:00Z"}).status_code == 404


def test_what_is_not_known_is_not_found_under_its_plain_key(api: APIClient) -> None:
    answer = api.get(f"{FACTS}favouriteColor/")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "Fact not found: favourite_color"


def test_all_facts_are_listed_by_key_in_pages(api: APIClient) -> None:
    keys = ["zebra", "apple", "größe", "日本語", "a" * 200, "日" * 200, "本" * 200]
    for key in keys:
        put_fact(api, quote(key), "x")

    url, found = f"{FACTS}?page_size=2", []
    while url:
        page = api.get(url).json()
        found += [fact["key"] for fact in page["results"]]
        url = page["next"]

    assert sorted(found) == sorted(keys)
    assert found == [fact["key"] for fact in api.get(FACTS).json()["results"]]


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("favouriteColor", "favourite_color"),
        ("Favourite%20Color", "favourite_color"),
        ("favourite-color", "favourite_color"),
        ("a/b", "a_b"),
        ("a%2Fb", "a_b"),
        ("a%2F..%2Fb", "a_b"),
        ("100%25", "100"),
        ("%E6%97%A5%E6%9C%AC%E8%AA%9E", "日本語"),
        ("gro%C3%9F%3Fa%3Db%23c", "groß_a_b_c"),
        ("x%09y%00z", "x_y_z"),
        ("history", "history"),
        ("clear", "clear"),
    ],
)
def test_a_key_is_one_however_it_stands_in_the_address(
    api: APIClient, written: str, key: str
) -> None:
    assert put_fact(api, written, "x").json()["fact"]["key"] == key
    assert api.get(f"{FACTS}{quote(key)}/").json()["fact"]["value"] == "x"
    assert api.delete(f"{FACTS}{written}/").json()["removed"] == 1


def test_no_address_is_answered_in_anything_but_json(api: APIClient) -> None:
    for written in ("a%0Ab/", "", "/", "city"):
        answer = api.get(f"{FACTS}{written}")
        assert answer.headers["Content-Type"] == "application/json", written


def test_a_fact_that_ends_stays_in_the_history(api: APIClient) -> None:
    put_fact(api, "city", "Basel", at="2024-02-01T00:00:00Z")
    put_fact(api, "city", "Berlin", at="2025-02-01T00:00:00Z")

    assert api.post(f"{FACTS}city/clear/").json()["cleared"] is True
    assert api.post(f"{FACTS}city/clear/").json()["cleared"] is False
    assert api.get(f"{FACTS}city/").status_code == 404
    assert api.get(FACTS).json()["results"] == []
    history = api.get(f"{FACTS}city/history/").json()["results"]
    assert [(fact["value"], fact["is_current"], fact["state"]) for fact in history] == [
        ("Berlin", False, "ended"),
        ("Basel", False, "superseded"),
    ]


def test_a_fact_that_is_forgotten_leaves_no_history(api: APIClient) -> None:
    put_fact(api, "city", "Basel", at="2024-02-01T00:00:00Z")
    put_fact(api, "city", "Berlin")
    put_fact(api, "name", "Alice")

    assert api.delete(f"{FACTS}city/").json()["removed"] == 2
    assert api.delete(f"{FACTS}city/").json()["removed"] == 0
    assert api.get(f"{FACTS}city/history/").json()["results"] == []
    assert Fact.objects.get().key == "name"


def test_history_comes_in_pages(api: APIClient) -> None:
    for year in range(2020, 2025):
        put_fact(api, "city", f"{year}", at=f"{year}-01-01T00:00:00Z")

    url, found = f"{FACTS}city/history/?page_size=2", []
    while url:
        page = api.get(url).json()
        found += [fact["value"] for fact in page["results"]]
        url = page["next"]

    assert found == ["2024", "2023", "2022", "2021", "2020"]


@override_settings(MEMORY_MAX_FACTS=2)
def test_a_used_up_quota_is_told_as_such(api: APIClient) -> None:
    put_fact(api, "one", "x")
    put_fact(api, "two", "x")

    refused = put_fact(api, "three", "x")

    assert (refused.status_code, refused.json()["code"]) == (409, "quota_used_up")
    assert put_fact(api, "two", "x").status_code == 200
    api.delete(f"{FACTS}one/")
    assert put_fact(api, "three", "x").status_code == 200


def exported(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_usage_counts_what_is_kept_and_says_of_how_much(api: APIClient) -> None:
    archive(api, "tea", "ok")
    put_fact(api, "city", "Basel")
    put_fact(api, "city", "Berlin")

    shown = api.get(USAGE).json()

    assert (shown["rows"], shown["bytes"], shown["facts"]) == (1, 5, 2)
    assert shown["max_rows"] > shown["rows"]
    assert shown["max_facts"] > shown["facts"]
    assert shown["prunings"] == []


def test_the_export_is_a_file_with_every_row_and_no_one_elses(
    api: APIClient, alice: Membership
) -> None:
    archive(api, "tea\u2028and\ncake", "ok")
    put_fact(api, "city", "Basel")
    put_fact(api, "city", "Berlin")
    remember(make_scope("ada", workspace=alice.workspace), "coffee")

    answer = api.get(EXPORT, headers={"accept": "application/x-ndjson"})

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="memory-')
    assert answer.headers["Cache-Control"] == "no-store"
    header, *rows = exported(answer)
    assert header["user_id"] == f"user:{alice.user.pk}"
    assert [row["value"] for row in rows if row["kind"] == "fact"] == ["Basel", "Berlin"]
    contexts = [row["user_message"] for row in rows if row["kind"] == "context"]
    assert contexts == ["tea\u2028and\ncake"]


def test_faults_of_an_export_are_json(api: APIClient) -> None:
    answer = api.get(EXPORT, {"user": "ada"}, headers={"accept": "application/x-ndjson"})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown")


@pytest.mark.parametrize(
    "address",
    ["", "?confirm=", "?confirm=yes", "?confirm=ada", "?user_id=ada", "?user_id=ada&confirm=Ada"],
)
def test_nothing_is_erased_unless_the_user_is_named_again(api: APIClient, address: str) -> None:
    archive(api, "tea")
    archive(api, "coffee", address="?user_id=ada")

    answer = api.delete(f"{MEMORY}{address}")

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == "confirm"
    assert "confirm" in answer.json()["detail"]
    assert Context.objects.count() == 2


def test_a_fact_key_that_leads_out_of_the_facts_erases_nothing(api: APIClient) -> None:
    """What a client makes of `facts/../` is the address of everything."""
    archive(api, "tea")
    assert api.delete(MEMORY).status_code == 400
    assert api.delete(f"{FACTS}..%2F/").status_code == 400
    assert Context.objects.count() == 1
