"""Over the API: what is alike, what to narrow by, other orders, and hits as a file."""

import csv
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Chunk, Collection, Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
)

pytestmark = pytest.mark.django_db
V1 = "/api/v1"


@pytest.fixture
def collection(alice: Membership) -> Collection:
    collection = CollectionFactory(workspace=alice.workspace, slug="notes", name="Notes")
    for number, author in enumerate(["Ann", "Ann", "Bob Čapek"]):
        document = DocumentFactory(
            collection=collection, key=f"a/{number}.txt", metadata={"date": f"202{number}"}
        )
        ChunkFactory(
            document=document,
            text=f"The otter swims in the cold river, part {number}.",
            metadata={"author": author, "tags": ["x", number], "more": {"year": 2020, "ok": True}},
        )
    return collection


def get(api: APIClient, path: str, **parameters: Any) -> Any:
    answer = api.get(f"{V1}/{path}/", parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_hits_are_sorted_and_tell_their_date(api: APIClient, collection: Collection) -> None:
    answer = get(api, "search", q="otter in the river", sort="newest")
    assert (answer["sort"], answer["can_rerank"]) == ("newest", False)
    assert [hit["document"]["dated"] for hit in answer["hits"]] == ["2022", "2021", "2020"]


def test_facets_stay_beside_what_was_picked(api: APIClient, collection: Collection) -> None:
    body = {"q": "otter", "filter": {"author": "Ann"}, "facet": ["author", "dated"]}
    answer = api.post(f"{V1}/search/", body, format="json").json()
    assert answer["facets"]["author"] == [
        {"value": "Ann", "label": "Ann", "count": 2, "selected": True, "filter": "author=Ann"},
        {
            "value": "Bob Čapek",
            "label": "Bob Čapek",
            "count": 1,
            "selected": False,
            "filter": 'author="Bob Čapek"',
        },
    ]
    assert [each["value"] for each in answer["facets"]["dated"]] == ["2021", "2020"]


def test_values_are_found_while_one_types(api: APIClient, collection: Collection) -> None:
    answer = get(api, "facets", facet="author", prefix="cap", q="otter")
    assert [(each["value"], each["count"]) for each in answer["values"]] == [("Bob Čapek", 1)]
    assert get(api, "facets", facet="no.such")["values"] == []


def test_the_fields_that_there_are_come_with_conditions_that_hold(
    api: APIClient, collection: Collection
) -> None:
    fields = {each["name"]: each for each in get(api, "filters")["filters"]}
    assert fields["dated"]["kinds"] == ["time"]
    assert fields["author"]["values"] == ["Ann", "Bob Čapek"]
    assert (fields["tags"]["is_list"], fields["tags"]["kinds"]) == (True, ["number", "text"])
    assert fields["more.ok"]["examples"] == ["more.ok"]
    assert fields["more.year"]["share"] == 1
    for field in fields.values():
        for example in field["examples"]:
            found = api.get(f"{V1}/search/", {"q": "otter", "filter": example})
            assert found.status_code == 200, example
            if field["values"]:
                assert found.json()["total"] > 0, example


def test_what_is_alike_is_of_the_document_that_is_named(
    api: APIClient, collection: Collection
) -> None:
    document = Document.objects.get(key="a/0.txt")
    chunk = Chunk.objects.get(document=document)
    for path in (f"documents/{document.pk}/similar", f"chunks/{chunk.pk}/similar"):
        hits = get(api, path)["hits"]
        assert {hit["document"]["key"] for hit in hits} == {"a/1.txt", "a/2.txt"}
        assert hits[0]["relevance"] == 1
        narrowed = get(api, path, k=1, filter="author=Ann")["hits"]
        assert [hit["document"]["key"] for hit in narrowed] == ["a/1.txt"]


def test_hits_are_taken_along(api: APIClient, collection: Collection) -> None:
    answer = api.get(
        f"{V1}/search/export/",
        {"q": "otter in the river", "sort": "oldest", "filter": "author=Ann"},
        headers={"accept": "text/csv"},
    )
    assert answer["content-type"] == "text/csv; charset=utf-8"
    assert "search.csv" in answer["content-disposition"]
    text = b"".join(answer.streaming_content).decode("utf-8-sig")
    rows = list(csv.DictReader(StringIO(text)))
    assert [row["document_key"] for row in rows] == ["a/0.txt", "a/1.txt"]
    read = api.get(rows[0]["link"])
    assert (read.status_code, read.json()["key"]) == (200, "a/0.txt")


def test_a_collections_facets_are_chosen_over_the_api(
    api: APIClient, collection: Collection
) -> None:
    address = f"{V1}/collections/notes/"
    changed = api.patch(address, {"facets": ["more.year", "author", "author"]}, format="json")
    assert changed.json()["facets"] == ["more.year", "author"]
    facets = get(api, "search", q="otter", facet="*")["facets"]
    assert list(facets)[5:] == ["more.year", "author"]
    refused = api.patch(address, {"facets": ["a..b"]}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "facets")


def test_the_command_sorts_counts_and_writes_tables(collection: Collection, capsys: Any) -> None:
    asked = ["search", "otter in the river", "--workspace", collection.workspace.slug]
    call_command(*asked, "--sort", "newest", "--facet", "author")
    shown = capsys.readouterr().out
    assert "author: Ann 2, Bob Čapek 1" in shown
    call_command(*asked, "--csv", "--sort", "oldest")
    rows = list(csv.DictReader(StringIO(capsys.readouterr().out.removeprefix("\ufeff"))))
    assert [row["dated"] for row in rows] == ["2020", "2021", "2022"]
    with pytest.raises(CommandError, match="is not a facet"):
        call_command(*asked, "--facet", "title")
