"""Rows of tables in words."""

import pytest

from reading.row_text import row_in_words, split_row


@pytest.mark.parametrize(
    ("names", "cells", "text"),
    [
        (
            ["Part", "Price (EUR)", "Stock"],
            ["AX-1042/B", "12.50", "7"],
            "Part AX-1042/B: Price 12.50 EUR, Stock 7",
        ),
        (["Part", "Price (EUR)"], ["AX", "on request"], "Part AX: Price (EUR) on request"),
        (["Name", "Towns", "Age"], ["Ana", "Bonn, Rome", "3"], "Name Ana: Towns Bonn, Rome; Age 3"),
        (["Name", "Phone", "Room"], ["Ana", "", "B1"], "Name Ana: Room B1"),
        (["Column 1", "Column 2"], ["PL-2", "Ferry"], "PL-2: Ferry"),
        ([], ["PL-2", "Ferry"], "PL-2: Ferry"),
        (["A", "B"], ["one\n two", ""], "A one two"),
        (["A"], [""], ""),
        (["A"], ["1", "2"], "A 1: 2"),
    ],
)
def test_a_row_says_which_column_a_value_is_of(
    names: list[str], cells: list[str], text: str
) -> None:
    assert row_in_words(names, cells) == text


def test_a_long_row_is_cut() -> None:
    assert row_in_words(["A"], ["x" * 50], most=10) == "A xxxxxxxx …"


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("| a | b |", ["a", "b"]),
        ("a | b", ["a", "b"]),
        ("| a\\|b |  |", ["a|b", ""]),
        ("|", [""]),
    ],
)
def test_a_line_is_split_at_its_bars(line: str, cells: list[str]) -> None:
    assert split_row(line) == cells
