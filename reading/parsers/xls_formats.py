"""What calamine does not tell of old (.xls, [MS-XLS]) and binary (.xlsb, [MS-XLSB]) workbooks:
number formats of cells, and whether there is a password. Begin with `number_formats`."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from reading.parsers.base import Limits, ParseError
from reading.parsers.office_content import BUILT_IN, GENERAL
from reading.parsers.outlook import CompoundFile
from reading.parsers.zip_archive import ZIP_ERRORS, ZipArchive, open_zip

# Records of .xls.
_FORMAT, _XF, _DATE_MODE, _SHEET = 0x041E, 0x00E0, 0x0022, 0x0085
_NUMBER, _RK, _FORMULA, _MANY_RK = 0x0203, 0x027E, 0x0006, 0x00BD
_END, _PASSWORD = 0x000A, 0x002F
# Records of .xlsb.
_B_ROW, _B_NUMBERS, _B_SHEET, _B_WORKBOOK = 0, frozenset({2, 5, 9}), 156, 153
_B_FORMAT, _B_XF, _B_STYLES_BEGIN, _B_STYLES_END = 44, 47, 617, 618

#: By row and column from 0; cells without a format of their own are left out.
Cells = dict[tuple[int, int], str]


@dataclass(slots=True)
class NumberFormats:
    """The formats of each sheet, by its name; days count from 1904 in workbooks of old Macs."""

    sheets: dict[str, Cells] = field(default_factory=dict)
    since_1904: bool = False


def number_formats(data: bytes, limits: Limits) -> NumberFormats:
    """What is found; a workbook that is not as it should be has its numbers without formats."""
    try:
        return _of_binary(data, limits) if data.startswith(b"PK") else _of_old(data)
    except (ParseError, struct.error, LookupError, ValueError, etree.XMLSyntaxError, *ZIP_ERRORS):
        return NumberFormats()


def has_password(data: bytes) -> bool:
    """Whether an old workbook is encrypted; one in a ZIP archive never is."""
    try:
        return any(kind == _PASSWORD for kind, _ in _old_records(_old_stream(data), 0))
    except (ParseError, struct.error, LookupError):
        return False


def _old_stream(data: bytes) -> bytes:
    """The stream `Workbook`; some programs write its name in capitals, Excel 95 `Book`."""
    file = CompoundFile(data)
    streams = {name.casefold(): entry for name, entry in file.children().items()}
    return file.read(streams["workbook"] if "workbook" in streams else streams["book"])


def _of_old(data: bytes) -> NumberFormats:
    stream = _old_stream(data)
    found = NumberFormats()
    own: dict[int, str] = {}
    styles: list[int] = []
    starts: dict[str, int] = {}
    for kind, body in _old_records(stream, 0):
        if kind == _FORMAT:
            own[_short(body, 0)] = _old_text(body, 2, _short(body, 2), header=3)
        elif kind == _XF:
            styles.append(_short(body, 2))
        elif kind == _DATE_MODE:
            found.since_1904 = _short(body, 0) == 1
        elif kind == _SHEET:
            name = _old_text(body, 6, body[6], header=2)
            starts[name] = struct.unpack_from("<I", body, 0)[0]
    codes = [own.get(number) or BUILT_IN.get(number, GENERAL) for number in styles]
    for name, start in starts.items():
        cells = found.sheets[name] = {}
        for kind, body in _old_records(stream, start):
            if kind in {_NUMBER, _RK, _FORMULA}:
                _add(cells, _short(body, 0), _short(body, 2), _short(body, 4), codes)
            elif kind == _MANY_RK:
                for at in range((len(body) - 6) // 6):
                    style = _short(body, 4 + 6 * at)
                    _add(cells, _short(body, 0), _short(body, 2) + at, style, codes)
    return found


def _add(cells: Cells, row: int, column: int, style: int, codes: list[str]) -> None:
    if style < len(codes) and codes[style] != GENERAL:
        cells[row, column] = codes[style]


def _short(body: bytes, at: int) -> int:
    return int(struct.unpack_from("<H", body, at)[0])


def _old_text(body: bytes, at: int, length: int, *, header: int) -> str:
    """A text whose length, in one or two bytes, and flags are a `header` at `at`."""
    start = at + header
    if body[start - 1] & 1:
        return body[start : start + 2 * length].decode("utf-16-le", "replace")
    return body[start : start + length].decode("latin-1")


def _old_records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The records of a substream that begins at `at`; those of charts in it are passed over."""
    depth = 0
    while at + 4 <= len(stream):
        kind, size = struct.unpack_from("<HH", stream, at)
        body = stream[at + 4 : at + 4 + size]
        at += 4 + size
        if kind == 0x0809:
            depth += 1
        elif kind == _END:
            depth -= 1
            if depth <= 0:
                return
        elif depth <= 1:
            yield kind, body


def _of_binary(data: bytes, limits: Limits) -> NumberFormats:
    found = NumberFormats()
    with open_zip(data, limits) as archive:
        links = etree.fromstring(
            _part(archive, "xl/_rels/workbook.bin.rels"),
            etree.XMLParser(resolve_entities=False, no_network=True),
        )
        targets = {link.get("Id"): link.get("Target", "") for link in links}
        codes = _binary_codes(_part(archive, "xl/styles.bin"))
        for kind, body in _binary_records(_part(archive, "xl/workbook.bin")):
            if kind == _B_WORKBOOK:
                found.since_1904 = bool(body[0] & 1)
            elif kind == _B_SHEET:
                link, end = _wide_text(body, 8)
                name, _ = _wide_text(body, end)
                target = targets[link]
                part = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
                found.sheets[name] = _binary_cells(_part(archive, part), codes)
    return found


def _part(archive: ZipArchive, name: str) -> bytes:
    return archive.open_in_memory(name.lower()).read()


def _binary_codes(styles: bytes) -> list[str]:
    """The format of each cell style."""
    own: dict[int, str] = {}
    codes: list[str] = []
    is_of_cells = False
    for kind, body in _binary_records(styles):
        if kind == _B_FORMAT:
            own[_short(body, 0)] = _wide_text(body, 2)[0]
        elif kind in {_B_STYLES_BEGIN, _B_STYLES_END}:
            is_of_cells = kind == _B_STYLES_BEGIN
        elif kind == _B_XF and is_of_cells:
            number = _short(body, 2)
            codes.append(own.get(number) or BUILT_IN.get(number, GENERAL))
    return codes


def _binary_cells(sheet: bytes, codes: list[str]) -> Cells:
    cells: Cells = {}
    row = 0
    for kind, body in _binary_records(sheet):
        if kind == _B_ROW:
            (row,) = struct.unpack_from("<I", body)
        elif kind in _B_NUMBERS:
            column, style = struct.unpack_from("<II", body)
            _add(cells, row, column, style & 0xFFFFFF, codes)
    return cells


def _wide_text(body: bytes, at: int) -> tuple[str, int]:
    """The text at `at`, and where it ends."""
    (length,) = struct.unpack_from("<I", body, at)
    end = at + 4 + 2 * length
    return body[at + 4 : end].decode("utf-16-le", "replace"), end


def _binary_records(part: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of a part; kind and size are numbers of seven bits a byte."""
    at = 0
    while at < len(part):
        kind, shift = part[at], 0
        at += 1
        if kind & 0x80:
            kind = (kind & 0x7F) | part[at] << 7
            at += 1
        size = 0
        for shift in range(0, 28, 7):
            byte = part[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        yield kind, part[at : at + size]
        at += size
