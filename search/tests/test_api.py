"""The search API: searches, similar passages, facets, orders and exports."""

import csv
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.request import Request
from rest_framework.test import APIClient, APIRequestFactory

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.api.serializers import SearchAnswerSerializer, search_answer
from search.query_options import scope_for
from search.services import search

pytestmark = pytest.mark.django_db
URL = "/api/v1/search/"
V1 = "/api/v1"


def texts(answer: Any) -> list[str]:
    return [hit["text"] for hit in answer.json()["hits"]]


def test_a_total_that_may_be_more_says_so(api: APIClient, leaflets: Collection) -> None:
    text = "The circular about bicycle parking is valid until further notice."
    sources = [text_source(f"circular-{number:03}", text) for number in range(120)]
    ingest_inline(collection=leaflets, sources=sources)

    pages = [
        api.get(URL, {"q": "bicycle parking", "k": 20, "offset": offset}).json()
        for offset in range(0, 120, 20)
    ]

    for page in pages:
        assert page["total"] == 120 or (page["is_cut"] and page["total"] < 120)
    assert (pages[-1]["total"], pages[-1]["is_cut"]) == (120, False)
    shown = [hit["chunk_id"] for page in pages for hit in page["hits"]]
    assert len(shown) == len({*shown}) == 120


def test_the_best_passage_comes_first_with_every_score_apart(
    api: APIClient, leaflet: Document
) -> None:
    answer = api.get(URL, {"q": "nausea as a side effect"})

    assert answer.status_code == 200
    best = answer.json()["hits"][0]
    chunk = Chunk.objects.get(document=leaflet, ordinal=1)
    assert best["chunk_id"] == chunk.pk
    assert best["rank"] == 1
    assert best["text"] == chunk.text
    assert (best["start"], best["end"], best["page"]) == (chunk.start, chunk.end, 4)
    assert best["location"] == "page 4"
    assert best["heading_path"] == ["Possible side effects"]
    assert best["metadata"] == {"year": 2025}
    assert best["chunk_key"] == "aripiprazole_chunk_002"
    assert (best["summary"], best["token_count"]) == ("Which side effects are common.", 9)
    assert set(best["scores"]) == {"similarity", "lexical", "graph", "fused", "rerank", "score"}
    assert best["scores"]["lexical"] > 0
    assert -1 <= best["scores"]["similarity"] <= 1
    assert best["scores"]["rerank"] is None
    assert best["scores"]["score"] == best["scores"]["fused"]
    assert best["ranks"] == {"lexical": 1, "vector": 1}
    assert best["collection"] == {"slug": "leaflets", "name": "Leaflets"}
    assert best["document"]["id"] == leaflet.pk
    assert best["document"]["key"] == leaflet.key
    assert best["document"]["title"] == "Aripiprazole"
    assert api.get(best["document"]["url"]).json()["id"] == leaflet.pk


def test_an_answer_is_what_its_serializer_describes(alice: Membership, leaflet: Document) -> None:
    scope = scope_for(user=alice.user, workspace=alice.workspace, filter="year>=2020")
    result = search("nausea", scope=scope, facets=["*"], expand="section")
    request = Request(APIRequestFactory().get(URL))
    described = SearchAnswerSerializer(result, context={"request": request}).data
    assert described["hits"]
    assert search_answer(result, request=request, explain=True) == described


def test_contributions_are_told_only_when_asked_for_and_sum_to_the_fused_score(
    api: APIClient, leaflet: Document
) -> None:
    assert "contributions" not in api.get(URL, {"q": "nausea"}).json()["hits"][0]

    explained = api.get(URL, {"q": "nausea", "explain": "true"}).json()["hits"][0]
    assert sum(explained["contributions"].values()) == pytest.approx(
        explained["scores"]["fused"], abs=1e-4
    )


def test_the_answer_says_how_it_came_about(api: APIClient, leaflet: Document) -> None:
    answer = api.get(URL, {"q": "nausea", "mode": "lexical"}).json()
    assert answer["query"] == "nausea"
    assert answer["mode"] == "lexical"
    assert [(arm["name"], arm["method"]) for arm in answer["arms"]] == [("lexical", "bm25")]
    assert answer["timings"]["total"] > 0
    assert answer["degraded"] == []
    assert answer["facets"]["collection"] == [
        {"value": "leaflets", "label": "Leaflets", "count": 1, "selected": False, "filter": ""}
    ]


def test_a_body_asks_what_a_query_string_asks(api: APIClient, leaflet: Document) -> None:
    question = {"q": "tablets for children", "mode": "lexical", "k": 1, "explain": True}
    by_address = api.get(URL, question).json()
    by_body = api.post(URL, question).json()
    assert by_body["hits"] == by_address["hits"]
    assert by_body["hits"][0]["text"].startswith("Keep the tablets")


def test_pages_follow_one_another_without_gap_or_repetition(
    api: APIClient, leaflet: Document
) -> None:
    question = {"q": "nausea tablets", "k": 1}
    first = api.get(URL, question).json()
    second = api.get(URL, {**question, "offset": first["next_offset"]}).json()
    assert first["total"] == second["total"] == 2
    assert [first["hits"][0]["rank"], second["hits"][0]["rank"]] == [1, 2]
    assert first["hits"][0]["chunk_id"] != second["hits"][0]["chunk_id"]
    assert second["next_offset"] is None


def test_collections_and_types_narrow_the_search(
    api: APIClient, alice: Membership, leaflet: Document
) -> None:
    other = DocumentFactory(collection=CollectionFactory(workspace=alice.workspace, slug="notes"))
    ChunkFactory(document=other, text="Nausea was the topic of the meeting.")

    assert len(texts(api.get(URL, {"q": "nausea", "mode": "lexical"}))) == 2
    for narrowed in (
        {"collection": "notes"},
        {"type": "text/plain"},
        {"collection": ["notes", "leaflets"], "type": ["text/plain", "text/html"]},
    ):
        answer = api.get(URL, {"q": "nausea", "mode": "lexical", **narrowed})
        assert texts(answer) == ["Nausea was the topic of the meeting."], narrowed


def test_twenty_hits_cost_as_many_queries_as_two(api: APIClient, leaflet: Document) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert api.get(URL, {"q": "nausea passages", "k": 30}).status_code == 200
        return len(captured)

    ChunkFactory(document=leaflet)  # a word that occurs nowhere costs another one
    queries()  # and so does the first search of a process
    before = queries()
    for _ in range(20):
        ChunkFactory(document=DocumentFactory(collection=leaflet.collection))
    queries()  # and the first one after a change
    assert queries() == before


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
