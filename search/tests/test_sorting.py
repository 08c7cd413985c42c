"""Other orders than by relevance, and the day that a document is of."""

from typing import Any

import pytest

from common.errors import InvalidInput
from documents.models import Collection
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.query_options import site_scope
from search.results import SearchResult
from search.services import search

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection() -> Collection:
    """Papers on otters, and one that has nothing to do with them."""
    collection = CollectionFactory()
    for title, metadata in {
        "beta": {"date": "2024-05-31"},
        "Alpha": {"year": 2024},
        "gamma": {"published": "31 May 2019"},
        "delta": {"date": "2024-05", "year": 1999},
    }.items():
        document = DocumentFactory(collection=collection, title=title, metadata=metadata)
        ChunkFactory(document=document, text=f"Otters of the river, by {title}.")
    bread = DocumentFactory(collection=collection, title="Bread", metadata={"date": "2025-01-01"})
    ChunkFactory(document=bread, text="Flour, water, salt and yeast.")
    return collection


def find(collection: Collection, **options: Any) -> SearchResult:
    scope = site_scope(workspace=collection.workspace)
    return search("otters of the river", scope=scope, **options)


def titles(result: SearchResult) -> list[str]:
    return [hit.title for hit in result.hits]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("newest", ["beta", "delta", "Alpha", "gamma"]),
        ("oldest", ["gamma", "Alpha", "delta", "beta"]),
        ("title", ["Alpha", "beta", "delta", "gamma"]),
    ],
)
def test_hits_that_fit_are_sorted_and_others_left_out(
    collection: Collection, sort: Any, expected: list[str]
) -> None:
    result = find(collection, sort=sort)
    assert titles(result) == expected
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4]
    assert (result.total, result.sort) == (4, sort)
    assert any("4 best of 5 hits" in note for note in result.notes)


def test_by_relevance_nothing_is_left_out(collection: Collection) -> None:
    result = find(collection)
    assert titles(result)[-1] == "Bread"
    assert not result.notes


def test_pages_of_a_sorted_list_fit_together(collection: Collection) -> None:
    pages = [titles(find(collection, sort="newest", k=2, offset=offset)) for offset in (0, 2, 4)]
    assert pages == [["beta", "delta"], ["Alpha", "gamma"], []]


def test_a_grouped_list_is_sorted_by_documents(collection: Collection) -> None:
    document = DocumentFactory(collection=collection, title="omega", metadata={"date": "2030"})
    for number in range(3):
        ChunkFactory(document=document, text=f"Otters of the river, part {number}.")
    result = find(collection, sort="newest", group=True)
    assert titles(result) == ["omega", "beta", "delta", "Alpha", "gamma"]
    assert result.hits[0].more_in_document == 2


def test_a_document_is_dated_as_precisely_as_it_says(collection: Collection) -> None:
    brought = DocumentFactory(collection=collection, title="zeta", metadata={"date": "soon"})
    ChunkFactory(document=brought, text="Otters.")
    dated = {hit.title: hit.dated for hit in find(collection).hits}
    assert dated == {
        "beta": "2024-05-31",
        "Alpha": "2024",
        "gamma": "2019",
        "delta": "2024-05",
        "Bread": "2025-01-01",
        "zeta": brought.created_at.date().isoformat(),
    }


def test_an_order_that_there_is_not_is_refused(collection: Collection) -> None:
    with pytest.raises(InvalidInput, match="newest"):
        find(collection, sort="shortest")
