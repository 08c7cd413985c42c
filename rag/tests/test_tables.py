"""Questions that a table answers by its least or greatest number."""

import pytest

from rag.answering.extractive import extract_answer
from rag.answering.tables import extreme_rows, named_rows, priced_rows
from rag.tests.answering import passage

BIKES = """\
# Bikes

| Article | Description | Price EUR | Weight kg |
| - | - | - | - |
| W1 | Wren | 3490 | 34 |
| W0 | Wren without motor | 2,290 | 26 |
| F1 | Ferry with box | 5480 | 58 |
"""
PARTS = """\
# Parts

| Article | Description | Price EUR | Weight kg |
| - | - | - | - |
| P1 | Battery, small | 520 | 2.9 |
| P2 | Battery, large | 760 | 3.8 |
| P3 | Chain | 39 | 0.5 |
"""
GERMAN = """\
# Räder

| Modell | Preis | Gewicht |
| - | - | - |
| Wren | 3.490,00 € | 34 kg |
| Ferry | 980,50 € | 58 kg |
"""
PASSAGES = [
    passage(BIKES, 1, title="Price list", document_id=7),
    passage(PARTS, 2, title="Price list", document_id=7),
]


def first_cells(question: str, language: str = "en") -> list[str]:
    passages = PASSAGES if language == "en" else [passage(GERMAN, language="de")]
    return [row.cells[0] for row in extreme_rows(question, passages)]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("What is the price of the cheapest bike?", "W0"),
        ("which bike is the most expensive", "F1"),
        ("the heaviest bike", "F1"),
        ("Which bike has the lowest weight?", "W0"),
        ("What is the cheapest part?", "P3"),
        ("the most expensive battery", "P2"),
    ],
)
def test_the_row_with_the_least_or_greatest_number_comes_first(question: str, row: str) -> None:
    assert first_cells(question)[0] == row


@pytest.mark.parametrize(
    "question",
    [
        "What is the price of a bike?",
        "What is the cheapest hotel in Paris?",
        "Which bike has the longest name?",
        "Who is the tallest person?",
    ],
)
def test_a_table_about_something_else_answers_nothing(question: str) -> None:
    assert first_cells(question) == []


def test_numbers_are_read_as_they_are_written_in_german() -> None:
    assert first_cells("Welches Rad ist das billigste? Räder", "de") == ["Ferry", "Wren"]
    assert first_cells("Was ist das teuerste der Räder?", "de")[0] == "Wren"


def test_parts_of_a_table_that_was_cut_are_one() -> None:
    more = BIKES.replace("| W1 | Wren | 3490 | 34 |", "| O1 | Otter | 890 | 14 |")
    passages = [*PASSAGES, passage(more, 3, title="Price list", document_id=7)]
    assert extreme_rows("the cheapest bike", passages)[0].cells[0] == "O1"


def test_the_row_is_quoted_in_words() -> None:
    answer = extract_answer(
        "What is the price of the cheapest bike?", PASSAGES, query_language="en"
    )
    assert answer.is_extreme
    assert answer.cited[0].quote == "| W0 | Wren without motor | 2,290 | 26 |"
    assert "Article W0: Description Wren without motor, Price EUR 2,290, Weight kg 26 [1]" in (
        answer.text
    )
    quoted = answer.cited[0]
    assert BIKES[quoted.start : quoted.end] == quoted.quote


def test_a_price_is_that_of_the_row_that_names_the_thing() -> None:
    rows = priced_rows("how much is a battery", PASSAGES)
    assert [row.cells[0] for row in rows] == ["P1", "P2"]
    assert {row.cells[0] for row in priced_rows("what does a bike cost", PASSAGES)} == {
        "W1",
        "W0",
        "F1",
    }
    assert priced_rows("how much is a night in a hotel", PASSAGES) == []


def test_a_row_is_asked_for_by_its_cell() -> None:
    named = named_rows("what does the F1 weigh?", PASSAGES)
    assert [row.cells[0] for row in named] == ["F1"]
    assert named_rows("How are bikes with a motor made?", PASSAGES) == []
