"""Content that Word, PowerPoint, Excel and OpenDocument share: numbers as a spreadsheet shows them
(`format_number`), lists, tables, charts, and the text of drawings."""

import datetime
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

from reading.parsers.markdown_writer import MarkdownWriter, single_line
from reading.parsers.office_package import (
    A,
    Element,
    M,
    OfficePackage,
    R,
    alternative_content,
    local_name,
    parse_integer,
)
from reading.parsers.table_writer import joined_names, table_blocks

GENERAL = "General"
#: https://learn.microsoft.com/dotnet/api/documentformat.openxml.spreadsheet.numberingformat
BUILT_IN = {
    0: GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss",
} | dict.fromkeys([*range(27, 37), *range(50, 59)], "yyyy-mm-dd")  # fmt: skip

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<duration>h+|m+|s+)\]|\[[^\]]*\]|(?P<digits>[0#?][0#?.,]*|\.[0#?]+)"
    r"|(?P<power>E[+-])|(?P<date>y+|m+|d+|h+|s+|AM/PM|A/P)|(?P<other>.)",
    re.I | re.S,
)
_MAX_DATE_SERIAL = 2_958_466  # the first day of the year 10000
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip

Formatter = Callable[[float], str]


def format_number(number: float, code: str, *, since_1904: bool = False) -> str:
    """`number` in the format `code`, without thousands separators, which would split words.

    A format with month and year only gives `March 2024`. `since_1904`: the date system of old Macs.
    """
    if not math.isfinite(number):
        return format_general(number)
    return _make_formatter(code, since_1904)(number)


def format_general(number: float) -> str:
    """The shortest representation as displayed: 0.1 + 0.2 is 0.3."""
    whole = abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else f"{number:.10g}"


_SECTION = re.compile(r'((?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[])*)(?:;|$|(?=["\\\[]))', re.S)
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)(-?[0-9.]+)\]")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "<>": operator.ne,
}  # fmt: skip


@lru_cache(maxsize=1024)
def _make_formatter(code: str, since_1904: bool) -> Formatter:
    sections = [match[1] for match in _SECTION.finditer(code) if match[0]] or [code]
    conditions = [_CONDITION.search(section) for section in sections]
    if not any(conditions):  # the format of positive numbers
        return _section_formatter(sections[0], since_1904)
    choices = [
        (condition, _section_formatter(section, since_1904))
        for condition, section in zip(conditions, sections, strict=True)
    ]

    def choose(number: float) -> str:
        for condition, show in choices:
            if condition is None or _COMPARE[condition[1]](number, float(condition[2])):
                return show(number)
        return format_general(number)

    return choose


def _section_formatter(code: str, since_1904: bool) -> Formatter:
    tokens = list(_TOKEN.finditer(code))
    kinds = {match.lastgroup for match in tokens}
    if code == GENERAL or "power" in kinds:
        return format_general
    if "duration" in kinds:
        return _format_duration
    if "date" in kinds:
        letters = "".join(match["date"] or " " for match in tokens).lower()
        return lambda number: _format_date(number, letters, since_1904)
    digits = [match["digits"] for match in tokens if match["digits"]]
    if len(digits) > 1 and all(re.fullmatch("[0#?]+", each) for each in digits):
        return _mask_formatter(tokens)
    if len(digits) != 1:  # text
        return format_general
    return _number_formatter(tokens, digits[0])


def _mask_formatter(tokens: list[re.Match[str]]) -> Formatter:
    """Digits in groups, as telephone numbers have, with what is between them."""
    places = "".join(match["digits"] or "" for match in tokens)
    if any(match["other"] == "/" for match in tokens):  # a fraction
        return format_general

    def show(number: float) -> str:
        if number < 0 or number != int(number):
            return format_general(number)
        digits = str(int(number)).rjust(len(places), "\0")
        first, digits = digits[: len(digits) - len(places) + 1], digits[-len(places) + 1 :]
        given = iter([first, *digits])
        shown = ""
        for match in tokens:
            for place in match["digits"] or "":
                shown += next(given).replace("\0", "0" if place == "0" else "")
            shown += match["quoted"] or match["escaped"] or match["other"] or ""
        return " ".join(shown.split())

    return show


def _number_formatter(tokens: list[re.Match[str]], digits: str) -> Formatter:
    """A number with its currency, unit or percent sign."""
    at = next(index for index, match in enumerate(tokens) if match["digits"])
    before, after = (_literal_text(side) for side in (tokens[:at], tokens[at + 1 :]))
    whole, _, fraction = digits.partition(".")
    zeros = whole.count("0")
    most, least = len(fraction.rstrip(",")), fraction.count("0")
    trailing = len(digits) - len(digits.rstrip(","))
    factor = (100.0 if "%" in after else 1.0) / 1000**trailing

    def show(number: float) -> str:
        text = _round_text(abs(number) * factor, most, least)
        sign = "-" if number < 0 and text.strip("0.") else ""
        left, point, right = text.partition(".")
        text = f"{left.zfill(zeros)}{point}{right}"
        return f"{sign}{before}{text}{after}".strip()

    return show


def _literal_text(tokens: list[re.Match[str]]) -> str:
    texts = (
        match["quoted"] or match["escaped"] or match["currency"] or match["other"] or ""
        for match in tokens
    )
    text = "".join(texts).replace("(", "").replace(")", "").rstrip()
    return re.sub(r"\s+", " ", text)


def _round_text(number: float, most: int, least: int) -> str:
    try:
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-min(most, 15)), ROUND_HALF_UP)
    except InvalidOperation:
        return format_general(number)
    text = f"{exact:f}"
    if most > least and "." in text:
        text = text.rstrip("0").rstrip(".")
        missing = least - len(text.partition(".")[2])
        if missing > 0:
            text += ("" if "." in text else ".") + "0" * missing
    return text


def _format_duration(days: float) -> str:
    """h:mm:ss; hours may exceed a day."""
    seconds = round(abs(days) * 86_400)
    sign = "-" if days < 0 and seconds else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _format_date(serial: float, date_codes: str, since_1904: bool) -> str:
    if not 0 <= serial < _MAX_DATE_SERIAL:
        return format_general(serial)
    first = datetime.datetime(1904, 1, 1) if since_1904 else datetime.datetime(1899, 12, 30)
    # Day 60 is 29 February 1900, which never existed.
    days = serial + 1 if serial < 60 and not since_1904 else serial
    moment = first + datetime.timedelta(seconds=round(days * 86_400))
    has_day, has_clock = "d" in date_codes, "h" in date_codes or "s" in date_codes
    has_date = has_day or "y" in date_codes or "mmm" in date_codes
    if has_clock or not has_date:
        if has_date and serial >= 1:
            return moment.isoformat(sep=" ", timespec="minutes")
        return moment.time().isoformat() if has_clock and serial < 1 else moment.isoformat(sep=" ")
    if has_day:
        return moment.date().isoformat()
    return f"{_MONTHS[moment.month - 1]} {moment.year}" if "m" in date_codes else str(moment.year)


_MARKDOWN_NUMBER = re.compile(r"[0-9]{1,9}[.)]")


@dataclass(slots=True)
class Paragraph:
    """Line breaks are `\\n`; notes and drawings follow the paragraph."""

    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    drawings: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


class ListWriter:
    """Nested Markdown lists from paragraphs with list levels. `item` opens one and its text
    follows; `end` closes all."""

    def __init__(self, out: MarkdownWriter) -> None:
        self._out = out
        self._depth = 0

    def item(self, level: int, label: str = "") -> None:
        """An item of `level`, from 0; `label` is its displayed number, such as `2.` or `(a)`."""
        self._out.end_block()
        level = min(level, self._depth)
        while self._depth > level + 1:
            self._close()
        if self._depth > level:
            self._out.close()
        else:
            self._out.open_list()
            self._depth += 1
        marker = f"{label} " if _MARKDOWN_NUMBER.fullmatch(label) else "- "
        self._out.open(marker, " " * len(marker))
        if marker == "- " and label:
            self._out.write(f"{label} ")

    def end(self) -> None:
        self._out.end_block()
        while self._depth:
            self._close()

    def _close(self) -> None:
        self._out.close()
        self._out.close_list()
        self._depth -= 1


#: A longer cell keeps its lines, and its row becomes a list of the columns.
_MAX_LINE_CHARACTERS = 200
#: Merged cells with more text say more than a row needs to repeat.
_MAX_REPEATED = 100


def cell_text(lines: Sequence[str]) -> str:
    """The paragraphs of a cell, joined on one line if they are short."""
    separator = "\n" if sum(map(len, lines)) > _MAX_LINE_CHARACTERS else " "
    return separator.join(line for line in lines if line)


#: In the rows of `write_table`: the cell to the left covers this one.
FROM_LEFT = "\0"


def write_table(out: MarkdownWriter, rows: Sequence[Sequence[str | None]]) -> None:
    """Write rows, the first with the column names; a cell is None if the one above covers it, and
    FROM_LEFT if the one beside it does.

    Every row of a merged cell gets its text, so that it makes sense wherever the table is cut, and
    a name over several columns is the name of each, before that which stands below it. A lone cell
    above the names is a caption. Empty rows and columns are dropped.
    """
    filled: list[list[str]] = []
    for row in rows:
        above = dict(enumerate(filled[-1])) if filled else {}
        repeated = {at: text for at, text in above.items() if len(text) <= _MAX_REPEATED}
        filled.append(
            [repeated.get(at, "") if cell is None else cell for at, cell in enumerate(row)]
        )
    table = [row for row in filled if any(cell not in {"", FROM_LEFT} for cell in row)]
    columns = {at for row in table for at, cell in enumerate(row) if cell not in {"", FROM_LEFT}}
    width = max(columns, default=-1) + 1
    table = [[*row, *[""] * (width - len(row))] for row in table]
    while table and (len(table) == 1 or sum(cell not in {"", FROM_LEFT} for cell in table[0]) == 1):
        for cell in table.pop(0):
            if cell not in {"", FROM_LEFT}:
                out.write(cell)
                out.end_block()
    if not table:
        return
    header = table.pop(0)
    names = repeat_from_left(header)
    body = [["" if cell == FROM_LEFT else cell for cell in row] for row in table]
    if FROM_LEFT in header and has_second_header(header, body):
        names = joined_names(names, body.pop(0))
    kept = sorted(columns)
    write_rows(out, [names[at] for at in kept], ([row[at] for at in kept] for row in body))


def repeat_from_left(row: Sequence[str]) -> list[str]:
    """The cells, with the text of those that cover others in each of these."""
    cells: list[str] = []
    for cell in row:
        cells.append(cells[-1] if cell == FROM_LEFT and cells else cell.strip(FROM_LEFT))
    return cells


def has_second_header(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of `rows` has names of columns, below names of groups of them: it differs
    from the figures below it, or repeats what reaches down from above."""
    if len(rows) < 2:
        return False
    first, second = rows[0], rows[1]
    texts = [text for text in first if text]
    if len(texts) < 2 or not all(is_name(text) for text in texts):
        return False
    reaches_down = any(text and text == name for text, name in zip(first, header, strict=False))
    return reaches_down or any(text and not is_name(text) for text in second)


LETTER = re.compile(r"[^\W\d_]")
#: As the name of a column.
_YEAR_OR_DATE = re.compile(r"(?:19|20)\d\d(?:-\d\d-\d\d)?")


def is_name(text: str) -> bool:
    """Whether a cell may be the name of a column, and no figure."""
    return bool(LETTER.search(text) or _YEAR_OR_DATE.fullmatch(text))


def write_rows(
    out: MarkdownWriter,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    first_row: int = 1,
) -> None:
    """Write a table in blocks that each have the header; see `table_blocks`."""
    for block in table_blocks(header, rows, first_row=first_row):
        out.lines(block.split("\n"))


_C = A.replace("/main}", "/chart}")
_CACHE_TAGS = tuple(f"{_C}{name}" for name in ("strCache", "numCache", "strLit", "numLit", "lvl"))


def write_chart(out: MarkdownWriter, root: Element) -> None:
    """Titles, then a row for each category with the values of all series."""
    for title in root.iter(f"{_C}title"):
        out.write("".join(node.text or "" for node in title.iter(f"{A}t")))
        out.end_block()
    series = list(root.iter(f"{_C}ser"))
    names = [" ".join(node.text or "" for node in one.iterfind(f"{_C}tx//{_C}v")) for one in series]
    values = [_series_values(one, "val", "yVal") for one in series]
    categories = next(
        (found for one in series if (found := _series_values(one, "cat", "xVal"))), {}
    )
    places = sorted(set(categories).union(*values))
    rows = ([categories.get(at, ""), *(found.get(at, "") for found in values)] for at in places)
    write_rows(out, ["Category", *names], rows)


def _series_values(series: Element, *names: str) -> dict[int, str]:
    """The chart's cached values by position; several levels are joined."""
    found: dict[int, str] = {}
    for node in (child for name in names for child in series.iterfind(f"{_C}{name}")):
        for cache in node.iter(*_CACHE_TAGS):
            code = cache.findtext(f"{_C}formatCode")
            for point in cache.iterfind(f"{_C}pt"):
                at, text = parse_integer(point.get("idx")), point.findtext(f"{_C}v") or ""
                with suppress(ValueError):  # only numbers have a format
                    text = format_number(float(text), code) if code else " ".join(text.split())
                found[at] = f"{text} {found[at]}" if at in found else text
    return found


_GENERATED_DESCRIPTIONS = (
    "automatically generated",
    "ai-generated content",
    "automatisch generiert",
)


def write_drawing(out: MarkdownWriter, package: OfficePackage, part: str) -> None:
    """Write everything in a sheet's drawing part."""
    root = package.xml(part)
    for text in drawing_paragraphs(root):
        out.write(text)
        out.end_block()
    write_graphics(out, package, part, root)


def write_graphics(out: MarkdownWriter, package: OfficePackage, part: str, node: Element) -> None:
    """Write diagrams and charts that `node`, an element of `part`, refers to."""
    references = []
    for element in without_alternatives(node):
        name = local_name(element)
        reference = element.get(f"{R}dm" if name == "relIds" else f"{R}id")
        if reference and name in {"relIds", "chart"}:
            references.append(reference)
    relations = package.related(part) if references else {}
    for reference in references:
        _, target = relations.get(reference, ("", ""))
        root = package.optional_xml(target)
        if root is None:
            continue
        if local_name(root) == "dataModel":
            out.lines([f"- {text}" for text in drawing_paragraphs(root)])
        else:
            write_chart(out, root)


def drawing_paragraphs(node: Element) -> Iterator[str]:
    """The text of each DrawingML paragraph that has any, on one line."""
    for element in without_alternatives(node):
        if element.tag == f"{A}p" and (text := drawing_paragraph_text(element)):
            yield text


def drawing_paragraph_text(paragraph: Element) -> str:
    """The runs of a paragraph on one line, without slide numbers."""
    parts = []
    for node in paragraph.iter(f"{A}t", f"{A}br", f"{M}t"):
        parent = node.getparent()
        if parent is None or parent.get("type") != "slidenum":
            parts.append(" " if node.tag == f"{A}br" else node.text or "")
    return single_line("".join(parts))


def picture_description(node: Element) -> str:
    """The author's description of a picture, not a generated one."""
    words = single_line(node.get("descr", ""))
    return "" if any(said in words.lower() for said in _GENERATED_DESCRIPTIONS) else words


def without_alternatives(node: Element) -> Iterator[Element]:
    """The element and its descendants, with one branch of each alternative."""
    yield node
    for child in alternative_content(node) if local_name(node) == "AlternateContent" else node:
        yield from without_alternatives(child)
