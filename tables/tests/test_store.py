"""Tables are kept with their documents: loaded, changed, copied and deleted as these are."""

import io
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import connection

from accounts.models import Membership
from common.rls import workspace_context
from documents import services as document_services
from documents.ingestion import duplicates
from documents.ingestion.items import Item
from documents.ingestion.sources import Source, text_source
from documents.models import Chunk, ChunkEdit, Collection, Document, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import WorkspaceFactory
from tables.asking import ask_tables
from tables.models import BLOCK_ROWS, ColumnBlock, Table
from tables.rows import read_rows, row_source
from tables.services import correct_column
from tables.store import store_tables
from tests.kit import hashing, process_documents, use_models

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


def corrected(collection: Collection, folder: Path) -> Collection:
    """A table in a file of a folder, two columns of which an editor has corrected."""
    folder.mkdir()
    rows = "".join(f"City {n},{n} EUR,{n:04}\n" for n in range(1, 90))
    (folder / "prices.csv").write_text(f"Bike,Price,Stock\n{rows}")
    document_services.sync_directory(collection=collection, directory=folder)
    table = Table.objects.get()
    assert [each["type"] for each in table.columns] == ["text", "number", "text"]
    correct_column(table=table, column="Price", name="Net price", unit="USD")
    correct_column(table=table, column="Stock", type="number")
    return collection


def state(collection: Collection) -> Any:
    """The current tables with their rows, and what a question is answered."""
    tables = Table.objects.filter(collection=collection).current()
    answer = ask_tables("What is the total stock where the net price is above 80 USD?", tables)
    assert answer.result is not None, answer
    names = ("columns", "row_count", "name", "start", "is_current")
    return (
        answer.result.value,
        answer.result.explanation.split(" where ")[1],
        [
            ({name: getattr(table, name) for name in names}, read_rows(table, range(100)))
            for table in tables
        ],
    )


def embedded_anew(collection: Collection) -> None:
    space, _ = document_services.add_space(name="wide", embedder="wide")
    document_services.reembed_inline(target=space)


def read_again(collection: Collection) -> None:
    document = Document.objects.get()
    document.file.save("prices.csv", ContentFile(Path(document.key).read_bytes()))
    document_services.reingest_documents(documents=[document])
    process_documents()


def cut_anew(collection: Collection) -> None:
    collection.chunker, collection.chunker_options = "recursive", {"max_tokens": 60}
    collection.save()
    before = Chunk.objects.count()
    read_again(collection)
    assert Chunk.objects.count() != before


def synced(collection: Collection, change: Callable[[Path], Any]) -> None:
    file = Path(Document.objects.get().key)
    change(file)
    document_services.sync_directory(collection=collection, directory=file.parent)


def edited_and_undone(collection: Collection) -> None:
    chunk = Chunk.objects.earliest("ordinal")
    text = chunk.text.replace("City 1 ", "Town 1 ")
    assert text != chunk.text
    document_services.edit_chunk(chunk=chunk, text=text)
    document_services.undo_edit(edit=ChunkEdit.objects.get())


def copied_to_another_workspace(collection: Collection) -> Collection:
    data, workspace = io.BytesIO(), WorkspaceFactory()
    document_services.export_collection(collection=collection, file=data)
    for _ in range(2):  # the second changes nothing
        data.seek(0)
        run = document_services.import_collection(workspace=workspace, slug="copy", file=data)
    assert (run.skipped, run.ready) == (1, 0)
    return Collection.objects.get(workspace=workspace)


def stored_once_and_original_deleted(collection: Collection) -> None:
    original = Document.objects.get()
    data = Path(original.key).read_bytes()
    source = Source("copy.csv", "copy.csv", len(data), lambda: data)
    ingest_inline(collection=collection, sources=[source], store_once=True)
    assert Document.objects.get(key="copy.csv").is_link
    document_services.delete_documents(documents=[original])


#: What is done with a collection; those that return one have copied it there.
OPERATIONS: dict[str, Callable[[Collection], Collection | None]] = {
    "embedded anew": embedded_anew,
    "read again": read_again,
    "cut anew": cut_anew,
    "synchronized": lambda collection: synced(collection, Path.touch),
    "renamed": lambda collection: synced(
        collection, lambda file: file.rename(file.parent / "new.csv")
    ),
    "edited and undone": edited_and_undone,
    "exported and imported": copied_to_another_workspace,
    "stored once": stored_once_and_original_deleted,
}


@pytest.mark.parametrize(
    "name",
    [
        # builds an index, which no transaction can
        pytest.param("embedded anew", marks=pytest.mark.django_db(transaction=True)),
        *list(OPERATIONS)[1:],
    ],
)
def test_tables_corrections_and_answers_stay(
    collection: Collection, tmp_path: Path, settings: Any, name: str
) -> None:
    use_models(settings, embedder={"default": hashing(), "wide": hashing(768)}, reranker={})
    before = state(corrected(collection, tmp_path / "folder"))
    assert before[0] == sum(range(81, 90))
    copy = OPERATIONS[name](collection) or collection
    assert state(copy) == before


def export_with(collection: Collection, **changes: Any) -> io.BytesIO:
    """An export whose first document has these fields in its line."""
    data = io.BytesIO()
    document_services.export_collection(collection=collection, file=data)
    header, line, *others = data.getvalue().splitlines(keepends=True)
    changed = {**json.loads(line), **changes}
    given = {name: value for name, value in changed.items() if value is not None}
    return io.BytesIO(b"".join([header, json.dumps(given).encode(), b"\n", *others]))


def import_into(collection: Collection, file: io.BytesIO) -> IngestionRun:
    return document_services.import_collection(
        workspace=collection.workspace, slug=collection.slug, file=file
    )


def test_an_import_brings_later_corrections_and_takes_them_back(
    collection: Collection, tmp_path: Path
) -> None:
    corrected(collection, tmp_path / "folder")
    before = state(collection)
    export, former = export_with(collection), export_with(collection, tables=None)
    correct_column(table=Table.objects.get(), column="Stock", name="Sold", type="text")
    assert import_into(collection, former).skipped == 1  # of a release without corrections
    assert Table.objects.get().columns[2]["name"] == "Sold"
    assert import_into(collection, export).ready == 1
    assert state(collection) == before
    assert import_into(collection, export_with(collection, tables=[])).ready == 1
    table = Table.objects.get()
    assert [column["name"] for column in table.columns] == ["Bike", "Price", "Stock"]
    assert [row.values[2] for row in read_rows(table, [6])] == ["0007"]


BIKE = {"name": "Bike", "type": "text", "unit": ""}


@pytest.mark.parametrize(
    "tables",
    [
        5,
        [5],
        [{"name": "prices", "columns": 5}],
        [{"name": "prices", "columns": [BIKE]}],
        [{"name": "prices", "columns": [BIKE | {"type": "blob", "read": BIKE}]}],
        [{"name": "prices", "columns": [BIKE | {"name": 7, "read": BIKE}]}],
        [{"name": "prices", "columns": [BIKE | {"name": "x" * 300, "read": BIKE}]}],
        [{"name": "prices", "columns": [BIKE | {"name": ["Bike"], "read": {"name": [1]}}]}],
        [{"name": "", "columns": [BIKE | {"name": "Stock", "read": BIKE}]}],
    ],
)
def test_broken_corrections_of_an_import_fail_their_document(
    collection: Collection, tmp_path: Path, tables: Any
) -> None:
    corrected(collection, tmp_path / "folder")
    before = state(collection)
    run = import_into(collection, export_with(collection, tables=tables))
    assert (run.state, run.ready) == ("failed", 0)
    assert "Line 2: “tables” " in run.items.get(state="failed").error
    assert state(collection) == before


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


def test_items_that_are_stored_have_their_tables(collection: Collection) -> None:
    items = [Item(id="plain", text="No table."), Item(id="prices", text=PRICES)]
    document_services.store_items(collection=collection, items=items)
    assert list(Table.objects.values_list("document__key", flat=True)) == ["prices"]
