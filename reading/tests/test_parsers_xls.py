"""Old and binary Excel workbooks: rows under the names of their columns."""

import datetime
import struct

import pytest

from reading.parsers import ParseError, parse
from reading.parsers.base import DEFAULT_LIMITS
from reading.parsers.xls import _cell_text
from reading.parsers.xls_formats import number_formats
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


def record(kind: int, body: bytes = b"") -> bytes:
    """A record of a part of .xlsb, with a body of less than 128 bytes."""
    number = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
    return number + bytes([len(body)]) + body


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(number: float, code: str) -> bytes:
    """A binary workbook of one number below a name, in the format `code`."""
    sheet = struct.pack("<II", 0, 1) + wide("rId1") + wide("Stock")
    format_ = record(44, struct.pack("<H", 164) + wide(code))
    styles = [record(47, struct.pack("<HHHHII", 0, of, 0, 0, 0, 0)) for of in (0, 164)]
    cell = struct.pack("<IId", 0, 1, number)
    main = f"{OFFICE}/officeDocument"
    return zipped(
        {
            "_rels/.rels": relations(main, "xl/workbook.bin"),
            "xl/_rels/workbook.bin.rels": relations(f"{OFFICE}/worksheet", "worksheets/sheet1.bin"),
            "xl/workbook.bin": record(131) + record(153, bytes(12)) + record(143)
            + record(156, sheet) + record(144) + record(132),
            "xl/styles.bin": record(278) + record(615, struct.pack("<I", 1)) + format_
            + record(616) + record(626) + styles[1] + record(627)
            + record(617, struct.pack("<I", 2)) + b"".join(styles) + record(618) + record(279),
            "xl/worksheets/sheet1.bin": record(129) + record(148, struct.pack("<4I", 0, 1, 0, 0))
            + record(145) + record(0, struct.pack("<I", 0) + bytes(13))
            + record(6, struct.pack("<II", 0, 0) + wide("Code"))
            + record(0, struct.pack("<I", 1) + bytes(13)) + record(5, cell)
            + record(146) + record(130),
        }
    )  # fmt: skip


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def relations(kind: str, target: str) -> str:
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    link = f'<Relationship Id="rId1" Type="{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{package}">{link}</Relationships>'


@pytest.mark.parametrize(
    ("number", "code", "shown"),
    [(1067.0, "00000", "01067"), (0.125, "0.0%", "12.5%"), (5550173.0, "000-0000", "555-0173")],
)
def test_numbers_of_binary_workbooks_are_as_excel_shows_them(
    number: float, code: str, shown: str
) -> None:
    assert shown in parse(xlsb(number, code), name="a.xlsb").text


@pytest.mark.parametrize("data", [xlsb(1067.0, "00000"), (CASES / "xls/masks.xls").read_bytes()])
def test_a_torn_workbook_has_no_formats(data: bytes) -> None:
    whole = number_formats(data, DEFAULT_LIMITS)
    assert any(whole.sheets.values())
    for length in range(0, len(data), 97):
        torn = number_formats(data[:length], DEFAULT_LIMITS)
        assert all(
            cells.items() <= whole.sheets.get(name, {}).items()
            for name, cells in torn.sheets.items()
        )


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
