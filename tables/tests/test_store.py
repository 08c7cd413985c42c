"""Tables are kept with their documents: loaded, changed, copied and deleted as these are."""

from datetime import date
from typing import Any

import pytest
from django.db import connection

from accounts.models import Membership
from common.rls import workspace_context
from documents import services as document_services
from documents.ingestion import duplicates
from documents.ingestion.sources import Source, text_source
from documents.models import Collection, Document, IngestionRun
from documents.services import ingest_inline
from tables.models import BLOCK_ROWS, ColumnBlock, Table
from tables.rows import read_rows, row_source
from tables.store import store_tables

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PRICES = "# Prices\n\n| Bike | Price | Since | Sold |\n| - | - | - | - |\n"
PRICES += "| Trail | 1.234,50 € | 14.03.2026 | ja |\n| City | 799 € | 1.4.2026 | nein |\n"


def ingest(collection: Collection, text: str, key: str = "prices.md", **options: Any) -> Document:
    source = text_source(key, text, rendering="markdown")
    ingest_inline(collection=collection, sources=[source], **options)
    return Document.objects.get(collection=collection, key=key, is_current=True)


def first_column(document: Document) -> list[str]:
    table = Table.objects.get(document=document)
    return [row.cells[0] for row in read_rows(table, range(table.row_count))]


def test_a_table_is_kept_with_types_values_and_places(collection: Collection) -> None:
    document = ingest(collection, PRICES)
    table = Table.objects.get(document=document)
    assert (table.name, table.heading_path, table.row_count) == ("Prices", ["Prices"], 2)
    assert table.columns == [
        {"name": "Bike", "type": "text", "unit": ""},
        {"name": "Price", "type": "number", "unit": "EUR"},
        {"name": "Since", "type": "date", "unit": ""},
        {"name": "Sold", "type": "boolean", "unit": ""},
    ]
    source = row_source(cells=[1], numbers=[2, 4], dates=[3], starts=True)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT row.ordinal, c1, n2, d3, n4, start FROM {source} AS row ORDER BY 1",
            {"tables": [table.pk]},
        )
        found = cursor.fetchall()
    text = document_services.document_text(document).text
    assert found == [
        (0, "Trail", 1234.5, date(2026, 3, 14), 1.0, text.index("| Trail")),
        (1, "City", 799.0, date(2026, 4, 1), 0.0, text.index("| City")),
    ]


def test_rows_of_several_blocks_are_numbered_on(collection: Collection) -> None:
    count = BLOCK_ROWS + 7
    rows = "".join(f"Bike {n},{n}\n" for n in range(count))
    data = f"Name,Number\n{rows}".encode()
    source = Source("bikes.csv", "bikes.csv", len(data), lambda: data)
    ingest_inline(collection=collection, sources=[source])
    table = Table.objects.get(collection=collection)
    assert table.row_count == count
    wanted = [0, BLOCK_ROWS - 1, BLOCK_ROWS, count - 1, count]
    assert [row.cells for row in read_rows(table, wanted)] == [
        (f"Bike {n}", str(n)) for n in wanted[:-1]
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), max(n2), max(ordinal) FROM {row_source(numbers=[2])} AS row",
            {"tables": [table.pk]},
        )
        assert cursor.fetchone() == (count, count - 1, count - 1)


def test_a_changed_text_changes_the_tables(collection: Collection) -> None:
    document = ingest(collection, PRICES)
    ingest(collection, PRICES.replace("Trail", "Gravel"))
    assert first_column(document) == ["Gravel", "City"]
    ingest(collection, "No table any more.")
    assert not Table.objects.exists()
    assert not ColumnBlock.objects.exists()


def test_an_unchanged_text_keeps_its_tables(collection: Collection) -> None:
    document = ingest(collection, PRICES)
    before = Table.objects.get()
    assert store_tables([document.pk]) == 1
    assert Table.objects.get().pk == before.pk


def test_a_former_version_keeps_its_own(collection: Collection) -> None:
    old = ingest(collection, PRICES)
    new = ingest(
        collection, PRICES.replace("City", "Cargo"), policy=IngestionRun.Policy.NEW_VERSION
    )
    assert dict(Table.objects.values_list("document", "is_current")) == {
        old.pk: False,
        new.pk: True,
    }
    assert [first_column(each) for each in (old, new)] == [["Trail", "City"], ["Trail", "Cargo"]]


def test_what_a_curator_corrected_outlives_the_text(collection: Collection) -> None:
    ingest(collection, PRICES)
    table = Table.objects.get()
    read = table.columns[1]
    table.columns[1] = {"name": "Net price", "type": "number", "unit": "USD", "read": read}
    table.save()
    ingest(collection, PRICES + "| Cargo | 2.000 € | 2.4.2026 | ja |\n")
    ingest(collection, PRICES + "| Fold | 900 € | |\n", policy=IngestionRun.Policy.NEW_VERSION)
    for table in Table.objects.all():
        assert table.columns[1] == {"name": "Net price", "type": "number", "unit": "USD"} | {
            "read": read
        }
        assert table.row_count == 3


def test_an_alias_gets_a_copy_when_its_original_goes(collection: Collection) -> None:
    sources = [text_source(key, PRICES, rendering="markdown") for key in ("a.md", "b.md")]
    ingest_inline(collection=collection, sources=sources, store_once=True)
    original, alias = Document.objects.order_by("key")
    assert alias.is_link
    assert list(Table.objects.values_list("document", flat=True)) == [original.pk]
    document_services.delete_documents(documents=[original])
    assert list(Table.objects.values_list("document", flat=True)) == [alias.pk]


def test_tables_go_with_document_collection_and_workspace(alice: Membership) -> None:
    collection = document_services.create_collection(
        workspace=alice.workspace, name="Bikes", slug="bikes"
    )
    document = ingest(collection, PRICES)
    document_services.delete_documents(documents=[document])
    assert not ColumnBlock.objects.exists()
    ingest(collection, PRICES)
    assert ColumnBlock.objects.exists()
    document_services.delete_collection(collection=collection)
    assert not ColumnBlock.objects.exists()


def test_an_access_list_is_that_of_the_document(alice: Membership, collection: Collection) -> None:
    member = Membership.objects.create(
        user=alice.user, workspace=collection.workspace, role=alice.role
    )
    document = ingest(collection, PRICES)
    assert Table.objects.visible_to(member.user).count() == 1
    duplicates.set_access([document.pk], ["user:0"])
    assert Table.objects.visible_to(member.user).count() == 0


def test_the_database_shows_rows_of_the_workspace_alone(
    alice: Membership, collection: Collection
) -> None:
    ingest(collection, PRICES)
    with workspace_context(alice.workspace_id):
        assert not Table.objects.exists()
        assert not ColumnBlock.objects.exists()
    with workspace_context(collection.workspace_id):
        assert ColumnBlock.objects.count() == 5
    with workspace_context(collection.workspace_id, collections=frozenset({0})):
        assert not ColumnBlock.objects.exists()
