"""What was computed, as it is shown and taken away: pages of rows, and files."""

import io
from datetime import date
from typing import Any

import pytest
from django.test import Client
from python_calamine import CalamineWorkbook
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from common.errors import NotFound
from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline, update_document
from documents.tests.factories import CollectionFactory, MembershipFactory
from tables.asking import ask_tables, compute_plan
from tables.models import Table
from tables.plan_tokens import plan_token, read_plan_token
from tables.wording import worded, worded_reading
from tests.kit import client_of, logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

EXPENSES = """Date,Category,Amount (EUR),Paid
2026-03-01,Travel,1200.50,yes
2026-03-04,=1+1,-80.25,no
2026-03-09,Travel,99,yes
"""


@pytest.fixture(scope="module")
def alice(shared_rows: None) -> Membership:
    """The owner of a workspace, for all tests of the module."""
    return MembershipFactory()


@pytest.fixture(scope="module")
def expenses(alice: Membership) -> Collection:
    collection = CollectionFactory(workspace=alice.workspace, slug="office")
    for key, text in (
        ("march.csv", EXPENSES),
        ("april.csv", EXPENSES.replace("2026-03", "2026-04").replace("99", "41")),
    ):
        ingest_inline(collection=collection, sources=[text_source(key, text, file_name=key)])
    return collection


def token(question: str) -> str:
    answer = ask_tables(question, Table.objects.current())
    assert answer.plan is not None, answer
    return plan_token(answer.plan)


def test_rows_of_several_files_are_paged_sorted_and_summed(
    expenses: Collection, api: APIClient
) -> None:
    asked = {"reading": token("How much did we spend on travel?"), "limit": 3}
    page = api.get("/api/v1/tables/result/rows/", asked).json()
    assert page["description"] == "Sum of Amount (EUR) where Category = Travel"
    assert page["count"] == 4
    assert page["sums"] == [{"column": "Amount (EUR)", "position": 3, "sum": 2541.0}]
    assert [row["title"] for row in page["results"]] == ["March", "March", "April"]
    first = page["results"][0]
    assert first["place"] == "row 2"
    assert f"&quote={first['start']}-{first['end']}#passage" in first["url"]
    rest = api.get("/api/v1/tables/result/rows/", {**asked, "offset": 3}).json()
    assert [row["cells"][2] for row in rest["results"]] == ["41"]
    by_amount = {**asked, "sort": "Amount (EUR)"}
    page = api.get("/api/v1/tables/result/rows/", by_amount).json()
    assert [row["cells"][2] for row in page["results"]] == ["41", "99", "1200.50"]
    refused = api.get("/api/v1/tables/result/rows/", {**asked, "sort": "Nothing"})
    assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "sort")


def test_the_extreme_rows_come_first(expenses: Collection, api: APIClient) -> None:
    asked = {"reading": token("What is the highest amount?")}
    page = api.get("/api/v1/tables/result/rows/", asked).json()
    assert page["count"] == 6
    assert page["results"][0]["cells"][2] == "1200.50"
    assert page["results"][-1]["cells"][2] == "-80.25"


def test_the_page_shows_the_rows(expenses: Collection, alice: Membership) -> None:
    asked = {"reading": token("How much did we spend on travel?")}
    page = logged_in(alice).get("/tables/rows/", asked).content.decode()
    assert "Sum of Amount (EUR) where Category = Travel" in page
    assert page.count("1200.50") == 2
    assert "2,541" in page
    assert "/api/v1/tables/result/xlsx/?reading=" in page
    spoiled = logged_in(alice).get("/tables/rows/", {"reading": "none"})
    assert spoiled.status_code == 400


def test_rows_that_a_reader_may_not_see_are_left_out(expenses: Collection) -> None:
    """Also of an answer that somebody else was given."""
    reading = token("How much did we spend on travel?")
    owner = MembershipFactory(workspace=expenses.workspace)
    viewer = MembershipFactory(workspace=expenses.workspace, role=Role.VIEWER)
    update_document(
        document=Document.objects.get(key="march.csv"), access=[f"user:{owner.user_id}"]
    )
    address = "/api/v1/tables/result/rows/"
    assert client_of(owner).get(address, {"reading": reading}).json()["count"] == 4
    seen = client_of(viewer).get(address, {"reading": reading}).json()
    assert (seen["count"], {row["title"] for row in seen["results"]}) == (2, {"April"})
    outsider = client_of(MembershipFactory())
    for path in ("rows", "csv", "xlsx"):
        refused = outsider.get(f"/api/v1/tables/result/{path}/", {"reading": reading})
        assert refused.status_code == 404


def test_a_table_that_has_changed_is_not_computed(expenses: Collection) -> None:
    plan = read_plan_token(token("How much did we spend on travel?"))
    for table in Table.objects.all():
        table.columns[2]["type"] = "text"
        table.save()
    with pytest.raises(NotFound):
        compute_plan(plan, Table.objects.current())


def test_of_several_tables_those_that_have_not_changed_are_left(
    expenses: Collection, alice: Membership
) -> None:
    reading = token("How much did we spend on travel?")
    table = Table.objects.get(document__key="march.csv")
    table.columns = table.columns[:2]
    table.save()
    page = logged_in(alice).get("/tables/rows/", {"reading": reading}).text
    assert "April" in page
    assert "March" not in page


def test_rows_are_downloaded_typed_and_run_no_formulas(
    expenses: Collection, api: APIClient
) -> None:
    asked = {"reading": token("How many rows have an amount below 1000?")}
    text = api.get("/api/v1/tables/result/csv/", asked).getvalue().decode()
    assert text.startswith("\ufeffDocument,Place,Date,Category,Amount (EUR),Paid\r\n")
    assert "March,row 3,2026-03-04,'=1+1,-80.25,no\r\n" in text
    answer = api.get("/api/v1/tables/result/xlsx/", asked)
    assert answer["Content-Disposition"].endswith('.xlsx"')
    rows = read_excel(b"".join(answer.streaming_content))
    assert rows[0] == ["Document", "Place", "Date", "Category", "Amount (EUR)", "Paid"]
    assert rows[1] == ["March", "row 3", date(2026, 3, 4), "=1+1", -80.25, False]
    assert len(rows) == 5


def test_groups_are_downloaded(expenses: Collection, api: APIClient) -> None:
    asked = {"reading": token("Total amount by category"), "part": "groups"}
    text = api.get("/api/v1/tables/result/csv/", asked).getvalue().decode("utf-8-sig")
    assert text.splitlines() == [
        "Category,Sum of Amount (EUR),Rows",
        "'=1+1,-160.5,2",
        "Travel,2541,4",
    ]
    rows = read_excel(b"".join(api.get("/api/v1/tables/result/xlsx/", asked).streaming_content))
    assert rows[2] == ["Travel", 2541.0, 4.0]
    without = {**asked, "reading": token("How much did we spend on travel?")}
    assert api.get("/api/v1/tables/result/csv/", without).status_code == 400


def test_a_table_is_downloaded_for_excel(expenses: Collection, api: APIClient) -> None:
    table = Table.objects.get(document__key="march.csv")
    answer = api.get(f"/api/v1/tables/{table.pk}/xlsx/", {"words": "travel"})
    rows = read_excel(b"".join(answer.streaming_content))
    assert rows == [
        ["Date", "Category", "Amount (EUR)", "Paid"],
        [date(2026, 3, 1), "Travel", 1200.5, True],
        [date(2026, 3, 9), "Travel", 99.0, True],
    ]


def read_excel(data: bytes) -> list[list[Any]]:
    return CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0).to_python()


@pytest.mark.parametrize(
    ("question", "reading", "head"),
    [
        (
            "Total amount by category",
            "Sum of Amount (EUR), by Category",
            "| Category | Sum of Amount (EUR) |",
        ),
        (
            "Wie hoch ist die Summe pro Monat?",
            "Summe von Amount (EUR), nach Monat von Date",
            "| Date | Summe von Amount (EUR) |",
        ),
        ("How many rows are paid?", "Rows where Paid = yes", "**4** (Rows)"),
    ],
)
def test_readings_and_answers_are_in_words(
    expenses: Collection, question: str, reading: str, head: str
) -> None:
    answer = ask_tables(question, Table.objects.current())
    assert answer.plan is not None, answer
    assert worded_reading(answer.plan) == reading
    assert worded(answer, listed_rows=0).head.startswith(head)


def test_pages_of_rows_need_a_login(client: Client) -> None:
    assert client.get("/tables/rows/", {"reading": "x"}).status_code == 302
