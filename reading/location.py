"""Where a passage is, in the words of its format: `page 3`, `page iv` where that stands on it,
`12:34` of a recording, `Prices!A12`, `row 7`. Begin with `location`. Chunks keep one number for all
of them, `page`."""

import re
from collections.abc import Iterator, Sequence

SUBTITLES = frozenset({"text/vtt", "application/x-subrip"})
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
OLD_WORKBOOK = "application/vnd.ms-excel"
BINARY_WORKBOOK = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
#: Of Excel and of OpenDocument, which are written alike.
WORKBOOKS = frozenset(
    {WORKBOOK, OLD_WORKBOOK, BINARY_WORKBOOK, "application/vnd.oasis.opendocument.spreadsheet"}
)
CSV = "text/csv"
#: In the metadata of a passage: what stands on its page, where that is not the page's number.
PAGE_LABEL = "page_label"

#: Time of a paragraph, as the parser of subtitles writes it.
_STAMP = re.compile(r"^\[(?:(\d+):)?(\d{1,2}):(\d\d)\] ", re.M)
_ROW = re.compile(r"(From row|Row) (\d{1,9}):")
_DASHES = re.compile(r"\|(?: - \|)+")
_SHEET = re.compile(r"^# (.+)$", re.M)
#: Of a sheet whose column names are in its first row.
FIRST_ROW = 2
_PLAIN_SHEET = re.compile(r"[^\W\d]\w*")


def location(
    media_type: str,
    number: int | None,
    *,
    heading_path: Sequence[str] = (),
    text: str = "",
    at: int = 0,
    label: object = None,
) -> str:
    """Where the character `at` of the passage `text` is; empty where that is not known.

    `number` is that of the passage's start: its page, the second of a recording, the row of a
    table. `label` is what stands on the page instead, if anything does.
    """
    if number is None:
        return ""
    if media_type in SUBTITLES:
        stamps = [match for match in _STAMP.finditer(text) if match.start() <= at]
        if stamps:
            hours, minutes, seconds = (int(part or 0) for part in stamps[-1].groups())
            number = hours * 3600 + minutes * 60 + seconds
        return clock(number)
    if media_type in WORKBOOKS and heading_path:
        sheet = heading_path[0]
        # A passage of several small sheets: of a later one the second row is the first below the
        # column names, or its number is written.
        titles = [match for match in _SHEET.finditer(text, 1) if match.start() <= at]
        if titles:
            start, sheet = titles[-1].start(), titles[-1][1]
            text, at, number = text[start:], at - start, FIRST_ROW
        if not _PLAIN_SHEET.fullmatch(sheet):
            sheet = "'" + sheet.replace("'", "''") + "'"
        return f"{sheet}!A{_row_at(text, number, at)}"
    if media_type == CSV:
        return f"row {_row_at(text, number, at)}"
    return f"page {label or number}"


def clock(seconds: int) -> str:
    """`12:34`, and `1:02:03` from an hour on."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def table_rows(text: str, number: int) -> Iterator[tuple[int, int]]:
    """Offset and number of every row in a text of tables as `table_blocks` writes them; the first
    row of a table begins with the column names. `number` is that of the first row, or of the one
    that the text begins within."""
    offset, following = 0, number
    announced: int | None = None
    for block in text.split("\n\n"):
        lines = block.split("\n")
        dashes = next((at for at, line in enumerate(lines[:2]) if _DASHES.fullmatch(line)), -1)
        is_torn = offset == 0 and not text.startswith(("|", "# ")) and dashes < 0
        if stated := _ROW.fullmatch(lines[0]):
            following = int(stated[2])
            if stated[1] == "Row":
                yield (offset if announced is None else announced), following
                following, announced = following + 1, None
            else:
                announced = offset
        elif block.startswith("|") or offset == 0:
            following += is_torn
            start = offset if announced is None else announced
            at, announced = offset, None
            for index, line in enumerate(lines):
                if index > dashes and line.startswith("|"):
                    yield (start if index == dashes + 1 else at), following
                    following += 1
                at += len(line) + 1
        offset += len(block) + 2


def _row_at(text: str, number: int, at: int) -> int:
    before = (row for offset, row in table_rows(text, number) if offset <= at)
    return max(before, default=number)
