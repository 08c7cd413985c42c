"""Rows that a question names by a cell, typed as people do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.questions.named_rows import RowFinder, row_spans, weigh_rows

PARTS = """\
# Stock

| Part number | Description | Price (EUR) | Stock |
| --- | --- | --- | --- |
| AX-1042/B | Bolt M6 steel | 12.50 | 7 |
| AX-1043/B | Bolt M8 steel | 14.10 | 0 |
| 4711 | Nut | 0.30 | 900 |

| Name | Phone | Town |
| --- | --- | --- |
| Jürgen Adler | +49 30 77 | Berlin |
| Anna Adler | +49 30 78 | Berlin |
| Max Weiß | +49 30 79 | Berlin |
"""
LIST = """\
Row 12:

- Part number: QT 153.23
- Description: Valve
  with two seals
- Price: 9

After it.
"""


def best_row(question: str, text: str = PARTS) -> str:
    """The first cell of the best row that the question names; "" without one."""
    rows = RowFinder(question).find(text)
    if not rows:
        return ""
    best = max(rows, key=lambda row: row.score)
    return text[best.start : best.end].strip("| ").split(" | ")[0]


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("AX-1042/B", "AX-1042/B"),
        ("ax1042b", "AX-1042/B"),
        ("ax 1042 b price", "AX-1042/B"),
        ("What does AX-1042/B cost?", "AX-1042/B"),
        ("was kostet ax-1043/b?", "AX-1043/B"),
        ("¿cuánto cuesta AX-1043/B?", "AX-1043/B"),
        ("stock of part 4711", "4711"),
        ("price of AX-1043", "AX-1043/B"),
        ("bolt m8 steel", "AX-1043/B"),
        ("Jürgen Adler", "Jürgen Adler"),
        ("jurgen adler phone", "Jürgen Adler"),
        ("Juergen Adlers Telefon", "Jürgen Adler"),
        ("phone of Max Weiss", "Max Weiß"),
        ("Anna Adler's phone number", "Anna Adler"),
        ("Weiß phone", "Max Weiß"),
        ("Adler, Jürgen", "Jürgen Adler"),
        ("Lagerbestand 4711", "4711"),
    ],
)
def test_a_row_is_found_by_its_cell(question: str, row: str) -> None:
    assert best_row(question) == row


@pytest.mark.parametrize(
    "question", ["How are bolts made?", "the price of it all", "AX", "what is the stock", "7", "30"]
)
def test_other_questions_name_no_row(question: str) -> None:
    assert best_row(question) == ""


def test_a_row_written_as_a_list_is_found_by_its_cell() -> None:
    (row,) = RowFinder("qt153.23 price").find(LIST)
    assert LIST[row.start : row.end].startswith("Row 12:")
    assert "After" not in LIST[row.start : row.end]
    assert row.explained == 1.0


def test_a_header_is_understood_in_another_language() -> None:
    text = "| Kunde | Value |\n| - | - |\n| Adler GmbH | 12 |\n"
    (row,) = RowFinder("importe de Adler GmbH").find(text)
    assert row.score == 1.0


def test_a_name_may_have_two_characters() -> None:
    text = "| Ticket | Status |\n| - | - |\n| T-5 | open |\n| T-6 | closed |\n"
    (row,) = RowFinder("t6 status").find(text)
    assert text[row.start : row.end] == "| T-6 | closed |"


def test_what_the_row_and_its_header_do_not_say_counts_against_it() -> None:
    sure, unsure = (
        RowFinder(question).find(PARTS)[0].score
        for question in ("price of AX-1042/B", "who complained about AX-1042/B in the last audit")
    )
    assert sure == 1.0
    assert unsure < 0.5


def test_a_cell_of_many_rows_names_none_of_them() -> None:
    towns = RowFinder("Berlin").find(PARTS)
    name = RowFinder("Jürgen Adler").find(PARTS)
    assert len(towns) == 3
    assert max(weigh_rows([towns])[0]) < 0.3 < max(weigh_rows([name])[0])


def test_a_header_is_no_row() -> None:
    assert [PARTS[a:b].partition(" | ")[0] for a, b in row_spans(PARTS)] == [
        *("| AX-1042/B", "| AX-1043/B", "| 4711", "| Jürgen Adler", "| Anna Adler", "| Max Weiß"),
    ]


def test_a_passage_that_begins_within_a_table_has_rows() -> None:
    _, _, rest = PARTS.partition("--- |\n")
    assert best_row("AX-1042/B", rest) == "AX-1042/B"


def test_the_named_cells_are_told() -> None:
    finder = RowFinder("price of the bolt m6 steel AX-1042/B")
    assert finder.named_cells(["AX-1042/B", "Bolt M6 steel", "12.50", "7"]) == (0, 1)


def test_names_in_scripts_without_spaces_are_found() -> None:
    text = "| 品名 | 価格 |\n| - | - |\n| 電動自転車 | 980 |\n| 鍵 | 12 |\n"
    (row,) = RowFinder("電動自転車の価格").find(text)
    assert text[row.start : row.end].startswith("| 電動自転車")


@given(st.text("ab-| \n:1ßüRow", max_size=80), st.text("ab-| 1ßü", max_size=20))
def test_any_text_may_be_asked(text: str, question: str) -> None:
    for row in RowFinder(question).find(text):
        assert 0 <= row.start <= row.end <= len(text)
        assert 0 <= row.score <= 1
