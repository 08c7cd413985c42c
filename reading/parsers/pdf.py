"""PDF: paragraphs, tables and headings of each page without running heads, the document's metadata,
and which pages are only pictures of text. Begin with `parse_pdf`."""

import datetime
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pypdfium2.raw as pdfium
from pypdfium2 import PdfDocument, PdfiumError

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.charsets import odd_characters
from reading.parsers.normalise import json_safe, language_code, normalise_text, readable_title
from reading.parsers.pdf_layout import Block, TextBlock, page_blocks
from reading.parsers.pdf_lines import line_text, make_fragments, make_rows
from reading.parsers.pdf_page import PageContent, TextRun, page_label, read_page, wide_text
from reading.parsers.pdf_writer import OutlineEntry, PageBlocks, write_pages

_EXPORT_AGAIN = "Export the PDF again."
#: Pages whose words are in memory together, to find the lines that they share: some 200 kB a page.
_WINDOW = 100


def parse_pdf(
    data: bytes,
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    page_texts: Mapping[int, str] | None = None,
) -> ParsedDocument:
    """PDF, unencrypted or with an empty user password.

    Pages without text, or with one that means nothing, are empty and `scans`, unless `page_texts`
    has what was read off their pictures.
    """
    if _is_truncated(data):
        raise _broken_error(data, None)
    _check_streams(data)
    document = _open(data)
    try:
        return _read(document, data, name, limits, page_texts or {})
    finally:
        document.close()


_LOCKED = frozenset({pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY})
_NO_PAGES = re.compile(rb"/Type\s*/Pages\b[^<>]*/Count\s+0\b")


def _open(data: bytes) -> PdfDocument:
    try:
        document = PdfDocument(data)
        document.init_forms()
    except PdfiumError as error:
        # The code may be that of an earlier file.
        if _NO_PAGES.search(data):
            raise ParseError("no_text", f"The PDF has no pages. {_EXPORT_AGAIN}") from error
        if error.err_code in _LOCKED and b"/Encrypt" in data:
            raise ParseError(
                "encrypted", "The PDF is protected by a password. Save a copy without one."
            ) from error
        raise _broken_error(data, error) from error
    return document


def _read(
    document: PdfDocument, data: bytes, name: str, limits: Limits, page_texts: Mapping[int, str]
) -> ParsedDocument:
    count = len(document)
    if count > limits.max_pages:
        raise ParseError(
            "too_large",
            f"The PDF has {count:,} pages; {limits.max_pages:,} are allowed. Split it.",
        )
    reader = _PageReader(document, limits, page_texts)
    pages = list(reader.pages())
    text, rendering, headings, places = write_pages(pages, _outline(document), limits)
    if not text.strip() and not reader.scans:
        if reader.unreadable:
            raise _broken_error(data, None)
        raise ParseError("no_text", "The pages of the PDF are empty. Check that it was saved.")
    metadata = _metadata(document)
    if reader.unreadable:
        metadata["unreadable_pages"] = reader.unreadable
    # The title property, unless a program generated it.
    title = " ".join(str(metadata.get("title", "")).split())
    machine_made = title.lower().endswith((".doc", ".docx", ".pdf", ".indd", ".tex", ".dvi"))
    title_property = "" if machine_made or title.lower().startswith("untitled") else title
    return ParsedDocument(
        text=text,
        media_type="application/pdf",
        title=title_property or readable_title(name),
        rendering=rendering,
        headings=headings,
        pages=places,
        scans=tuple(reader.scans),
        metadata=metadata,
        language=language_code(wide_text(pdfium.FPDFCatalog_GetLanguage, document)),
    )


class _PageReader:
    """Reads the pages of a document window by window. `scans` and `unreadable` are page numbers,
    complete when all pages have been read."""

    def __init__(
        self, document: PdfDocument, limits: Limits, page_texts: Mapping[int, str]
    ) -> None:
        self.scans: list[int] = []
        self.unreadable: list[int] = []
        self._document = document
        self._limits = limits
        self._page_texts = page_texts
        self._characters = 0

    def pages(self) -> Iterator[PageBlocks]:
        """The pages in order. Raises ParseError if they have too many characters."""
        numbers = iter(range(1, len(self._document) + 1))
        running: set[str] = set()
        while window := list(islice(numbers, _WINDOW)):
            contents = {number: self._content(number) for number in window}
            labels = {number: page_label(self._document, number) for number in window}
            edges = {
                number: list(_edge_rows(content.runs, number, labels[number]))
                for number, content in contents.items()
            }
            running = running_lines(
                {number: [keys for keys, _ in rows] for number, rows in edges.items()}, running
            )
            for number in window:
                content = contents.pop(number)
                dropped = {
                    id(run) for keys, runs in edges[number] if keys & running for run in runs
                }
                runs = [run for run in content.runs if id(run) not in dropped]
                yield PageBlocks(number, labels[number], self._blocks(number, content, runs))

    def _content(self, number: int) -> PageContent:
        try:
            page = self._document[number - 1]
        except PdfiumError:  # one bad page must not cost the others
            self.unreadable.append(number)
            return PageContent(1.0, 1.0)
        try:
            content = read_page(page)
        finally:
            page.close()
        self._characters += sum(len(word.text) for word in content.runs)
        self._limits.check_characters(self._characters, "The PDF")
        if number in self._page_texts:
            content.runs = []
        elif is_scan(content):
            self.scans.append(number)
            content.runs = []
        return content

    def _blocks(self, number: int, content: PageContent, words: Sequence[TextRun]) -> list[Block]:
        if number not in self._page_texts:
            return page_blocks(words, content.rules, width=content.width, height=content.height)
        paragraphs = re.split(r"\n\s*\n", normalise_text(self._page_texts[number]).strip("\n"))
        lines = (
            "\n".join(" ".join(line.split()) for line in each.split("\n")) for each in paragraphs
        )
        return [TextBlock(text, 0.0, False, text.count("\n") + 1) for text in lines if text.strip()]


#: Lines at the top and at the bottom of a page that may be running heads.
_EDGE_ROWS = 2
_MIN_PAGES = 3
#: A chapter's head is on few of all pages, but on so many in a row, or on every other one.
_MIN_CHAPTER_PAGES = 4
_NUMBER_DIGITS = 6
_NUMBER = re.compile(rf"^\d{{1,{_NUMBER_DIGITS}}}\b|\b\d{{1,{_NUMBER_DIGITS}}}$")


#: The key of a line that says what its page is called, and nothing else.
_LABEL_KEY = "label"


def _edge_rows(
    runs: Sequence[TextRun], number: int, label: str
) -> Iterator[tuple[set[str], list[TextRun]]]:
    """Keys and runs of the outermost rows of a page; none if there are no others.

    Lines are equal if they differ only in a number that grows with the pages. Other numbers count:
    the total at the foot of each sheet is no running line.
    """
    upright = [run for run in runs if not run.angle]
    if not upright:
        return
    reach = 3 * max(run.size for run in upright)
    low = max(run.y1 for run in upright)
    high = min(run.y0 for run in upright)
    tops = make_rows(make_fragments(run for run in upright if run.y0 < high + reach))
    ends = make_rows(make_fragments(run for run in upright if run.y1 > low - reach))
    if low - high < 2 * reach and len(make_rows(make_fragments(upright))) <= 2 * _EDGE_ROWS:
        return
    for row in (*tops[:_EDGE_ROWS], *ends[-_EDGE_ROWS:]):
        text = line_text(row.words)
        line = _NUMBER.sub(lambda found: f"page{int(found[0]) - number:+}", text, count=1)
        # A title in large letters is no running head that repeats it.
        keys = {f"{line}\t{row.size:.0f}pt"}
        if label and text == label:
            keys.add(_LABEL_KEY)
        # Apart from the rest of a head, whatever that says.
        for aside in (row.fragments[0], row.fragments[-1]) if len(row.fragments) > 1 else ():
            own = line_text(aside.words)
            if own.isdecimal() and len(own) <= _NUMBER_DIGITS:
                keys.add(f"aside{int(own) - number:+}")
            elif label and own == label:
                keys.add("aside, label")
        yield keys, row.words


def running_lines(edges: Mapping[int, Sequence[set[str]]], before: Iterable[str] = ()) -> set[str]:
    """Keys of running heads and page numbers among the keys of the outer lines of pages, which are
    given by page number: on two pages in five and at least three, or on four close together.
    `before` are keys known already."""
    pages: dict[str, list[int]] = {}
    for number, lines in edges.items():
        for key in set().union(*lines):
            pages.setdefault(key, []).append(number)
    known = set(before)
    running = {_LABEL_KEY}
    for key, numbers in pages.items():
        close = zip(numbers, numbers[_MIN_CHAPTER_PAGES - 1 :], strict=False)
        if (
            key in known
            or len(numbers) >= max(_MIN_PAGES, 0.4 * len(edges))
            or any(last - first < 2 * _MIN_CHAPTER_PAGES for first, last in close)
        ):
            running.add(key)
    return running


#: A page with fewer words on a picture of all of it has a stamp, and no text.
_STAMP_WORDS = 8
_FULL_PICTURE = 0.7
#: Letters that are drawn take so many points at least.
_MIN_OUTLINES = 40
_UNMAPPED_SHARE = 0.3
_MISPLACED_SHARE = 0.3
_LETTERS_SHARE = 0.5


def is_scan(content: PageContent) -> bool:
    """Whether the text of a page can only be read off its picture: it has none, or one that means
    nothing. An empty page is no scan."""
    runs, words = content.runs, content.words
    if not runs:
        return content.picture_share > 0 or content.drawing_points >= _MIN_OUTLINES
    if content.unmapped_words > _UNMAPPED_SHARE * words and not _is_prose(
        " ".join(run.text for run in runs)
    ):
        return True
    if content.picture_share < _FULL_PICTURE:
        return False
    if words < _STAMP_WORDS:
        return True
    if content.invisible_words < 0.8 * words:
        return False
    # Another program's reading of the picture, which may be of another page or language.
    misplaced = sum(
        not (run.x0 >= 0 and run.x1 <= content.width and run.y0 >= 0 and run.y1 <= content.height)
        or run.y1 - run.y0 < 2.0
        for run in runs
    )
    letters = Counter(
        character.isalnum() for run in runs for character in run.text if character not in " .,;:-"
    )
    return (
        misplaced > _MISPLACED_SHARE * len(runs) or letters[True] < _LETTERS_SHARE * letters.total()
    )


_PROSE_WORD = re.compile(r"(?<!\S)[^\W\d_]?[^\W\d_A-Z]+[.,:;!?]?(?!\S)")
_VOWEL = re.compile("[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿāăąēĕėęěīĭįıōŏőœūŭůűų]", re.I)
_PROSE_SHARE = 0.6
_KANA = re.compile("[\u3041-\u30ff]")
_KANA_SHARE = 0.3


def _is_prose(text: str) -> bool:
    """Whether text whose font has no map of its letters means something nevertheless: Latin one
    whose codes are those of Unicode, or Japanese one, which a map of Adobe's reads. Numbers of
    glyphs give capitals and signs, and kana in no usual font."""
    if len(_KANA.findall(text)) > _KANA_SHARE * sum(map(str.isalpha, text)):
        return True
    words = [word for word in text.split() if any(map(str.isalpha, word))]
    found = [word for word in words if _PROSE_WORD.fullmatch(word) and _VOWEL.search(word)]
    return len(found) > _PROSE_SHARE * len(words) and odd_characters(text) < 0.02 * len(text)


_MAX_OUTLINE = 20_000
_MAX_OUTLINE_DEPTH = 15


def _outline(document: PdfDocument) -> list[OutlineEntry]:
    """The bookmarks that point at pages."""
    entries: list[OutlineEntry] = []
    try:
        for bookmark in islice(document.get_toc(max_depth=_MAX_OUTLINE_DEPTH), _MAX_OUTLINE):
            target = bookmark.get_dest()
            index = target.get_index() if target else None
            title = " ".join(normalise_text(bookmark.get_title()).split())
            if index is not None and title:
                entries.append(OutlineEntry(index + 1, bookmark.level + 1, title))
    except (PdfiumError, ValueError):  # a broken outline costs the headings, not the text
        return entries
    return entries


_INFORMATION = {
    "Title": "title",
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "CreationDate": "created_at",
    "ModDate": "modified_at",
}
_DATE = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?\s*(?:([-+Zz])(?:(\d\d)'?(\d\d)?'?)?)?"
)
_MAX_ATTACHMENTS = 100


def _metadata(document: PdfDocument) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, name in _INFORMATION.items():
        value: object = wide_text(pdfium.FPDF_GetMetaText, document, key.encode())
        if name.endswith("_at"):
            value = _moment(str(value))
        if value:
            found[name] = value
    names = [
        wide_text(
            pdfium.FPDFAttachment_GetName, pdfium.FPDFDoc_GetAttachment(document, index)
        ).strip()
        for index in range(min(pdfium.FPDFDoc_GetAttachmentCount(document), _MAX_ATTACHMENTS))
    ]
    if any(names):
        found["attachments"] = [name for name in names if name]
    safe: dict[str, Any] = json_safe(found)
    return safe


def _moment(text: str) -> datetime.datetime | None:
    """`D:20240203040506+01'00'`; None if it is no date."""
    match = _DATE.match(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    sign, hours, minutes = match.groups()[6:]
    try:
        zone = None
        if sign:
            shift = datetime.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
            zone = datetime.timezone(-shift if sign == "-" else shift)
        return datetime.datetime(year, month or 1, day or 1, hour, minute, second, tzinfo=zone)
    except ValueError:
        return None


_STREAM = re.compile(rb"(?<!end)stream\r?\n")
_DICTIONARY_BYTES = 1_000
#: Pictures and fonts are larger, and are not read.
_BINARY_STREAM = re.compile(rb"/(?:Image|FontFile\d?|Length[123]|ObjStm|XRef|Metadata|ICCBased)\b")
_MAX_CONTENT = 32_000_000
#: Of what it is compressed to; deflate reaches 1,032.
_MIN_COMPRESSED = _MAX_CONTENT // 1_100
_MAX_CONTENTS = 3


def _check_streams(data: bytes) -> None:
    """Raise ParseError for contents that expand beyond reason: a page of prose has some 10 kB, and
    pdfium would take a gigabyte."""
    start = 0
    expanded = 0
    for match in _STREAM.finditer(data):
        if match.start() < start:
            continue
        head = data[max(start, match.start() - _DICTIONARY_BYTES) : match.start()]
        head = head[head.rfind(b" obj") :]
        start = match.end()
        if b"Flate" not in head or _BINARY_STREAM.search(head):
            continue
        end = data.find(b"endstream", start)
        end = len(data) if end < 0 else end
        if end - start >= _MIN_COMPRESSED or head.count(b"Flate") > 1:
            expanded += _expands(data[start:end], head.count(b"Flate"))
            if expanded:
                raise ParseError(
                    "too_large",
                    f"The PDF grows too large when it is unpacked: one part has more than"
                    f" {_MAX_CONTENT:,} bytes. {_EXPORT_AGAIN}",
                )
        start = end


def _expands(stream: bytes, times: int) -> bool:
    """Whether a stream has more than `_MAX_CONTENT` bytes once it is decompressed `times` times."""
    for _ in range(min(times, _MAX_CONTENTS)):
        try:
            stream = zlib.decompressobj().decompress(stream, _MAX_CONTENT + 1)
        except zlib.error:
            return False
        if len(stream) > _MAX_CONTENT:
            return True
    return False


def _is_truncated(data: bytes) -> bool:
    """Whether the trailer at the end is missing; readers guess at the rest of a truncated file."""
    tail = data[-2048:]
    return b"%%EOF" not in tail and b"startxref" not in tail


def _broken_error(data: bytes, error: Exception | None) -> ParseError:
    if _is_truncated(data):
        return ParseError(
            "truncated", "The PDF ends too early: a part is missing. Download or copy it again."
        )
    reason = f" ({str(error)[:200]})" if error else ""
    return ParseError("malformed", f"The PDF is damaged{reason}. {_EXPORT_AGAIN}")
