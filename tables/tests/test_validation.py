"""`validate` is silent about tables as they are loaded, and names and mends what breaks."""

from collections.abc import Callable

import pytest

from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from documents.validation import validate
from tables.models import ColumnBlock, Table

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def table(collection: Collection) -> Table:
    text = "# Prices\n\n| Bike | Price |\n| - | - |\n| Trail | 7 |\n"
    ingest_inline(collection=collection, sources=[text_source("prices.md", text)])
    return Table.objects.get()


def elsewhere(table: Table) -> None:
    Table.objects.update(collection=CollectionFactory(workspace=table.workspace))


def rows_elsewhere(table: Table) -> None:
    ColumnBlock.objects.update(collection_id=CollectionFactory(workspace=table.workspace).pk)


def of_another_version(table: Table) -> None:
    Table.objects.update(is_current=False)


def without_rows(table: Table) -> None:
    ColumnBlock.objects.all().delete()


@pytest.mark.parametrize(
    ("breakage", "name"),
    [
        (elsewhere, "table_elsewhere"),
        (rows_elsewhere, "table_elsewhere"),
        (of_another_version, "table_version"),
        (without_rows, "table_rows"),
    ],
)
def test_what_breaks_is_named_and_mended(
    table: Table, breakage: Callable[[Table], None], name: str
) -> None:
    def problems() -> list[str]:
        return [each.check.name for each in validate().findings if each.check.rows == "tables"]

    assert problems() == []
    breakage(table)
    assert problems() == [name]
    validate(fix=True)
    assert problems() == []
    mended = Table.objects.get()
    assert (mended.collection, mended.is_current) == (table.collection, True)
    assert ColumnBlock.objects.filter(collection=table.collection).count() == 3
