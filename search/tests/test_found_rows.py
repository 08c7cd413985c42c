"""Rows of tables among hits: found by a cell, first, and shown with the header of their table."""

import csv
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Membership
from common.sql import fetch_rows
from documents.ingestion.sources import discover
from documents.models import Collection, Document
from documents.services import ingest_inline, update_document
from documents.tests.factories import CollectionFactory, MembershipFactory
from search.query_options import scope_for
from search.results import Hit
from search.services import search
from tables.models import Table
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PARTS = [
    (f"AX-{1000 + 7 * at}/{'ABCD'[at % 4]}", f"Bolt M{3 + at % 30} steel", f"{at}.50", str(at % 90))
    for at in range(240)
]
NUMBER, _, PRICE, _ = PARTS[150]
PROSE = """\
# Ordering parts

What does a part cost? The price of a part, such as AX parts, is in the price list, and its stock
is counted each Friday. Whoever needs a part asks for its price, its number and its stock.
"""


@pytest.fixture(scope="module")
def alice(shared_rows: None) -> Membership:
    """The owner of a workspace, for all tests of the module."""
    return MembershipFactory()


@pytest.fixture(scope="module")
def parts(alice: Membership, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """A price list of many parts, and prose that has all words of the questions but the numbers."""
    tmp_path = tmp_path_factory.mktemp("files")
    leaflets = CollectionFactory(workspace=alice.workspace, slug="leaflets", name="Leaflets")
    with (tmp_path / "parts.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Part number", "Description", "Price (EUR)", "Stock"])
        rows.writerows(PARTS)
    (tmp_path / "ordering.md").write_text(PROSE)
    (tmp_path / "staff.md").write_text(
        "# Staff\n\n| Name | Phone |\n| --- | --- |\n"
        "| **Jürgen Adler** | 77 |\n| Anna Weiß | 78 |\n| a\\|b 12 | 79 |\n"
    )
    ingest_inline(collection=leaflets, sources=discover([tmp_path]))
    return leaflets


def hits_of(question: str, collection: Collection, **options: Any) -> tuple[Hit, ...]:
    scope = scope_for(user=None, workspace=collection.workspace, collections=[collection.slug])
    return search(question, scope=scope, **options).hits


@pytest.mark.parametrize(
    "question",
    [
        NUMBER,
        NUMBER.lower(),
        NUMBER.replace("-", "").replace("/", "").lower(),
        f"price of {NUMBER}",
        f"What does {NUMBER} cost?",
        f"stock of part {NUMBER}",
        f"was kostet {NUMBER}?",
        f"¿cuánto cuesta {NUMBER}?",
    ],
)
def test_the_row_of_a_part_number_is_first_with_its_header(
    parts: Collection, question: str
) -> None:
    first = hits_of(question, parts)[0]
    assert first.table is not None
    assert first.table.columns == ("Part number", "Description", "Price (EUR)", "Stock")
    row = first.table.rows[0]
    assert (row.cells, row.ordinal, row.matched) == (PARTS[150], 150, (0,))
    assert first.text[row.start - first.start :].startswith(f"| {NUMBER} |")
    assert first.location == "row 152"  # the header is the first


def test_prose_stays_first_for_what_no_cell_names(parts: Collection) -> None:
    first = hits_of("What does a part cost?", parts)[0]
    assert first.document_key.endswith("ordering.md")
    assert first.table is None


def test_a_name_is_found_however_it_is_written(parts: Collection) -> None:
    for question in ("Juergen Adler phone", "jurgen adler"):
        table = hits_of(question, parts)[0].table
        assert table is not None, question
        assert table.rows[0].cells == ("**Jürgen Adler**", "77")
        assert table.id == Table.objects.get(document__key__endswith="staff.md").pk


def test_cells_with_bars_are_whole(parts: Collection) -> None:
    table = hits_of("a|b 12 phone", parts)[0].table
    assert table is not None
    assert (table.rows[0].cells, table.rows[0].matched) == (("a|b 12", "79"), (0,))


@pytest.mark.parametrize(("question", "statements"), [("Bolt steel", 1), ("counted Friday", 0)])
def test_a_page_takes_one_statement_for_rows_or_none(
    parts: Collection, monkeypatch: pytest.MonkeyPatch, question: str, statements: int
) -> None:
    asked = []

    def counting(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        return fetch_rows(*arguments, **options)

    monkeypatch.setattr("tables.found_rows.fetch_rows", counting)
    hits = hits_of(question, parts, mode="lexical", k=10)
    assert len(asked) == statements
    assert any(hit.table for hit in hits) == bool(statements)


def test_a_table_that_is_not_kept_shows_the_snippet(parts: Collection) -> None:
    Table.objects.all().delete()
    first = hits_of(NUMBER, parts)[0]
    assert first.table is None
    assert NUMBER in first.snippet.text


def test_rows_of_hidden_documents_are_not_shown(parts: Collection, alice: Membership) -> None:
    document = Document.objects.get(key__endswith="parts.csv")
    update_document(document=document, access=[f"user:{alice.user_id}"])
    other = MembershipFactory(workspace=alice.workspace)
    shown, hidden = (
        search(NUMBER, scope=scope_for(user=member.user, workspace=parts.workspace)).hits
        for member in (alice, other)
    )
    assert shown[0].table is not None
    assert hidden
    assert all(NUMBER not in str(hit) for hit in hidden)


def test_the_page_shows_the_row_and_leads_to_the_table(parts: Collection, client: Client) -> None:
    page = client.get(reverse("search"), {"q": f"price of {NUMBER}"}).content.decode()
    assert f"<mark>{NUMBER}</mark>" in page
    assert '<th scope="col">Price (EUR)</th>' in page
    assert PRICE in page
    table = Table.objects.get(document__key__endswith="parts.csv")
    assert f'href="/tables/{table.pk}/?offset=150"' in page


def test_the_api_answers_with_the_row(parts: Collection, alice: Membership) -> None:
    client = logged_in(alice)
    answer = client.get("/api/v1/search/", {"q": NUMBER}).json()
    found = answer["hits"][0]["table"]
    table = Table.objects.get(document__key__endswith="parts.csv")
    assert found["url"] == f"http://testserver/api/v1/tables/{table.pk}/"
    assert found["rows"][0]["cells"] == list(PARTS[150])
    assert found["rows"][0]["matched"] == [0]


def test_the_command_prints_the_row_in_words(parts: Collection) -> None:
    out = StringIO()
    call_command(
        *("search", f"price of {NUMBER}", "--collection", parts.slug),
        workspace=parts.workspace.slug,
        stdout=out,
    )
    assert f"Part number {NUMBER}: Description" in out.getvalue()
    assert f"Price {PRICE} EUR" in out.getvalue()
