"""Questions over files of several formats and languages: computed, with the rows as evidence."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import Role
from common.errors import InvalidInput
from documents.ingestion.sources import Source, discover
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline, update_document
from documents.tests.factories import MembershipFactory
from tables.asking import TableAnswer, ask_tables
from tables.evaluation import AskedQuestion, counts, evaluate, load_questions
from tables.execute import Result
from tables.models import BLOCK_ROWS, Table
from tables.schemas import load_schemas
from tables.services import correct_column

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

CORPUS = Path(__file__).parent / "corpus"
TODAY = date(2026, 4, 10)


def ask(question: str, collection: Collection | None = None) -> TableAnswer:
    tables = Table.objects.current()
    if collection:
        tables = tables.filter(collection=collection)
    return ask_tables(question, tables, today=TODAY)


def show(asked: list[AskedQuestion]) -> str:
    return "\n".join(f"{e.outcome} {e.question} => {e.computed} => {e.found}" for e in asked)


@pytest.mark.parametrize("name", ["development", "held_out", "development_2", "held_out_2"])
def test_questions_with_known_answers(corpus: Collection, name: str) -> None:
    asked = evaluate(load_questions(CORPUS / f"{name}.toml"), ask)
    found = counts(asked)
    assert found["right"] >= 0.8 * len(asked), show(asked)
    assert found["wrong"] <= 0.05 * len(asked), show(asked)
    with_rows = [each.has_right_rows for each in asked if each.has_right_rows is not None]
    assert sum(with_rows) >= 0.95 * len(with_rows), show(asked)


def computed(question: str, collection: Collection | None = None) -> Result:
    answer = ask(question, collection)
    assert answer.result is not None, answer
    return answer.result


def test_the_rows_are_the_evidence(corpus: Collection) -> None:
    result = computed("How many bikes cost more than 4,000?")
    assert (result.value, result.count) == (3.0, 3)
    assert result.explanation == "3 rows of bikes.xlsx where Price (EUR) > 4,000"
    assert [row.cells[0] for row in result.rows] == ["Ferry 500", "Trail X", "Ferry Max"]
    for row in result.rows:
        chunk = Chunk.objects.get(pk=row.chunk_id)
        assert chunk.text[row.start - chunk.start :].startswith(f"| {row.cells[0]}")


def test_groups_are_called_as_most_cells_are(collection: Collection, tmp_path: Path) -> None:
    """And rows without a name are no group that comes first."""
    rows = ["Ada,Laptop,100", "Ada,Laptop,200", "Ben,LAPTOP,300", ",laptop,900", "ben,Phone,50"]
    file = tmp_path / "purchases.csv"
    file.write_text("\n".join(["Buyer,Kind,Amount (EUR)", *rows]))
    ingest_inline(collection=collection, sources=discover([file]))
    groups = computed("average amount by kind", collection).groups
    assert [(each.name, each.value) for each in groups] == [("Laptop", 375.0), ("Phone", 50.0)]
    groups = computed("top 2 buyers", collection).groups
    assert [(each.name, each.value) for each in groups] == [("Ben", 350.0), ("Ada", 300.0)]
    groups = computed("number of different buyers by kind", collection).groups
    assert [each.name for each in groups] == ["Laptop", "Phone"]


def test_files_of_one_shape_are_summed(corpus: Collection) -> None:
    result = computed("How much did we spend on travel?")
    assert result.value == pytest.approx(3935.75)
    assert result.unit == "USD"
    assert result.explanation == "6 rows of 3 files where Category = Travel"


def test_the_first_of_equals_are_all_named(corpus: Collection) -> None:
    result = computed("Which supplier has the most units?")
    assert {group.name for group in result.groups} == {"Norwerk", "Castillo"}


@pytest.fixture
def sales(collection: Collection) -> Collection:
    """Two files of one shape, one longer than a block."""
    rows = {
        "north.csv": [("Oslo", n % 900, "tools") for n in range(BLOCK_ROWS + 10)],
        "south.csv": [("Rome", 899, "Tools"), ("Rome", "n/a", "tools"), ("Bari", 5, "BOOKS")],
    }
    for name, lines in rows.items():
        text = "".join(f"{place},{amount},{kind}\n" for place, amount, kind in lines)
        data = f"City,Amount (EUR),Category\n{text}".encode()
        source = Source(name, name, len(data), lambda data=data: data)  # type: ignore[misc]
        ingest_inline(collection=collection, sources=[source])
    return collection


def test_cells_that_are_written_differently_are_one_group(sales: Collection) -> None:
    tools = [n % 900 for n in range(BLOCK_ROWS + 10)] + [899]
    for question, values in {
        "Total amount by category": [5, sum(tools)],
        "Average amount by category": [5, sum(tools) / len(tools)],
        "How many rows by category?": [1, len(tools) + 1],
    }.items():
        result = computed(question, sales)
        assert [group.value for group in result.groups] == pytest.approx(values), question
        assert [group.count for group in result.groups] == [1, len(tools) + 1]
        assert result.count == len(tools) + 2
    assert computed("Total amount where category is tools", sales).value == sum(tools)


def test_the_highest_are_named_with_those_that_equal_the_last_of_them(sales: Collection) -> None:
    north, south = Table.objects.filter(collection=sales).order_by("document__key")
    result = computed("What are the top 2 rows by amount?", sales)
    assert [(row.table_id, row.ordinal) for row in result.rows] == [(north.pk, 899), (south.pk, 0)]
    assert result.count == BLOCK_ROWS + 12  # all with an amount
    result = computed("Which row has the highest amount where city is Rome?", sales)
    assert [(row.table_id, row.ordinal) for row in result.rows] == [(south.pk, 0)]
    assert result.count == 1
    result = computed("What are the top 3 rows by amount?", sales)
    assert [row.cells[1] for row in result.rows] == ["899", "899", "898"]
    result = computed("Which row has the lowest amount?", sales)
    assert [(row.table_id, row.ordinal) for row in result.rows] == [(north.pk, 0), (north.pk, 900)]


def test_the_first_rows_that_count_are_shown_in_their_order(sales: Collection) -> None:
    result = computed("How many rows have an amount above 895?", sales)
    assert result.count == 5
    assert [(row.cells[0], row.ordinal) for row in result.rows] == [
        *(("Oslo", 896 + n) for n in range(4)),
        ("Rome", 0),
    ]


def test_months_are_groups(corpus: Collection) -> None:
    result = computed("Total expenses by month")
    assert [(group.name, group.count) for group in result.groups] == [
        ("2026-01", 5),
        ("2026-02", 5),
        ("2026-03", 6),
    ]


def test_what_a_user_may_not_see_is_not_counted(corpus: Collection) -> None:
    """Nor named: to this user it is not there."""
    owner = MembershipFactory(workspace=corpus.workspace).user
    member = MembershipFactory(workspace=corpus.workspace, role=Role.VIEWER).user
    document = Document.objects.get(key__endswith="bikes.xlsx")
    update_document(document=document, access=[f"user:{owner.pk}"])
    question = "How many bikes cost more than 4,000?"
    assert ask_tables(question, Table.objects.current().visible_to(owner)).result
    answer = ask_tables(question, Table.objects.current().visible_to(member))
    assert answer.result is None
    assert not any("Price (EUR)" in plan.columns for plan in answer.readings)
    outsider = MembershipFactory().user
    assert ask_tables(question, Table.objects.current().visible_to(outsider)) == TableAnswer()


def test_schemas_are_made_once_for_all_who_see_the_same_tables(corpus: Collection) -> None:
    owner = MembershipFactory(workspace=corpus.workspace).user
    member = MembershipFactory(workspace=corpus.workspace, role=Role.VIEWER).user
    tables = Table.objects.current()
    assert load_schemas(tables.visible_to(owner)) is load_schemas(tables.visible_to(member))
    document = Document.objects.get(key__endswith="bikes.xlsx")
    update_document(document=document, access=[f"user:{owner.pk}"])
    bikes = Table.objects.get(document=document)
    assert bikes.pk in {each.id for each in load_schemas(tables.visible_to(owner))}
    assert bikes.pk not in {each.id for each in load_schemas(tables.visible_to(member))}
    correct_column(table=bikes, column="Price (EUR)", name="Cost")
    (schema,) = (each for each in load_schemas(tables.visible_to(owner)) if each.id == bikes.pk)
    assert "Cost" in {column.name for column in schema.columns}
    assert bikes.pk not in {each.id for each in load_schemas(tables.visible_to(member))}


def test_a_question_without_measure_asks_no_database(
    django_assert_num_queries: Any, corpus: Collection
) -> None:
    with django_assert_num_queries(0):
        assert ask("Tell me about the brakes.") == TableAnswer()


def test_questions_of_an_evaluation_are_checked(tmp_path: Path) -> None:
    (tmp_path / "questions.toml").write_text('[[questions]]\nquestion = "How many?"\n')
    with pytest.raises(InvalidInput, match="value, values, groups"):
        load_questions(tmp_path)


def test_the_command_counts_by_kind(
    corpus: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = [
        'question = "How many bikes cost over 4,000?"\nkind = "above"\nvalue = 3\nrows = [1, 2, 3]',
        'question = "Which bike is the cheapest?"\nkind = "least"\nvalue = "Ferry 500"',
        'question = "How do I repair a brake?"\nkind = "other"\nnothing = true',
    ]
    (tmp_path / "questions.toml").write_text("".join(f"[[questions]]\n{each}\n" for each in blocks))
    call_command(
        *("tables", "evaluate", str(tmp_path), "--collection", corpus.slug),
        *("--workspace", corpus.workspace.slug),
    )
    assert capsys.readouterr().out.splitlines() == [
        "3 questions: 2 right, 1 wrong, 0 not answered.",
        "  above: 1 right, 0 wrong, 0 not answered",
        "  least: 0 right, 1 wrong, 0 not answered",
        "  other: 1 right, 0 wrong, 0 not answered",
        "Rows shown: 0 of 1 right.",
    ]


def test_a_share_says_of_how_many_rows(corpus: Collection) -> None:
    result = computed("what share of bookings came from booking.com")
    assert (result.value, result.unit, result.count) == (40.0, "%", 4)
    assert result.explanation == (
        "4 rows of guesthouse-bookings.ods where Channel = Booking.com, of 10"
    )


def test_a_mean_over_months_has_the_months(corpus: Collection) -> None:
    result = computed("durchschnittliche stunden pro monat in der zeiterfassung")
    assert result.value == pytest.approx(79 / 3)
    assert [group.value for group in result.groups] == [29.25, 33.5, 16.25]


def test_a_mean_is_of_all_groups_however_many_are_shown(
    corpus: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tables.execute.MAX_GROUPS", 2)
    result = computed("average number of bookings per channel")
    assert len(result.groups) == 2
    assert result.value == pytest.approx(10 / 4)


def test_the_extremes_of_groups(corpus: Collection) -> None:
    result = computed("highest rating per branch")
    assert {group.name: group.value for group in result.groups} == {
        "Hull": 4.0,
        "Leeds": 5.0,
        "York": 5.0,
    }
    assert result.count == 12


def test_the_rows_of_the_first_month_are_its_evidence(corpus: Collection) -> None:
    result = computed("qué mes gastamos más agua")
    assert result.groups[0].name == "2026-03"
    assert {row.cells[0] for row in result.rows} == {"31/03/2026"}


def test_a_misspelt_value_is_named_in_the_explanation(corpus: Collection) -> None:
    result = computed("wie viele filialen gibt es in hambrug")
    assert result.value == 3.0
    assert "„hambrug“ gelesen als „Hamburg“" in result.explanation


def test_nothing_and_zero_are_empty(corpus: Collection) -> None:
    result = computed("welche filialen haben keine parkplätze")
    assert {row.cells[0] for row in result.rows} == {"Eppendorf", "Findorff"}


def test_one_of_two_conditions_is_enough(corpus: Collection) -> None:
    result = computed("facturas vencidas o de más de 2000 euros")
    assert {row.cells[0] for row in result.rows} == {"F26-03", "F26-04", "F26-06"}
    assert result.explanation.endswith("con Importe > 2.000 o Estado = vencida")


def test_the_command_counts(corpus: Collection, capsys: pytest.CaptureFixture[str]) -> None:
    call_command(
        *("tables", "evaluate", str(CORPUS / "development.toml"), "--failures"),
        *("--collection", corpus.slug, "--workspace", corpus.workspace.slug),
    )
    assert capsys.readouterr().out == "30 questions: 30 right, 0 wrong, 0 not answered.\n"
