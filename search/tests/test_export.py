"""Lists of hits to take along: complete, in order, and harmless to spreadsheets."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from common.errors import InvalidInput
from documents.models import Collection
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.export import BATCH_SIZE, export_hits
from search.query_options import SearchQuery, site_scope
from search.services import search

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(slug="notes")
    for title, text in {
        '=HYPERLINK("http://evil.example","otter")': "+otter",
        "Plain, with “signs”": "An otter;\nof two lines.",
        "@sum": "- the otter in a list",
    }.items():
        document = DocumentFactory(collection=collection, title=title, metadata={"n": 1})
        ChunkFactory(document=document, text=text, metadata={"year": 2024})
    return collection


def exported(collection: Collection, kind: str = "csv", **asked: Any) -> str:
    return b"".join(pieces(collection, kind, **asked)).decode()


def pieces(collection: Collection, kind: str = "json", **asked: Any) -> Iterator[bytes]:
    return export_hits(
        SearchQuery(q="otter", expand="none", **asked),
        scope=site_scope(workspace=collection.workspace),
        kind=kind,
        link=lambda hit: f"https://site.example/{hit.document_id}",
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text.removeprefix("\ufeff"))))


def test_csv_has_a_line_a_hit_in_their_order(collection: Collection) -> None:
    text = exported(collection)
    assert text.startswith("\ufeffrank,title,")
    hits = search("otter", scope=site_scope(workspace=collection.workspace)).hits
    assert [int(row["chunk_id"]) for row in rows(text)] == [hit.chunk_id for hit in hits]
    plain = next(row for row in rows(text) if row["title"].startswith("Plain"))
    assert plain["text"] == "An otter;\nof two lines."
    assert plain["link"] == f"https://site.example/{plain['document_id']}"
    assert (plain["collection"], json.loads(plain["metadata"])) == ("notes", {"year": 2024})


def test_no_cell_of_text_begins_like_a_formula(collection: Collection) -> None:
    numbers = {"rank", "page", "relevance", "similarity", "lexical", "fused", "rerank"}
    cells = [
        value
        for row in rows(exported(collection))
        for name, value in row.items()
        if name not in numbers
    ]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert {"'+otter", "'@sum", "'- the otter in a list"} <= set(cells)


def test_json_says_the_same_without_apostrophes(collection: Collection) -> None:
    answer = json.loads(exported(collection, "json", sort="title"))
    assert (answer["query"], answer["sort"], answer["total"]) == ("otter", "title", 3)
    titles = [hit["title"] for hit in answer["hits"]]
    assert titles == ['=HYPERLINK("http://evil.example","otter")', "@sum", "Plain, with “signs”"]
    assert answer["hits"][0]["metadata"] == {"year": 2024}


def test_many_hits_come_from_one_ranking_and_are_read_in_batches() -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    count = BATCH_SIZE * 2 + 30
    for number in range(count):
        ChunkFactory(document=document, text=f"otter {number}")
    written = pieces(collection)
    with CaptureQueriesContext(connection) as asked:
        written = json.loads(b"".join(written))["hits"]
    assert [row["rank"] for row in written] == list(range(1, count + 1))
    assert len({row["chunk_id"] for row in written}) == count
    assert len(asked) <= 3 * 4


def test_a_document_that_goes_meanwhile_is_left_out(collection: Collection) -> None:
    export = pieces(collection)
    collection.documents.get(title="@sum").delete()
    assert len(json.loads(b"".join(export))["hits"]) == 2


def test_another_kind_of_file_is_refused(collection: Collection) -> None:
    with pytest.raises(InvalidInput, match="csv, json"):
        exported(collection, "xlsx")
