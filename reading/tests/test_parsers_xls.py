"""Old and binary Excel workbooks: rows under the names of their columns."""

import datetime

import pytest

from reading.parsers import ParseError, parse
from reading.parsers.xls import _cell_text
from reading.tests.factories_office import zipped
from reading.tests.test_parsers_cases import CASES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "TRUE"),
        (1.0, "1"),
        (datetime.datetime(2024, 2, 29), "2024-02-29"),
        (datetime.datetime(2024, 2, 29, 7, 30), "2024-02-29 07:30:00"),
        (datetime.timedelta(hours=30, minutes=5), "30:05:00"),
        ("a\u00ad b\r\n c", "a b\nc"),
    ],
)
def test_cells_are_written_as_they_are_read(value: object, text: str) -> None:
    assert _cell_text(value) == text


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        ((CASES / "xls/old.xls").read_bytes()[:-512], "a.xls", "malformed"),
        (zipped({"xl/workbook.bin": "x"}), "a.xlsb", "malformed"),
        ((CASES / "docx/encrypted.docx").read_bytes(), "a.xls", "encrypted"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why(data: bytes, name: str, code: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(data, name=name)
    assert caught.value.code == code
