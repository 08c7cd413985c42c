"""Rows of a table are filtered, sorted, paged and summed in the database."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from common.errors import Conflict, InvalidInput
from documents.ingestion.sources import Source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from tables import services
from tables.models import BLOCK_ROWS, ColumnBlock, Table
from tables.options import RowOptions
from tests.kit import client_of, logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

EXPENSES = (
    "Date;Kind;Amount (EUR);Paid\n"
    "2026-03-01;Travel;1.200,50;yes\n"
    "2026-03-05;Food;80,25;no\n"
    "2026-03-09;travel;99,00;yes\n"
    "2026-04-02;Books;;yes\n"
)


def put_in(collection: Collection, data: str = EXPENSES, name: str = "march.csv") -> Table:
    raw = data.encode()
    ingest_inline(collection=collection, sources=[Source(name, name, len(raw), lambda: raw)])
    return Table.objects.get(document__key=name)


@pytest.fixture(scope="module")
def alice(shared_rows: None) -> Membership:
    """The owner of a workspace, for all tests of the module."""
    return MembershipFactory()


@pytest.fixture(scope="module")
def office(alice: Membership) -> int:
    return put_in(CollectionFactory(workspace=alice.workspace, slug="office")).pk


@pytest.fixture
def expenses(office: int) -> Table:
    return Table.objects.get(pk=office)


def kinds(table: Table, **options: Any) -> list[str]:
    return [row.cells[1] for row in services.read_page(table, RowOptions(**options)).results]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["Travel", "Food", "travel", "Books"]),
        ({"words": "TRAV"}, ["Travel", "travel"]),
        ({"words": "%"}, []),
        ({"column": "Kind", "value": "oo"}, ["Food", "Books"]),
        ({"column": "Kind", "comparison": "equals", "value": "travel"}, ["Travel", "travel"]),
        ({"column": "Amount (EUR)", "comparison": "above", "value": "99"}, ["Travel"]),
        ({"column": "Amount (EUR)", "comparison": "at_most", "value": "99.0"}, ["Food", "travel"]),
        ({"column": "Date", "comparison": "below", "value": "2026-03-05"}, ["Travel"]),
        ({"column": "Paid", "comparison": "equals", "value": "no"}, ["Food"]),
        ({"sort": "Amount (EUR)"}, ["Food", "travel", "Travel", "Books"]),
        ({"sort": "Amount (EUR)", "descending": True}, ["Travel", "travel", "Food", "Books"]),
        ({"sort": "Date", "descending": True, "limit": 2}, ["Books", "travel"]),
        ({"sort": "Kind", "offset": 1, "limit": 2}, ["Food", "Travel"]),
        ({"offset": 3}, ["Books"]),
        ({"offset": 9}, []),
    ],
)
def test_rows_are_those_that_fit(
    expenses: Table, options: dict[str, Any], found: list[str]
) -> None:
    assert kinds(expenses, **options) == found


def test_sums_and_counts_are_of_all_rows_that_fit(expenses: Table) -> None:
    page = services.read_page(expenses, RowOptions(words="travel", limit=1))
    assert (page.count, len(page.results)) == (2, 1)
    assert [(each.column, each.sum) for each in page.sums] == [("Amount (EUR)", 1299.5)]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"sort": "Nothing"}, "sort"),
        ({"column": "Nothing", "value": "x"}, "column"),
        ({"column": "Date", "comparison": "above", "value": "soon"}, "value"),
        ({"column": "Amount (EUR)", "comparison": "above", "value": "much"}, "value"),
    ],
)
def test_what_is_no_column_or_value_is_refused(
    expenses: Table, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        services.read_page(expenses, RowOptions(**options))
    assert refused.value.field == field


def test_a_row_has_its_place_and_passage(expenses: Table) -> None:
    row = services.read_page(expenses, RowOptions(words="Books")).results[0]
    assert (row.place, row.values) == ("row 5", (row.values[0], "Books", None, 1.0))
    assert "Books" in Chunk.objects.get(pk=row.chunk).text


def test_a_column_is_corrected_and_read_anew(expenses: Table) -> None:
    services.correct_column(table=expenses, column="Amount (EUR)", name="Amount", type="text")
    assert not ColumnBlock.objects.filter(position=3, numbers__isnull=False).exists()
    services.correct_column(table=expenses, column="Amount", type="number", unit="CHF")
    block = ColumnBlock.objects.get(position=3)
    assert block.numbers == [1200.5, 80.25, 99.0, None]
    expenses.refresh_from_db()
    read = {"name": "Amount (EUR)", "type": "number", "unit": "EUR"}
    assert expenses.columns[2] == {"name": "Amount", "type": "number", "unit": "CHF", "read": read}
    with pytest.raises(Conflict):
        services.correct_column(table=expenses, column="Amount", name="Kind")


def test_the_api_lists_reads_filters_and_corrects(expenses: Table, api: APIClient) -> None:
    listed = api.get("/api/v1/tables/", {"collection": "office", "q": "amount"}).json()
    assert [each["id"] for each in listed["results"]] == [expenses.pk]
    # The names of columns are looked at, and not their types.
    assert api.get("/api/v1/tables/", {"q": "number"}).json()["results"] == []
    read = api.get(f"/api/v1/tables/{expenses.pk}/").json()
    assert read["columns"][2] == {"name": "Amount (EUR)", "type": "number", "unit": "EUR"}
    rows = api.get(read["rows_url"], {"column": "Paid", "value": "yes", "sort": "Date"}).json()
    assert rows["count"] == 3
    assert rows["results"][0]["values"] == ["2026-03-01", "Travel", 1200.5, 1.0]
    refused = api.get(read["rows_url"], {"column": "Pay", "value": "yes"})
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "column")
    answer = api.patch(f"/api/v1/tables/{expenses.pk}/", {"column": "Paid", "name": "Settled"})
    assert answer.json()["columns"][3]["name"] == "Settled"


def test_csv_has_the_rows_that_fit(alice: Membership, api: APIClient) -> None:
    many = "Name,Number\n" + "".join(f"Bike {n},{n}\n" for n in range(BLOCK_ROWS + 2))
    table = put_in(CollectionFactory(workspace=alice.workspace), many, "bikes.csv")
    answer = api.get(f"/api/v1/tables/{table.pk}/csv/")
    assert answer.getvalue().decode("utf-8-sig").splitlines() == many.splitlines()
    above = {"column": "Number", "comparison": "at_least", "value": str(BLOCK_ROWS)}
    answer = api.get(f"/api/v1/tables/{table.pk}/csv/", above)
    assert answer.getvalue().decode("utf-8-sig").splitlines() == [
        "Name,Number",
        f"Bike {BLOCK_ROWS},{BLOCK_ROWS}",
        f"Bike {BLOCK_ROWS + 1},{BLOCK_ROWS + 1}",
    ]


def test_csv_runs_no_formulas(alice: Membership, api: APIClient) -> None:
    data = 'Name,Number\n"=1+1",-5\nBike,7\n'
    table = put_in(CollectionFactory(workspace=alice.workspace), data, "bikes.csv")
    lines = api.get(f"/api/v1/tables/{table.pk}/csv/").getvalue().decode("utf-8-sig").splitlines()
    assert lines == ["Name,Number", "'=1+1,-5", "Bike,7"]


def test_viewers_read_and_do_not_correct(expenses: Table, alice: Membership) -> None:
    alice.role = Role.VIEWER
    alice.save()
    client = client_of(alice)
    address = f"/api/v1/tables/{expenses.pk}/"
    assert client.get(address).status_code == 200
    assert client.patch(address, {"column": "Paid", "name": "Settled"}).status_code == 403


def test_the_pages_show_tables_and_rows(expenses: Table, alice: Membership) -> None:
    client = logged_in(alice)
    assert b"March" in client.get("/documents/office/tables/").content
    assert b"No table is called so" in client.get("/documents/office/tables/?find=bikes").content
    page = client.get(
        f"/tables/{expenses.pk}/", {"words": "travel", "sort": "Date"}
    ).content.decode()
    assert "1.200,50" in page
    assert "80,25" not in page
    assert "1,299.5" in page
    refused = client.get(f"/tables/{expenses.pk}/", {"sort": "Nothing"})
    assert refused.status_code == 400
    document = client.get(f"/documents/office/{expenses.document_id}/").content.decode()
    assert f"/tables/{expenses.pk}/" in document


def test_a_column_is_corrected_on_the_page(expenses: Table, alice: Membership) -> None:
    client = logged_in(alice)
    address = f"/tables/{expenses.pk}/column/"
    client.post(address, {"column": "Paid", "type": "text", "unit": "", "name": ""})
    expenses.refresh_from_db()
    assert (expenses.columns[3]["name"], expenses.columns[3]["type"]) == ("Paid", "text")


def test_others_find_nothing(expenses: Table, charlie: Client) -> None:
    assert charlie.get(f"/tables/{expenses.pk}/").status_code == 404
    assert charlie.get(f"/api/v1/tables/{expenses.pk}/").status_code == 404


def test_documents_of_before_are_read_by_the_command(
    expenses: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    Table.objects.all().delete()
    call_command("tables", "rebuild", "--json")
    assert '"with_tables": 1' in capsys.readouterr().out
    assert Document.objects.get(pk=expenses.document_id).tables.count() == 1
