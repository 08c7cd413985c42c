"""“Did you mean”: misspelt words, and what must not be suggested."""

from typing import Any

import pytest

from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from search.query_options import scope_for, site_scope
from search.results import SearchResult
from search.services import search

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXTS = {
    "aspirin": "Aspirin eases pain and thins the blood.",
    "lighthouse": "The lighthouse keepers wrote letters about the winter storms.",
    "bread": "Bread is baked from flour, water, salt and yeast.",
}


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(default_language="en")
    sources = [text_source(key, text) for key, text in TEXTS.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


def find(collection: Collection, query: str, **options: Any) -> SearchResult:
    return search(query, scope=site_scope(workspace=collection.workspace), **options)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("aspirni", "aspirin"),
        ("Asprin for pain", "Aspirin for pain"),
        ("lighthuose keepers", "lighthouse keepers"),
        ("watr for the heart", "water for the heart"),
        ("flour watre", "flour water"),
    ],
)
def test_a_misspelt_word_is_suggested_as_the_documents_write_it(
    collection: Collection, typed: str, meant: str
) -> None:
    assert find(collection, typed, mode="lexical").suggestion == meant


@pytest.mark.parametrize(
    "query", ["aspirin", "the winter storms", "XR2000 pain", "zzzzqqqq", "blood or bread"]
)
def test_nothing_is_suggested_for_words_that_stand_there_or_are_like_none(
    collection: Collection, query: str
) -> None:
    assert find(collection, query, mode="lexical").suggestion == ""


def test_where_no_word_stands_anywhere_the_mended_ones_are_searched_for(
    collection: Collection,
) -> None:
    result = find(collection, "aspirni", mode="lexical")
    assert [hit.document_key for hit in result.hits] == ["aspirin"]
    assert [(arm.name, arm.method) for arm in result.arms] == [("lexical", "trigram")]
    assert "aspirin" in result.notes[-1]
    hybrid = find(collection, "lighthuose", mode="hybrid")
    assert hybrid.hits[0].document_key == "lighthouse"


def test_what_some_words_found_is_kept_and_the_mended_query_only_offered(
    collection: Collection,
) -> None:
    result = find(collection, "pain lighthuose", mode="lexical")
    assert [hit.document_key for hit in result.hits] == ["aspirin"]
    assert result.suggestion == "pain lighthouse"
    assert [arm.method for arm in result.arms] == ["bm25"]


def test_no_word_of_a_passage_that_one_may_not_see_is_suggested(collection: Collection) -> None:
    user = MembershipFactory(workspace=collection.workspace).user
    Chunk.objects.filter(text__startswith="Aspirin").update(access=["user:somebody-else"])
    scope = scope_for(user=user, workspace=collection.workspace)
    assert search("aspirni", scope=scope, mode="lexical").suggestion == ""
    assert search("lighthuose", scope=scope, mode="lexical").suggestion == "lighthouse"
    narrowed = scope_for(user=user, workspace=collection.workspace, filter={"document": "bread"})
    assert search("lighthuose", scope=narrowed, mode="lexical").suggestion == ""


def test_operators_of_the_query_stay(collection: Collection) -> None:
    result = find(collection, 'lighthuose -letters "winter storms"', mode="lexical")
    assert result.suggestion == 'lighthouse -letters "winter storms"'
