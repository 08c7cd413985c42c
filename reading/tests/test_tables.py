"""Tables are found in a text, whole and with their rows' places."""

from hypothesis import given
from hypothesis import strategies as st

from reading.parsers.csv import parse_csv
from reading.parsers.table_writer import table_blocks
from reading.tables import MAX_COLUMNS, ParsedTable, tables_of


def only(text: str) -> ParsedTable:
    (table,) = tables_of(text)
    return table


def test_blocks_with_the_same_header_are_one_table() -> None:
    rows = [[f"Bike {n}", f"{n * 100}.50", "a remark of some length"] for n in range(100)]
    text = "# Prices\n\n" + "\n\n".join(table_blocks(["Item", "Price", "Remark"], rows))
    assert text.count("| Item | Price | Remark |") > 5
    table = only(text)
    assert (table.name, table.names) == ("Prices", ["Item", "Price", "Remark"])
    assert list(table.rows()) == rows
    assert [text[start:].startswith(f"| Bike {n} ") for n, start in enumerate(table.starts)] == [
        True
    ] * 100


def test_long_rows_are_read_from_their_lists() -> None:
    rows = [["A", "1", "short"], ["B: x", "2", "long: " + "word " * 100], ["C", "", "two\nlines"]]
    text = "\n\n".join(table_blocks(["Name", "Number: n", "Text"], rows))
    assert "Row 2:" in text
    assert list(only(text).rows()) == [[cell.strip() for cell in row] for row in rows]


def test_a_table_of_long_rows_alone_has_its_columns() -> None:
    data = ("Name,Text\n" + "".join(f"{n},{'word ' * 100}\n" for n in range(3))).encode()
    table = only(parse_csv(data, name="notes.csv").text)
    assert table.names == ["Name", "Text"]
    assert [row[0] for row in table.rows()] == ["0", "1", "2"]


def test_authors_write_tables_in_other_ways() -> None:
    text = "Name | Price\n:--- | ---:\nBike \\| red | 5\nHelmet | 7\n\nNo table | here\n"
    table = only(text)
    assert list(table.rows()) == [["Bike | red", "5"], ["Helmet", "7"]]


def test_code_and_quotations_hold_no_tables() -> None:
    table = "| a | b |\n| - | - |\n| 1 | 2 |\n"
    assert tables_of(f"```\n{table}```\n") == []
    assert tables_of("> " + table.replace("\n", "\n> ")) == []


def test_each_heading_begins_another_table() -> None:
    table = "| a | b |\n| - | - |\n| 1 | 2 |\n\n"
    found = tables_of(f"# One\n\n{table}## Two\n\n{table}# Three\n\nText.\n\n{table}{table}")
    assert [(each.heading_path, len(each.starts)) for each in found] == [
        (("One",), 1),
        (("One", "Two"), 1),
        (("Three",), 2),
    ]


def test_totals_do_not_count_twice() -> None:
    text = "| Item | Price |\n| - | - |\n| A | 5 |\n| B | 7.5 |\n| Total: | 12.50 |\n"
    table = only(text)
    table.leave_out_total(table.types())
    assert [row[0] for row in table.rows()] == ["A", "B"]
    other = only(text.replace("12.50", "99"))
    other.leave_out_total(other.types())
    assert len(other.starts) == 3


def test_what_is_beyond_the_limits_is_counted() -> None:
    names = " | ".join(f"c{n}" for n in range(MAX_COLUMNS + 3))
    dashes = " | ".join("-" for _ in range(MAX_COLUMNS + 3))
    text = f"| {names} |\n| {dashes} |\n" + f"| {names} |\n" * 5
    (table,) = tables_of(text, max_rows=3)
    assert (len(table.names), table.columns_left_out) == (MAX_COLUMNS, 3)
    assert (len(table.starts), table.rows_left_out) == (3, 2)
    assert all(len(row) == MAX_COLUMNS for row in table.rows())


CELL = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), max_size=30).map(
    lambda text: " ".join(text.split()).replace("\\", "/")
)


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=30))
def test_what_the_writer_writes_is_read_back(rows: list[list[str]]) -> None:
    text = "\n\n".join(table_blocks(["One", "Two", "Three"], rows))
    found = [row for table in tables_of(text) for row in table.rows()]
    assert found == [row for row in rows if any(row)]
