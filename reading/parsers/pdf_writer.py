"""Blocks of a PDF's pages to one text: plain, or Markdown where there are headings, tables or
links. Begin with `write_pages`."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from reading.parsers.base import Heading, Limits, Page, Rendering
from reading.parsers.csv import has_header
from reading.parsers.pdf_layout import Block, TextBlock
from reading.parsers.pdf_lines import LINK, LINK_END, LINK_MIDDLE, LINK_START
from reading.parsers.pdf_tables import Table
from reading.parsers.table_writer import table_blocks


@dataclass(slots=True)
class PageBlocks:
    """The blocks of a page, its number from 1, and the name that its reader sees, such as `iv`."""

    number: int
    label: str = ""
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A bookmark: `page` is the number of its page, `level` counts from 1."""

    page: int
    level: int
    title: str


@dataclass(slots=True)
class _HeadingBlock:
    text: str
    title: str
    level: int


_Written = Block | _HeadingBlock


def write_pages(
    pages: Sequence[PageBlocks], outline: Sequence[OutlineEntry], limits: Limits
) -> tuple[str, Rendering, tuple[Heading, ...], tuple[Page, ...]]:
    """The text, how it is written, and where its headings and pages begin. Raises ParseError if it
    has too many characters."""
    _join_tables(pages)
    contents: list[list[_Written]] = [list(page.blocks) for page in pages]
    if not _add_outline(contents, pages, outline):
        contents = _add_headings_by_size(contents)
    is_markdown = any(
        not isinstance(block, TextBlock) or block.is_code or LINK_START in block.text
        for blocks in contents
        for block in blocks
    )
    writer = _Writer(is_markdown=is_markdown)
    places: list[Page] = []
    for page, blocks in zip(pages, contents, strict=True):
        offset = writer.begin_page(blocks)
        places.append(Page(offset, page.number, page.label))
        for block in blocks:
            writer.write(block)
        limits.check_characters(writer.length, "The PDF")
    rendering: Rendering = "markdown" if is_markdown else "plain"
    return "".join(writer.parts), rendering, tuple(writer.headings), tuple(places)


class _Writer:
    def __init__(self, *, is_markdown: bool) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.headings: list[Heading] = []
        self._is_markdown = is_markdown
        self._last: _Written | None = None
        self._gap = ""

    def begin_page(self, blocks: Sequence[_Written]) -> int:
        """The offset at which a page with these blocks begins."""
        first = blocks[0] if blocks else None
        self._gap = "\n\n" if self.parts else ""
        # A sentence across a page break is not split into two paragraphs.
        if (
            isinstance(self._last, TextBlock)
            and isinstance(first, TextBlock)
            and self._last.text[-1:].isalnum()
            and first.text[:1].islower()
        ):
            self._gap = "\n"
        if not blocks:
            self._gap = ""
        offset = self.length + len(self._gap)
        if self._gap and blocks:
            self._append(self._gap)
        self._gap = ""
        return offset

    def write(self, block: _Written) -> None:
        if self._gap:
            self._append(self._gap)
        match block:
            case Table():
                self._append("\n\n".join(_table_texts(block)))
            case _HeadingBlock():
                title = block.text.replace("\n", " ") if self._is_markdown else block.text
                self.headings.append(Heading(self.length, block.level, block.title))
                self._append(f"{'#' * min(block.level, 6)} {escape_markdown(title)}")
            case _:
                self._append(markdown_block(block) if self._is_markdown else block.text)
        self._last = block
        self._gap = "\n\n"

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)


def _table_texts(table: Table) -> Iterator[str]:
    rows = [[escape_markdown(cell) for cell in row] for row in table.rows]
    names = table.has_header if table.has_header is not None else has_header(table.rows)
    yield from table_blocks(rows[0] if names else [], rows[1:] if names else rows)


#: Columns of two tables are the same where their edges differ by less than this share of the width.
_SAME_EDGE = 0.06


def _join_tables(pages: Sequence[PageBlocks]) -> None:
    """Give the column names of a table to its continuation on the next page, once."""
    last: Table | None = None
    for page in pages:
        first = page.blocks[0] if page.blocks else None
        if isinstance(first, Table) and last is not None and _are_same_columns(last, first):
            if last.has_header is None:
                last.has_header = has_header(last.rows)
            is_own = first.has_header and first.rows[0] != last.rows[0]
            if last.has_header and not is_own:
                if first.rows[0] != last.rows[0]:
                    first.rows.insert(0, last.rows[0])
                first.has_header = True
            elif not last.has_header:
                first.has_header = False
        texts = [
            block for block in page.blocks if not (isinstance(block, TextBlock) and block.is_note)
        ]
        end = texts[-1] if texts else None
        last = end if isinstance(end, Table) else None


def _are_same_columns(table: Table, other: Table) -> bool:
    width = table.edges[-1] - table.edges[0]
    return len(table.edges) == len(other.edges) and all(
        abs(edge - its) <= _SAME_EDGE * width
        for edge, its in zip(table.edges, other.edges, strict=True)
    )


#: Numbering such as "4.2 " may stand between the line's start and the title.
_MAX_NUMBERING = 12


def find_title_line(page: str, title: str) -> tuple[int, int] | None:
    """Start and end in `page` of the lines with the outline entry `title`; None if there are
    none."""
    words = title.split()
    if not words:
        return None
    pattern = r"\s+".join(re.escape(word) for word in words[:40])
    for match in re.finditer(pattern, page, re.I):
        start = page.rfind("\n", 0, match.start()) + 1
        if match.start() - start <= _MAX_NUMBERING:
            end = page.find("\n", match.end())
            return start, end if end >= 0 else len(page)
    return None


def _add_outline(
    contents: list[list[_Written]], pages: Sequence[PageBlocks], outline: Sequence[OutlineEntry]
) -> bool:
    """Make headings of the lines with the titles of the outline; whether there are any.

    Other entries are left out, because a heading must point at its own words.
    """
    places = {page.number: index for index, page in enumerate(pages)}
    found = False
    for entry in outline:
        blocks = contents[places[entry.page]] if entry.page in places else []
        for index, block in enumerate(blocks):
            if not isinstance(block, TextBlock) or block.is_note:
                continue
            place = find_title_line(block.text, entry.title)
            if place is None or place[1] - place[0] > len(entry.title) + 2 * _MAX_NUMBERING:
                continue
            start, end = place
            heading = _HeadingBlock(block.text[start:end], entry.title, entry.level)
            pieces: list[_Written] = [heading]
            if before := block.text[:start].strip():
                pieces.insert(0, replace(block, text=before))
            if behind := block.text[end:].strip():
                pieces.append(replace(block, text=behind))
            blocks[index : index + 1] = pieces
            found = True
            break
    return found


_MAX_HEADING_LINES = 3
_MAX_HEADING_CHARACTERS = 200
_MAX_LEVELS = 5
#: A heading's font is at least this much larger than the text's.
_LARGER = 1.12
#: Where more of a text would be headings, it is set in large type, as slides are.
_MAX_HEADING_SHARE = 0.35
_NO_HEADING_END = (".", ",", ";", ":", "…", "!")


def _add_headings_by_size(contents: list[list[_Written]]) -> list[list[_Written]]:
    """Make headings of short paragraphs in a larger or bolder font than most of the text."""
    letters: Counter[float] = Counter()
    bold = total = 0
    for blocks in contents:
        for block in blocks:
            if isinstance(block, TextBlock):
                letters[round(block.size, 1)] += len(block.text)
                bold += len(block.text) if block.is_bold else 0
                total += len(block.text)
    if not total:
        return contents
    body = max(letters, key=lambda size: letters[size])
    candidates: list[tuple[TextBlock, float]] = []
    for blocks in contents:
        for block in blocks:
            if isinstance(block, TextBlock) and _may_be_heading(block):
                if block.size >= _LARGER * body:
                    candidates.append((block, round(block.size * 2) / 2))
                elif block.is_bold and block.size >= 0.97 * body and bold < 0.4 * total:
                    candidates.append((block, 0.0))
    for kinds in ((True, False), (True,)):
        chosen = [(block, size) for block, size in candidates if (size > 0) in kinds]
        if sum(len(block.text) for block, _ in chosen) <= _MAX_HEADING_SHARE * total:
            break
    else:
        return contents
    sizes = sorted({size for _, size in chosen}, reverse=True)
    levels = {id(block): min(sizes.index(size) + 1, _MAX_LEVELS) for block, size in chosen}
    return [
        [
            _HeadingBlock(block.text, " ".join(_unlinked(block.text).split()), levels[id(block)])
            if isinstance(block, TextBlock) and id(block) in levels
            else block
            for block in blocks
        ]
        for blocks in contents
    ]


def _may_be_heading(block: TextBlock) -> bool:
    text = block.text
    return (
        not block.is_note
        and not block.is_code
        and block.lines <= _MAX_HEADING_LINES
        and len(text) <= _MAX_HEADING_CHARACTERS
        and sum(map(str.isalpha, text)) >= max(2, 0.4 * len(text))
        and not text.endswith(_NO_HEADING_END)
        and text.count("\n") < 2
    )


def _unlinked(text: str) -> str:
    return LINK.sub(r"\1", text)


_BULLET = re.compile(r"[•▪◦‣·○●■□➢*+–](?=\s)")
_SIGN = re.compile(r"[\\`*_<\]~&]")
_NO_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # would escape what follows
    r"|`"
    r"|\*(?=\S)|(?<=\S)\*"
    r"|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)"
    r"|<(?=[A-Za-z/!?])(?!https?://)"
    r"|\](?=\()|~(?=~)|&(?=#?\w{1,32};)"
)
_PAIRED = frozenset("*_`")
#: What would begin another kind of block.
_BLOCK_MARK = re.compile(r"(?:#{1,6}(?=\s|$)|>|```|~~~|\[[^\]]+\]:|[=_-]{2,}\s*$|\|)")


def escape_markdown(text: str) -> str:
    """A line as Markdown that shows it to the letter; web links become Markdown's."""
    return _escape_start(_escape_signs(text))


def _escape_signs(text: str) -> str:
    """Signs inside lines, those that need a second one only where there are two."""

    def escaped(match: re.Match[str]) -> str:
        sign = match[0]
        return sign if sign in _PAIRED and text.count(sign) < 2 else f"\\{sign}"

    written = _NO_MARKUP.sub(escaped, text) if _SIGN.search(text) else text
    if LINK_START in written:
        written = LINK.sub(r"[\1](\2)", written)
        for mark in (LINK_START, LINK_MIDDLE, LINK_END):
            written = written.replace(mark, "")
    return written


def _escape_start(line: str) -> str:
    return f"\\{line}" if _BLOCK_MARK.match(line) else line


def markdown_block(block: TextBlock) -> str:
    """A paragraph or list as Markdown, with hard breaks where its lines end; code in a fence."""
    if block.is_code:
        fence = "`" * max(3, max(map(len, re.findall("`+", block.text)), default=0) + 1)
        return f"{fence}\n{block.text}\n{fence}"
    lines = _escape_signs(block.text).split("\n")
    written = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        bullet = _BULLET.match(line)
        text = f"- {_escape_start(line[1:].strip())}" if bullet else _escape_start(line)
        # Two spaces are a hard break; an item ends its line by itself.
        breaks = following and not _BULLET.match(following)
        written.append(f"{text}  " if breaks else text)
    return "\n".join(written)
