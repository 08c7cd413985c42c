"""Tables of one shape over many files are asked as one, and those that are only alike are not."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from django.db import connection

from accounts.models import Role
from common.rls import workspace_context
from documents import services as document_services
from documents.ingestion.sources import Source, text_source
from documents.models import Collection, Document
from documents.services import ingest_inline, update_document
from documents.tests.factories import CollectionFactory, MembershipFactory
from tables.asking import ask_tables
from tables.execute import Result
from tables.models import GroupColumn, Table, TableGroup, TableLayout
from tables.services import correct_column, rebuild_tables
from tables.store import store_tables

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

Rows = Sequence[Sequence[str]]


def document(key: str, header: str, rows: Rows) -> Source:
    """With one table; `header` has its columns between bars."""
    names = header.split("|")
    lines = [names, ["-"] * len(names), *rows]
    return text_source(key, "".join(f"| {' | '.join(line)} |\n" for line in lines))


def add(collection: Collection, key: str, header: str, rows: Rows) -> Table:
    """Ingest a document with one table."""
    ingest_inline(collection=collection, sources=[document(key, header, rows)])
    return Table.objects.current().get(document__key=key)


def group_of(table: Table) -> int:
    return TableLayout.objects.get(
        collection=table.collection_id, fingerprint=table.fingerprint
    ).group_id


def layout_of(table: Table) -> TableLayout:
    return TableLayout.objects.get(collection=table.collection_id, fingerprint=table.fingerprint)


def computed(question: str, tables: Any = None) -> Result:
    asked = Table.objects.current() if tables is None else tables
    answer = ask_tables(question, asked, today=date(2026, 12, 31))
    assert answer.result is not None, answer
    return answer.result


#: Header, and a row as a function of the month.
MONTHS = [
    ("Date|Category|Employee|Amount (EUR)", "{day}|Travel|Ana|{sum}.50"),
    ("Date|Category|Employee|Amount (EUR)", "{day}|Travel|Bob|{sum}.50"),
    ("Category|Date|Amount (EUR)|Employee", "Travel|{day}|{sum}.50|Ana"),
    ("DATE|CATEGORY|EMPLOYEE|AMOUNT (EUR)", "{day}|Travel|Ana|{sum}.50"),
    ("Date|Category|Employee|Amount", "{day}|Travel|Ana|{sum}.50 €"),
    ("Datum|Kategorie|Mitarbeiter|Betrag (EUR)", "{day}|Travel|Ana|{sum}.50"),
    ("Date|Category|Employee|Sum (EUR)", "{day}|Travel|Ana|{sum}.50"),
    ("Fecha|Categoría|Empleado|Importe", "{day}|Travel|Ana|{sum}.50 €"),
    ("Date|Category|Employee|Amount (EUR)|Note", "{day}|Travel|Ana|{sum}.50|by train"),
    ("Date |  Category|Employee | Amount in EUR", "{day}|Travel|Bob|{sum}.50"),
    ("Approved by|Date|Category|Employee|Amount, EUR", "Eva|{day}|Travel|Ana|{sum}.50"),
    ("Betrag €|Mitarbeiter|Kategorie|Datum", "{sum}.50|Ana|Travel|{day}"),
]


@pytest.fixture
def months(collection: Collection) -> list[Table]:
    """Twelve lists of expenses: 100.50 of travel in January to 1200.50 in December, and 1 of food
    in each. They come in two runs of six."""
    lists = []
    for month, (header, row) in enumerate(MONTHS, 1):
        rows = [
            row.format(day=f"2026-{month:02}-{day:02}", sum=100 * month).split("|")
            for day in (3, 4)
        ]
        rows[1] = [
            {"Travel": "Food", f"{100 * month}.50": "1.00", f"{100 * month}.50 €": "1.00 €"}.get(
                cell, cell
            )
            for cell in rows[1]
        ]
        lists.append(document(f"list-{month:02}.md", header, rows))
    for run in (lists[:6], lists[6:]):
        ingest_inline(collection=collection, sources=run)
    return list(Table.objects.current().order_by("document__key"))


def test_lists_of_twelve_months_are_one(months: list[Table]) -> None:
    assert len({group_of(table) for table in months}) == 1
    total = sum(100 * month + 0.5 for month in range(1, 13))
    spent = computed("How much did we spend on travel?")
    assert (spent.value, spent.unit, spent.count) == (pytest.approx(total), "EUR", 12)
    assert spent.explanation == "12 rows of 12 files where Category = Travel"
    assert computed("Total amount").value == pytest.approx(total + 12)
    assert computed("Summe Betrag").value == pytest.approx(total + 12)
    assert computed("How much did we spend on travel in June?").value == pytest.approx(600.5)
    assert computed("How many expenses were above 1,000?").value == 3.0


def test_rows_have_their_cells_below_the_columns_of_the_group(months: list[Table]) -> None:
    result = computed("Show all expenses above 1,100")
    assert result.columns[:4] == ("Date", "Category", "Employee", "Amount (EUR)")
    assert [row.cells[:4] for row in result.rows] == [
        ("2026-11-03", "Travel", "Ana", "1100.50"),
        ("2026-12-03", "Travel", "Ana", "1200.50"),
    ]
    approver = result.columns.index("Approved by")
    assert [row.cells[approver] for row in result.rows] == ["Eva", ""]


def test_tables_without_a_column_are_not_said_to_be_counted(months: list[Table]) -> None:
    result = computed("Total amount approved by Eva")
    assert result.value == pytest.approx(1101.5)
    assert "list-11.md" in result.explanation


def test_groups_and_extremes_are_of_all_lists(months: list[Table]) -> None:
    by_month = computed("Total amount by month")
    assert [group.value for group in by_month.groups] == [
        pytest.approx(100 * month + 1.5) for month in range(1, 13)
    ]
    assert computed("What is the highest amount?").value == pytest.approx(1200.5)
    people = {g.name: g.value for g in computed("Total amount by employee").groups}
    assert people == {"Bob": pytest.approx(1203.0), "Ana": pytest.approx(6615.0)}


def test_two_hundred_receipts_are_one_layout(collection: Collection) -> None:
    receipts = [
        document(
            f"receipt-{number}.md",
            "Item|Quantity|Price (EUR)|Total (EUR)",
            [["Paper", "2", "1.50", "3.00"], ["Ink", "1", f"{number}.00", f"{number}.00"]],
        )
        for number in range(200)
    ]
    for run in (receipts[:1], receipts[1:3], receipts[3:]):
        ingest_inline(collection=collection, sources=run)
    assert TableLayout.objects.count() == TableGroup.objects.count() == 1
    assert computed("Sum of the total for ink").value == sum(range(200))


#: First words of headers whose cells are texts.
TEXTS = (
    *("Supplier", "Lieferant", "Item", "Color", "Artikel", "Customer", "Name", "City"),
    *("Project", "Category", "Store"),
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Date|Supplier|Net amount (EUR)", "Date|Supplier|Gross amount (EUR)"),
        ("Datum|Lieferant|Nettobetrag|Nr", "Datum|Lieferant|Bruttobetrag|Nr"),
        ("Date|Supplier|Amount (EUR)", "Date|Supplier|Net amount (EUR)"),
        ("Item|Color|Price", "Item|Color|Quantity"),
        ("Item|Color|Stock", "Item|Color|Units sold"),
        ("Date|Item|Amount (EUR)", "Date|Item|Amount (USD)"),
        ("Date|Item|Amount (EUR)", "Date|Item|Betrag (CHF)"),
        ("Date|Item|Amount (EUR)", "Date|Item|Amount"),
        ("Item|Number|Weight (kg)", "Item|Number|Weight (lb)"),
        ("Order date|Item|Amount (EUR)", "Delivery date|Item|Amount (EUR)"),
        ("Bestelldatum|Artikel|Betrag (EUR)", "Lieferdatum|Artikel|Betrag (EUR)"),
        ("Date|Customer|Invoice no|Amount", "Date|Supplier|Invoice no|Amount"),
        ("Name|Amount", "Name|Amount|City|Date"),
        ("Project|Hours|Rate", "Project|Minutes|Rate"),
        ("Date|Debit|Credit", "Date|Credit|Balance"),
        ("Date|Category|Income", "Date|Category|Expenses"),
        ("Item|Unit price (EUR)", "Item|List price (EUR)"),
        ("Item|Minimum price (EUR)|Store", "Item|Maximum price (EUR)|Store"),
    ],
)
def test_near_misses_are_not_joined(collection: Collection, first: str, second: str) -> None:
    def rows(header: str) -> Rows:
        words = ("date", "datum")
        return [
            [
                f"2026-01-0{day}"
                if any(w in name.lower() for w in words)
                else f"Thing {day}"
                if name.split()[0] in TEXTS
                else f"{day}0"
                for name in header.split("|")
            ]
            for day in (1, 2)
        ]

    tables = [
        add(collection, f"{at}.md", header, rows(header))
        for at, header in enumerate((first, second))
    ]
    assert group_of(tables[0]) != group_of(tables[1])
    assert not TableLayout.objects.filter(is_corrected=True).exists()


def test_columns_without_names_are_not_matched(collection: Collection) -> None:
    first = add(collection, "a.md", "Column 1|Column 2", [["Ink", "5"], ["Pen", "6"]])
    second = add(collection, "b.md", "Column 1|Column 2", [["5", "Ink"], ["6", "Pen"]])
    assert group_of(first) != group_of(second)
    assert layout_of(second).suggested_group is None


def test_customers_and_suppliers_are_not_joined_by_a_list_without_either(
    collection: Collection,
) -> None:
    base = add(collection, "a.md", "Date|Invoice no|Amount", [["2026-01-01", "R-1", "5"]])
    customers = add(
        collection, "b.md", "Date|Invoice no|Amount|Customer", [["2026-01-01", "R-2", "5", "Ana"]]
    )
    suppliers = add(
        collection, "c.md", "Date|Invoice no|Amount|Supplier", [["2026-01-01", "R-3", "5", "Bo"]]
    )
    assert group_of(base) == group_of(customers) != group_of(suppliers)


def test_what_is_not_sure_is_suggested(collection: Collection) -> None:
    first = add(collection, "a.md", "Date|Item|Amount (EUR)", [["2026-01-01", "Ink", "5"]])
    second = add(collection, "b.md", "Date|Item|Amount", [["2026-01-01", "Ink", "7"]])
    answer = ask_tables("Total amount", Table.objects.current())
    plans = [plan for plan in (answer.plan, *answer.readings) if plan]
    assert {len(plan.tables) for plan in plans} == {1}
    layout = layout_of(second)
    assert layout.suggested_group_id == group_of(first)
    assert layout.suggested_positions == [0, 1, 2]


def test_who_may_see_three_of_five_asks_three(collection: Collection) -> None:
    owner = MembershipFactory(workspace=collection.workspace).user
    member = MembershipFactory(workspace=collection.workspace, role=Role.VIEWER).user
    headers = [
        *("Secret bonus (EUR)|Item|Date", "Item|Date|Secret bonus (EUR)|Secret note"),
        *("Item|Date|Secret bonus (EUR)", "Date|Item|Secret bonus (EUR)"),
        "Item|Secret bonus (EUR)|Date",
    ]
    cells = {"Item": "Ink", "Date": "2026-01-01", "Secret bonus (EUR)": "10", "Secret note": "x"}
    for at, header in enumerate(headers):
        add(collection, f"{at}.md", header, [[cells[name] for name in header.split("|")]])
    assert TableGroup.objects.count() == 1
    for document in Document.objects.filter(key__in=("0.md", "1.md")):
        update_document(document=document, access=[f"user:{owner.pk}"])
    tables = Table.objects.current()
    question = "Total secret bonus"
    assert computed(question, tables.visible_to(owner)).value == 50.0
    seen = computed(question, tables.visible_to(member))
    assert (seen.value, seen.explanation) == (30.0, "3 rows of 3 files")
    assert "Secret note" not in seen.columns
    outsider = MembershipFactory().user
    assert ask_tables(question, tables.visible_to(outsider)).result is None


def test_the_database_shows_groups_of_the_workspace_alone(months: list[Table]) -> None:
    table = months[0]
    models = (TableGroup, GroupColumn, TableLayout)
    with workspace_context(MembershipFactory().workspace_id):
        assert not any(model.objects.exists() for model in models)
    with workspace_context(table.workspace_id, collections=frozenset({0})):
        assert not any(model.objects.exists() for model in models)
    with workspace_context(table.workspace_id):
        assert all(model.objects.exists() for model in models)


def test_groups_say_nothing_that_documents_say(months: list[Table]) -> None:
    """They outlive none of the names, and editors see them whose documents they may not see."""
    keys = GroupColumn.objects.values_list("key", flat=True)
    known = {key for key in keys if key.startswith("~")}
    assert "~amount+" in known
    assert all(len(key) == 24 for key in set(keys) - known)


def commit() -> None:
    """Run what waits for the end of the transaction."""
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def test_groups_go_with_the_last_table(months: list[Table]) -> None:
    note = months[8].document
    layouts = TableLayout.objects.count()
    document_services.delete_documents(documents=[note])
    commit()
    assert TableLayout.objects.count() == layouts - 1
    assert computed("How many expenses were above 100?").value == 11.0
    document_services.delete_documents(documents=list(Document.objects.all()))
    commit()
    assert not TableLayout.objects.exists()
    assert not TableGroup.objects.exists()
    assert not GroupColumn.objects.exists()


def test_groups_go_with_the_collection(months: list[Table]) -> None:
    collection = months[0].collection
    document_services.delete_collection(collection=collection)
    commit()
    assert not TableGroup.objects.exists()


def test_a_document_that_is_read_again_keeps_its_place(months: list[Table]) -> None:
    group = group_of(months[0])
    layout = layout_of(months[8])
    layout.is_corrected = True
    layout.save()
    add(months[0].collection, "list-09.md", MONTHS[8][0], [["2026-09-01", "Food", "Bo", "7", "-"]])
    commit()
    table = Table.objects.get(document__key="list-09.md")
    assert table.pk != months[8].pk
    assert (layout_of(table).pk, layout_of(table).group_id) == (layout.pk, group)


def test_a_changed_header_is_decided_again(months: list[Table]) -> None:
    table = add(
        months[0].collection,
        "list-03.md",
        "Date|Category|Employee|Amount (USD)",
        [["2026-03-01", "Food", "Bo", "7"]],
    )
    commit()
    assert group_of(table) != group_of(months[0])


def test_rebuilding_groups_tables_of_before(months: list[Table]) -> None:
    TableGroup.objects.all().delete()
    Table.objects.update(fingerprint="")
    TableGroup.objects.create(workspace=months[0].workspace, collection=months[0].collection)
    list(rebuild_tables())
    tables = Table.objects.order_by("pk")
    assert len({group_of(table) for table in tables}) == TableGroup.objects.count() == 1


def test_an_unchanged_text_changes_no_group(months: list[Table]) -> None:
    before = list(TableLayout.objects.order_by("pk").values())
    store_tables([table.document_id for table in months])
    assert list(TableLayout.objects.order_by("pk").values()) == before


def test_a_corrected_column_is_grouped_again(collection: Collection) -> None:
    first = add(collection, "a.md", "Date|Item|Amount (EUR)", [["2026-01-01", "Ink", "5"]])
    second = add(collection, "b.md", "Date|Item|Amount", [["2026-01-01", "Ink", "7"]])
    correct_column(table=second, column="Amount", unit="EUR")
    commit()
    assert group_of(second) == group_of(first)
    assert computed("Total amount").value == 12.0
    correct_column(table=second, column="Amount", name="Quux")
    assert group_of(second) == group_of(first)


def test_collections_have_groups_of_their_own_and_are_asked_as_one(
    collection: Collection,
) -> None:
    other = CollectionFactory(workspace=collection.workspace, space=collection.space)
    for each in (collection, other):
        for key, header in (("a.md", "Item|Sum (EUR)"), ("b.md", "Sum (EUR)|Item")):
            cells = ["Ink", "5"] if header.startswith("Item") else ["5", "Ink"]
            add(each, f"{each.slug}-{key}", header, [cells])
    assert TableGroup.objects.count() == 2
    assert computed("Total sum for ink").value == 20.0
