"""Everything that is remembered of a user, by the API: weighed, taken along, erased."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from memory.models import Context
from memory.tests.clients import FACTS, MEMORY, archive, put_fact
from memory.tests.factories import make_scope, remember

pytestmark = pytest.mark.django_db
USAGE = f"{MEMORY}usage/"
EXPORT = f"{MEMORY}export/"


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
