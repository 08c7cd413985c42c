"""Columns of four locales are typed, and their cells read, as their authors meant them."""

from datetime import date

import pytest

from reading.parsers.column_types import ColumnTypes, column_type, read_as

#: Language, name, cells, kind, unit, and the value of the first cell; None of a text.
COLUMNS = [
    # English, as in the United States
    ("en", "Price", ["$1,234.50", "$99.00", "$5"], "number", "USD", 1234.5),
    ("en", "Revenue", ["1,200", "3,400", "12,000"], "number", "", 1200.0),
    ("en", "Amount", ["(45.10)", "12.00", "-3.5"], "number", "", -45.1),
    ("en", "Share", ["12%", "7.5 %", "80%"], "number", "%", 12.0),
    ("en", "Date", ["3/14/2026", "4/1/2026", "12/31/2026"], "date", "", date(2026, 3, 14)),
    ("en", "Due", ["3/1/2026", "3/5/2026", "3/12/2026"], "date", "", date(2026, 3, 1)),
    ("en", "Ordered", ["March 3, 2026", "Apr 12, 2026"], "date", "", date(2026, 3, 3)),
    ("en", "Paid", ["yes", "no", "Yes"], "boolean", "", 1.0),
    ("en", "Collected", ["y", "n", "Y"], "boolean", "", 1.0),
    ("en", "Position", ["n", "s", "n"], "text", "", None),
    ("en", "Date in", ["02-Mar-26", "28-May-26"], "date", "", date(2026, 3, 2)),
    ("en", "ZIP", ["02139", "10001", "94103"], "text", "", None),
    ("en", "Phone", ["555-0100", "555-0101"], "text", "", None),
    # English, as in Great Britain and India
    ("en", "Total", ["£1,050.00", "£75.25"], "number", "GBP", 1050.0),
    ("en", "Date", ["25/12/2025", "01/02/2026", "13/03/2026"], "date", "", date(2025, 12, 25)),
    ("en", "Lakhs", ["12,34,567", "1,00,000"], "number", "", 1234567.0),
    ("en", "Weight", ["1.5 kg", "12 kg", "0.75 kg"], "number", "kg", 1.5),
    ("en", "When", ["2026-03-01T10:15", "2026-03-02T08:00"], "date", "", date(2026, 3, 1)),
    ("en", "Version", ["1.2.3", "1.10.0"], "text", "", None),
    ("en", "Size (mm)", ["12", "14.5", "9"], "number", "mm", 12.0),
    ("en", "Rate", ["1e-3", "2.5e4"], "number", "", 0.001),
    ("en", "Address", ["12 Main Street", "3 Oak Road"], "text", "", None),
    ("en", "Score", ["3.5", "n/a", "4", "-", "5"], "number", "", 3.5),
    # German, and Swiss
    ("de", "Preis", ["1.234,50 €", "99,00 €", "5 €"], "number", "EUR", 1234.5),
    ("de", "Umsatz", ["1.200", "3.400", "12.000"], "number", "", 1200.0),
    ("de", "Betrag", ["12,5", "1.000,25", "-3"], "number", "", 12.5),
    ("de", "Preis in EUR", ["12,50", "7,00"], "number", "EUR", 12.5),
    ("de", "Datum", ["14.03.2026", "1.4.2026"], "date", "", date(2026, 3, 14)),
    ("de", "Fällig", ["3. März 2026", "12. April 2026"], "date", "", date(2026, 3, 3)),
    ("de", "Bezahlt", ["ja", "nein", "Ja"], "boolean", "", 1.0),
    ("de", "PLZ", ["01067", "80331"], "text", "", None),
    ("de", "Menge", ["12 Stück", "3 Stück"], "number", "Stück", 12.0),
    ("de", "Anteil", ["12,5 %", "80 %"], "number", "%", 12.5),
    ("de", "Kosten", ["CHF 1'234.50", "CHF 99.00"], "number", "CHF", 1234.5),
    ("", "Betrag", ["1.200 €", "3.400 €"], "number", "EUR", 1200.0),
    # Spanish, and French
    ("es", "Precio", ["1.234,50 €", "99 €"], "number", "EUR", 1234.5),
    ("es", "Fecha", ["14/03/2026", "01/04/2026"], "date", "", date(2026, 3, 14)),
    ("es", "Fecha", ["3/4/2026", "3/4/2026"], "date", "", date(2026, 4, 3)),
    ("es", "Pedido", ["3 de marzo de 2026", "12 de abril de 2026"], "date", "", date(2026, 3, 3)),
    ("es", "Pagado", ["sí", "no", "sí"], "boolean", "", 1.0),
    ("es", "Activo", ["s", "n", "n"], "boolean", "", 1.0),
    ("es", "Total", ["2.500", "1.100"], "number", "", 2500.0),
    ("fr", "Montant", ["1 234,50", "99,00"], "number", "", 1234.5),
    ("fr", "Nom", ["Dupont", "Martin"], "text", "", None),
]


@pytest.mark.parametrize(("language", "name", "cells", "kind", "unit", "first"), COLUMNS)
def test_a_column_is_read_as_it_was_meant(
    language: str, name: str, cells: list[str], kind: str, unit: str, first: object
) -> None:
    found = column_type(cells, name=name, language=language)
    assert (found.kind, found.unit) == (kind, unit)
    value = found.date(cells[0]) if kind == "date" else found.number(cells[0])
    if kind != "text":
        assert value == first


@pytest.mark.parametrize(
    ("name", "unit"),
    [("Price EUR", "EUR"), ("Weight kg", "kg"), ("Share %", "%"), ("Class A", ""), ("Let in", "")],
)
def test_a_name_may_end_with_the_unit(name: str, unit: str) -> None:
    assert column_type(["5", "7.5"], name=name).unit == unit


def test_other_columns_settle_the_decimal_mark() -> None:
    assert column_type(["1.234", "2.500"], decimal=",").number("1.234") == 1234.0
    assert column_type(["1.234", "2.500"], decimal=".").number("1.234") == 1.234


def test_numbers_of_three_digits_without_a_mark_settle_it() -> None:
    assert column_type(["1.250", "980", "0"], language="en").number("1.250") == 1250.0
    assert column_type(["1,250", "980"], language="de").number("1,250") == 1250.0
    assert column_type(["1.250", "1980"], language="en").number("1.250") == 1.25
    assert column_type(["1.250", "98"], language="en").number("1.250") == 1.25


def test_amounts_of_several_currencies_have_no_sum() -> None:
    assert column_type(["5 EUR", "7 USD", "9 EUR"]).kind == "text"


def test_a_number_written_in_another_way_is_none() -> None:
    german = column_type(["1.234,50", "12,00"])
    assert german.number("1,234.50") is None
    assert german.number("1.234") == 1234.0
    assert german.number("12 kg") is None


def test_one_in_twenty_may_differ() -> None:
    assert column_type(["7"] * 19 + ["seven"]).kind == "number"
    assert column_type(["7"] * 9 + ["seven"]).kind == "text"


def test_a_curators_choice_is_read_as_far_as_it_goes() -> None:
    mixed = ["1.234,50 €", "on request", "99,00 €", "gift"]
    assert column_type(mixed).kind == "text"
    given = read_as("number", mixed)
    assert [given.number(cell) for cell in mixed] == [1234.5, None, 99.0, None]


def test_no_number_is_infinite() -> None:
    assert column_type(["1e400", "2e400"]).kind == "text"


def test_more_digits_than_a_double_holds_are_no_number() -> None:
    assert column_type(["4012345678901234567"]).kind == "text"


def test_types_are_those_of_named_columns() -> None:
    types = ColumnTypes()
    for row in (["1", "x", "2026-03-01", ""], ["2", "y", "2026-03-02", ""]):
        types.seen(row)
    assert types.types(["Number", "", "Day", "Note"]) == ["number", "date", "empty"]
