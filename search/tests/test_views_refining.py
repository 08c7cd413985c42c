"""The search page: suggestions, facets of metadata, and how an answer came about."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from search.models import SearchLog
from search.tests.test_views import link, page, titles

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def notes(alice: Membership) -> Collection:
    """Six notes on otters: two years, three kinds."""
    collection = CollectionFactory(workspace=alice.workspace, slug="notes", default_language="en")
    sources = [
        text_source(
            f"note-{n}",
            f"Otters by the lighthouse, note {n}.",
            title=f"Note {n}",
            metadata={"year": 2020 + n % 2, "kind": ["map", "log", "map"][n % 3]},
        )
        for n in range(6)
    ]
    ingest_inline(collection=collection, sources=sources)
    return collection


def text(client: Client, **params: Any) -> str:
    return " ".join(page(client, **params).text_content().split())


def test_a_misspelt_word_is_offered_mended(client: Client, notes: Collection) -> None:
    tree = page(client, q="otters lighthuose", mode="lexical", collection="notes")
    assert link(tree, "otters lighthouse") == {
        "q": ["otters lighthouse"],
        "mode": ["lexical"],
        "collection": ["notes"],
    }


def test_where_nothing_stood_the_mended_words_were_searched_for(
    client: Client, notes: Collection
) -> None:
    shown = text(client, q="lighthuose", mode="lexical")
    assert "This was searched for: lighthouse" in shown
    assert "Did you mean" not in shown
    assert "6 documents" in shown


def test_a_value_of_the_metadata_narrows_and_is_taken_back(
    client: Client, notes: Collection
) -> None:
    tree = page(client, q="otters", filter="note~otter | kind=map")
    narrower = link(tree, "2021")
    assert narrower["filter"] == ["note~otter | kind=map; dated=2021"]
    narrowed = page(client, q="otters", filter=narrower["filter"][0])
    assert sorted(titles(narrowed)) == ["Note 3", "Note 5"]
    assert link(narrowed, "Date 2021")["filter"] == ["note~otter | kind=map"]


def test_explaining_says_what_each_arm_did_and_where_the_time_went(
    client: Client, notes: Collection
) -> None:
    plain = text(client, q="otters")
    explained = text(client, q="otters", explain="1")
    assert "Words: BM25, 6 listed, weight 0." not in plain
    assert "Words: BM25, 6 listed, weight 0." in explained
    assert "Meaning: every vector compared, 6 listed, weight 0." in explained
    assert "Letters in common" in explained
    assert "Like the best" in explained


def test_a_search_is_noted_and_its_second_page_is_not(client: Client, notes: Collection) -> None:
    page(client, q="otters", group="0")
    page(client, q="otters", group="0", page="2")
    assert list(SearchLog.objects.values_list("query", "source", "total")) == [("otters", "web", 6)]


def test_reranked_hits_say_how_they_moved(client: Client, notes: Collection, settings: Any) -> None:
    backend = {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": backend}}
    shown = text(client, q="otters", explain="1")
    assert "Read again: 6 by default" in shown
    assert "Read again1.000" in shown.replace(" 1.000", "1.000")
    settings.INFERENCE = {
        **settings.INFERENCE,
        "reranker": {"default": {"BACKEND": "nowhere.Reranker"}},
    }
    assert "Not reranked." in text(client, q="otters")


def test_the_address_says_how_hits_are_joined_and_what_it_does_not_know(
    client: Client, notes: Collection
) -> None:
    shown = text(client, q="otters", fusion="rrf", explain="1", alfa="1")
    assert "Fusion: reciprocal ranks (RRF)" in shown
    assert "Unknown parameter in the address, ignored: alfa." in shown
    tree = page(client, q="otters", fusion="rrf")
    assert link(tree, "Words")["fusion"] == ["rrf"]
    for wrong in ({"fusion": "magic"}, {"rerank": "maybe"}, {"rerank": "true"}):
        answer = client.get("/", {"q": "otters", **wrong})
        assert answer.status_code == 400, wrong
