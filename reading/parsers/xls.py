"""Excel before 2007 (.xls) and in binary (.xlsb): read by calamine, written as those of today."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from reading.location import BINARY_WORKBOOK, OLD_WORKBOOK
from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.markdown_writer import MarkdownWriter
from reading.parsers.normalise import normalise_text, without_invisible
from reading.parsers.office_content import GENERAL, format_number
from reading.parsers.office_package import office_document
from reading.parsers.xls_formats import NumberFormats, has_password, number_formats
from reading.parsers.xlsx import MAX_CELLS, Sheet, WorkbookWriter
from reading.parsers.zip_archive import open_zip


def parse_xls(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Workbooks without a password. Numbers are as Excel shows them, dates as ISO; sheets that no
    menu can show are left out."""
    if data.startswith(b"PK"):
        with open_zip(data, limits):  # no bomb
            pass
    with _calamine_errors():
        if has_password(data):
            raise PasswordError
        workbook = CalamineWorkbook.from_filelike(BytesIO(data))
    formats = number_formats(data, limits)
    out = MarkdownWriter()
    writer = WorkbookWriter(out)
    hidden: list[str] = []
    is_filled = False
    for about in workbook.sheets_metadata:
        title = " ".join(normalise_text(about.name).split())
        if about.visible != SheetVisibleEnum.Visible:
            hidden.append(title)
        is_shown = about.visible != SheetVisibleEnum.VeryHidden
        if not is_shown or about.typ != SheetTypeEnum.WorkSheet:
            continue
        with _calamine_errors():
            sheet = _read(workbook.get_sheet_by_name(about.name), formats, about.name, limits)
        if sheet.rows:
            writer.sheet(title, out.heading(1, title), sheet)
            is_filled = True
    if not is_filled:
        raise ParseError(
            "no_text", "The workbook has no filled cells. Check that the right file was saved."
        )
    text, headings = out.finish()
    return office_document(
        (text, headings),
        name=name,
        media_type=BINARY_WORKBOOK if data.startswith(b"PK") else OLD_WORKBOOK,
        metadata=({"hidden_sheets": hidden} if hidden else {}) | writer.metadata(),
        pages=writer.pages(text),
    )


def _read(table: Any, formats: NumberFormats, name: str, limits: Limits) -> Sheet:
    """The filled rows. Raises ParseError if there are too many cells or characters."""
    sheet = Sheet()
    filled = characters = 0
    first_row, first_column = table.start or (0, 0)
    codes = formats.sheets.get(name, {})
    for number, row in enumerate(table.to_python(skip_empty_area=True), start=first_row + 1):
        cells = {
            at: text
            for at, value in enumerate(row, start=first_column)
            if (text := _cell_text(value, codes.get((number - 1, at), GENERAL)))
        }
        if cells:
            sheet.rows.append((number, cells))
        filled += len(cells)
        characters += sum(map(len, cells.values()))
        if filled > MAX_CELLS or characters > limits.max_characters:
            raise ParseError(
                "too_large",
                f"A sheet has more than {MAX_CELLS:,} filled cells or "
                f"{limits.max_characters:,} characters. Split it.",
            )
    for (top, left), (bottom, right) in table.merged_cell_ranges or ():
        sheet.merged.append((top + 1, left, bottom + 1, right))
    return sheet


def _cell_text(value: object, code: str = GENERAL) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return format_number(float(value), code)
        case datetime.datetime():
            return value.isoformat(sep=" ").removesuffix(" 00:00:00")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            seconds = round(value.total_seconds())
            return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    text = without_invisible(normalise_text(str(value)))
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


@contextmanager
def _calamine_errors() -> Iterator[None]:
    """Errors of calamine, and its panics, which are no `Exception`, as ParseError."""
    try:
        yield
    except PasswordError as error:
        raise ParseError(
            "encrypted", "The workbook has a password. Open it, remove the password and save it."
        ) from error
    except BaseException as error:
        if not isinstance(error, CalamineError) and type(error).__name__ != "PanicException":
            raise
        raise ParseError(
            "malformed",
            f"The workbook is damaged ({str(error)[:200]}). Open it and save it as .xlsx.",
        ) from error
