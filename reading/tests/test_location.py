"""Where a passage is, as citations say it."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading.chunkers import get_chunker
from reading.location import CSV, WORKBOOK, location
from reading.parsers import parse
from reading.tests.factories_chunkers import minilm
from reading.tests.factories_office import xlsx


def places(data: bytes, name: str) -> dict[str, str]:
    """By the words `itemN`: what the passage with them says about where they are."""
    document = parse(data, name=name)
    found = {}
    for span in get_chunker("markdown", counter=minilm(), max_tokens=128).split(document):
        text, path = document.text[span.start : span.end], span.heading_path
        for match in re.finditer(r"item\d+", text):
            found[match[0]] = location(
                document.media_type, span.page, heading_path=path, text=text, at=match.start()
            )
    return found


@pytest.mark.parametrize(
    ("media_type", "number", "place"),
    [
        ("application/pdf", 3, "page 3"),
        ("text/vtt", 0, "00:00"),
        ("application/x-subrip", 3723, "1:02:03"),
        (CSV, 7, "row 7"),
        (WORKBOOK, 7, "Prices!A7"),
        ("text/plain", None, ""),
    ],
)
def test_a_number_is_said_in_the_words_of_its_format(
    media_type: str, number: int | None, place: str
) -> None:
    assert location(media_type, number, heading_path=["Prices"]) == place


def test_a_page_is_said_as_it_is_printed() -> None:
    assert location("application/pdf", 3, label="iv") == "page iv"
    assert location("application/pdf", 3, label="") == "page 3"


def test_of_a_recording_it_is_the_paragraph_that_counts() -> None:
    text = "and so on.\n\n[12:34] Ada: The price is 5."
    assert location("text/vtt", 700, text=text, at=text.index("price")) == "12:34"
    assert location("text/vtt", 700, text=text) == "11:40"


def test_a_sheet_whose_name_needs_quotes_has_them() -> None:
    assert location(WORKBOOK, 2, heading_path=["Bob's list"]) == "'Bob''s list'!A2"


@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.sampled_from(["row", "row", "row", "long", "lines", "gap", "note"]),
        min_size=3,
        max_size=15,
    ),
    st.integers(0, 2),
)
def test_every_row_of_a_workbook_is_found_where_it_is(kinds: list[str], above: int) -> None:
    rows: list[list[object]] = [*[["A title"], []][:above], ["Item", "Colour", "Price"]]
    for n, kind in enumerate(kinds):
        name = f"item{n:03}"
        rows.append(
            {
                "row": [name, "blue", n],
                "long": [name, "grey and long " * 30, n],
                "lines": [name, "one\ntwo", n],
                "gap": [],
                "note": [f"Note {n}"],
            }[kind]
        )
    book = xlsx({"Other": [["a", "b"], ["c", 1]], "Prices": rows})
    expected = {}
    for number, cells in enumerate(rows, start=1):
        if len(cells) == 3 and str(cells[0]).startswith("item"):
            expected[str(cells[0])] = f"Prices!A{number}"
    assert places(book, "a.xlsx") == expected


def test_every_row_of_a_csv_file_is_found_where_a_spreadsheet_shows_it() -> None:
    lines = ["name;note", *(f"item{n:03};{'long ' * (n % 7) * 20}" for n in range(2, 40))]
    found = places("\n".join(lines).encode(), "a.csv")
    assert found == {f"item{n:03}": f"row {n}" for n in range(2, 40)}
    assert places(b"Report\nname;note\nitem1;x\n", "a.csv") == {"item1": "row 3"}
