"""RTF: headings, lists, tables and notes as Markdown, without deleted and hidden text. Begin with
`parse_rtf`. The format: Microsoft's Rich Text Format Specification 1.9.1."""

import re
from dataclasses import dataclass, field
from typing import Any

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.markdown_writer import MarkdownWriter
from reading.parsers.normalise import normalise_text
from reading.parsers.office_content import ListWriter, cell_text, write_table
from reading.parsers.office_package import office_document

MEDIA_TYPE = "application/rtf"

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z])|([{}])|[\r\n\0]+"
    rb"|([^\\{}\r\n\0]+)|\\"
)
_MAX_DEPTH = 1_000
#: Groups that may be open at the end.
_FORGOTTEN = 4
_MAX_ROWS, _MAX_CELLS = 100_000, 500

#: What nobody reads as text: pictures, definitions, authors of comments, instructions of fields.
_SKIPPED = frozenset((
    "atnauthor", "atndate", "atnid", "atnref", "bkmkend", "bkmkstart", "colortbl",
    "datastore", "do", "filetbl", "fldinst", "ftncn", "ftnsep", "ftnsepc", "generator",
    "latentstyles", "listoverridetable", "listtable", "mmathPr", "nonshppict", "objclass",
    "objdata", "pgdsctbl", "pict", "pnseclvl", "revtbl", "rsidtbl", "shprslt", "sn", "sv", "tc",
    "themedata", "userprops", "xe", "xmlnstbl",
))  # fmt: skip
_HEADS_AND_FEET = frozenset(
    f"{kind}{pages}" for kind in ("header", "footer") for pages in ("", "f", "l", "r")
)
#: Destinations that older readers should skip, and this one does not.
_STARRED = frozenset(("shpinst", "footnote", "annotation"))
#: What stands before them.
_NOTES = {"footnote": "", "annotation": "Comment: "}
_PROPERTIES = {"title": "title", "subject": "subject", "author": "author", "keywords": "keywords"}
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
}
_SYMBOLS = {b"~": "\xa0", b"_": "\u2011", b"\\": "\\", b"{": "{", b"}": "}", b"\t": "\t"}
_CODE_PAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850", "ansi": "cp1252"}
_CHARSETS = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "cp1361",
    134: "cp936",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    0: "cp1252",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
_HEADING_STYLE = re.compile(r"(?:heading|überschrift|titre|título|titolo|kop) ([1-9])", re.I)
_MAX_PAGE_CHARACTERS = 40
#: `Page 3`, `3 / 12`, `Seite 3 von 12`.
_PAGE = re.compile(r"[^\W\d]*\W*\d{1,4}(?:\W*[^\W\d]*\W*\d{1,4})?\W*")
_BULLET = re.compile(r"[\W_]*")
_HEADING_LEVELS = 6


@dataclass(slots=True)
class _Group:
    """What holds until the group's closing bracket."""

    destination: str = "text"  # `skip` and the tables of fonts and styles give no text
    code_page: str = ""  # empty: the document's
    unicode_skip: int = 1
    is_hidden: bool = False
    is_deleted: bool = False

    def inner(self) -> "_Group":
        return _Group(
            self.destination, self.code_page, self.unicode_skip, self.is_hidden, self.is_deleted
        )


@dataclass(slots=True)
class _ParagraphFormat:
    style: int = 0
    outline: int | None = None
    list_level: int | None = None
    is_in_table: bool = False


@dataclass(slots=True)
class _Table:
    rows: list[list[str | None]] = field(default_factory=list)
    cells: list[str | None] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)  # paragraphs of the open cell
    merged: set[int] = field(default_factory=set)  # cells of the row that the ones above cover
    defined: int = 0
    is_merged: bool = False


class RtfReader:
    """Reads the tokens of one file; `finish` gives its Markdown. Notes come after their paragraph,
    heads and feet of pages, each once, after the one that they are stated before."""

    def __init__(self, limits: Limits) -> None:
        self.properties: dict[str, str] = {}
        self._limits = limits
        self._out = MarkdownWriter()
        self._lists = ListWriter(self._out)
        self._groups = [_Group()]
        self._format = _ParagraphFormat()
        self._table = _Table()
        self._code_page = "cp1252"
        self._fonts: dict[int, str] = {}
        self._levels: dict[int, int] = {}
        self._font = self._style = 0
        self._words: dict[str, list[str]] = {}  # the open text by destination
        self._bytes: list[bytes] = []
        self._ignored = 0  # characters still to skip after \u
        self._notes: list[str] = []
        self._heads_and_feet: set[str] = set()
        self._characters = 0

    def read(self, data: bytes) -> None:
        """Raises ParseError if a bracket is missing or there are too many."""
        at = data.index(b"{")
        is_starred = is_first = False
        while match := _TOKEN.match(data, at):
            at = match.end()
            word, number, hexadecimal, symbol, bracket, text = match.groups()
            if bracket == b"{":
                self._flush()
                self._groups.append(self._groups[-1].inner())
                self._ignored = 0
                if len(self._groups) > _MAX_DEPTH:
                    raise ParseError(
                        "malformed",
                        f"Groups are nested more than {_MAX_DEPTH:,} levels deep. Open the file in"
                        " a word processor and save it as .docx.",
                    )
                is_first, is_starred = True, False
                continue
            if bracket:
                self._flush()
                self._close(self._groups.pop())
                self._ignored = 0
                if len(self._groups) == 1:
                    return
            elif symbol == b"*" and is_first:
                is_starred = True
                continue
            elif word == b"bin":
                at += max(int(number or 0), 0)
            elif word:
                self._control(
                    word.decode(), None if number is None else int(number), is_first, is_starred
                )
            elif hexadecimal:
                self._add_bytes(bytes.fromhex(hexadecimal.decode()))
            elif symbol:
                self._symbol(symbol)
            elif text:
                self._add_bytes(text)
            is_first = False
        # Word reads a file whose last brackets were forgotten, too.
        if len(data) == at and len(self._groups) <= _FORGOTTEN and data.rstrip().endswith(b"}"):
            return
        raise ParseError(
            "truncated",
            "The file ends too early: closing brackets are missing. Copy it again, or open it"
            " in a word processor and save it again.",
        )

    def _symbol(self, symbol: bytes) -> None:
        if symbol in (b"\n", b"\r"):
            self._paragraph()
        else:
            self._add(_SYMBOLS.get(symbol, ""))

    def finish(self) -> MarkdownWriter:
        self._paragraph()
        self._end_table()
        self._lists.end()
        self._write_notes()
        return self._out

    def _control(self, word: str, number: int | None, is_first: bool, is_starred: bool) -> None:
        destination = self._groups[-1].destination
        if destination == "skip" or (is_first and self._opens(word, is_starred)):
            return
        if destination in ("fonttbl", "stylesheet"):
            self._define(word, number)
        elif word in ("u", "uc") or word in _CHARACTERS:
            self._character(word, number)
        elif word in ("f", "plain", "v", "deleted"):
            self._character_format(word, number)
        elif destination != "text":
            if word in ("par", "cell"):
                self._add(" ")
        elif word in ("trowd", "clvmrg", "cellx", "cell", "nestcell", "row"):
            self._table_control(word)
        else:
            self._paragraph_control(word, number)

    def _opens(self, word: str, is_starred: bool) -> bool:
        """Whether the word, the first of its group, says what the group is."""
        group = self._groups[-1]
        if group.destination == "info":
            group.destination = word if word in _PROPERTIES else "skip"
        elif word in ("fonttbl", "stylesheet", "info"):
            group.destination = word
        elif is_starred and word in ("cs", "ds", "ts") and group.destination == "stylesheet":
            group.destination = "skip"  # styles of characters, sections and tables
        elif word in _SKIPPED or (is_starred and word not in _STARRED):
            group.destination = "skip"
        elif word in _NOTES:
            group.destination = word
        elif word in _HEADS_AND_FEET:
            group.destination = "margin"
        elif word in ("listtext", "pntext"):
            group.destination = "listtext"
        else:
            return False
        return True

    def _character(self, word: str, number: int | None) -> None:
        group = self._groups[-1]
        if word == "uc":
            group.unicode_skip = min(max(number or 0, 0), 16)
        elif word == "u":
            self._add(chr((number or 0) & 0xFFFF))
            self._ignored = group.unicode_skip
        elif self._ignored:
            self._ignored -= 1
        else:
            self._add(_CHARACTERS[word])

    def _character_format(self, word: str, number: int | None) -> None:
        self._flush()
        group = self._groups[-1]
        if word in ("f", "plain"):
            group.code_page = self._fonts.get(number or 0, "") if word == "f" else ""
        if word in ("v", "plain"):
            group.is_hidden = word == "v" and number != 0
        if word in ("deleted", "plain"):
            group.is_deleted = word == "deleted" and number != 0

    def _paragraph_control(self, word: str, number: int | None) -> None:
        form = self._format
        if word in ("par", "sect", "page"):
            self._paragraph()
        elif word == "pard":
            self._format = _ParagraphFormat()
        elif word == "s":
            form.style = number or 0
        elif word == "outlinelevel":
            form.outline = number
        elif word == "ls":
            form.list_level = form.list_level or 0
        elif word == "ilvl":
            form.list_level = min(max(number or 0, 0), 8)
        elif word == "intbl":
            form.is_in_table = True
        elif word in _CODE_PAGES:
            self._code_page = _CODE_PAGES[word]
        elif word == "ansicpg":
            self._code_page = _known_code_page(f"cp{number}") or self._code_page

    def _table_control(self, word: str) -> None:
        table = self._table
        if word == "trowd":
            table.merged, table.is_merged, table.defined = set(), False, 0
        elif word == "clvmrg":
            table.is_merged = True
        elif word == "cellx":
            if table.is_merged:
                table.merged.add(table.defined)
            table.defined, table.is_merged = table.defined + 1, False
        elif word == "row":
            self._end_row()
        else:
            self._end_cell_paragraph()
            if word == "cell":
                text = cell_text(table.lines)
                is_covered = not text and len(table.cells) in table.merged
                table.cells.append(None if is_covered else text)
                table.lines = []
                if len(table.cells) >= _MAX_CELLS:
                    self._end_row()

    def _define(self, word: str, number: int | None) -> None:
        if word == "f":
            self._font = number or 0
        elif word == "fcharset" and number in _CHARSETS:
            self._fonts[self._font] = _CHARSETS[number]
        elif word == "cpg" and (known := _known_code_page(f"cp{number}")):
            self._fonts[self._font] = known
        elif word == "s":
            self._style = number or 0
        elif word == "outlinelevel" and number is not None:
            self._levels[self._style] = number

    def _add_bytes(self, data: bytes) -> None:
        if self._ignored:
            skipped = min(self._ignored, len(data))
            self._ignored -= skipped
            data = data[skipped:]
        if self._groups[-1].destination not in ("skip", "fonttbl"):
            self._bytes.append(data)

    def _flush(self) -> None:
        """Decode the bytes so far: a character of two may be written half as code, half as
        letter."""
        if self._bytes:
            code_page = self._groups[-1].code_page or self._code_page
            data, self._bytes = b"".join(self._bytes), []
            self._add(data.decode(code_page, "replace"))

    def _add(self, text: str) -> None:
        self._flush()
        group = self._groups[-1]
        if text and not (group.is_hidden or group.is_deleted or group.destination == "skip"):
            self._words.setdefault(group.destination, []).append(text)
            self._characters += len(text)
            self._limits.check_characters(self._characters, "The document")

    def _take(self, destination: str) -> str:
        """The open text; surrogate pairs, which RTF writes as two numbers, become characters."""
        text = "".join(self._words.pop(destination, ()))
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return normalise_text(whole)

    def _close(self, group: _Group) -> None:
        outer = self._groups[-1].destination
        if group.destination == "stylesheet":
            if named := _HEADING_STYLE.match(self._take("stylesheet").strip()):
                self._levels.setdefault(self._style, int(named[1]) - 1)
            self._style = 0
        elif group.destination in _PROPERTIES and outer == "info":
            if value := " ".join(self._take(group.destination).split())[:1_000]:
                self.properties[group.destination] = value
        elif group.destination in _NOTES and outer != group.destination:
            if note := " ".join(self._take(group.destination).split()):
                self._notes.append(_NOTES[group.destination] + note)
        elif group.destination == "margin" and outer != "margin":
            margin = " ".join(self._take("margin").split())
            is_page = len(margin) < _MAX_PAGE_CHARACTERS and _PAGE.fullmatch(margin)
            if margin and margin not in self._heads_and_feet and not is_page:
                self._heads_and_feet.add(margin)
                self._notes.append(margin)

    def _paragraph(self) -> None:
        """End a paragraph: a heading, a line of a list or a cell of a table, or plain."""
        self._flush()
        if self._groups[-1].destination != "text":
            return
        form = self._format
        if form.is_in_table:
            self._end_cell_paragraph()
            return
        self._end_table()
        label = " ".join(self._take("listtext").split())
        text = self._take("text")
        if not text.strip():
            return
        level = self._levels.get(form.style) if form.outline is None else form.outline
        if level is not None and 0 <= level < 9:
            self._lists.end()
            title = " ".join(f"{'' if _BULLET.fullmatch(label) else label} {text}".split())
            self._out.heading(min(level + 1, _HEADING_LEVELS), title)
        elif form.list_level is not None or label:
            self._lists.item(form.list_level or 0, "" if _BULLET.fullmatch(label) else label)
            self._write_lines(text)
        else:
            self._lists.end()
            self._write_lines(text)
        self._write_notes()

    def _write_notes(self) -> None:
        notes, self._notes = self._notes, []
        for note in notes:
            self._out.paragraph(note)

    def _write_lines(self, text: str) -> None:
        for line in text.split("\n"):
            self._out.write(line)
            self._out.end_line()
        self._out.end_block()

    def _end_cell_paragraph(self) -> None:
        self._flush()
        label, text = self._take("listtext"), self._take("text")
        if line := " ".join(f"{label} {text}".split()):
            self._table.lines.append(line)

    def _end_row(self) -> None:
        self._table.rows.append(self._table.cells)
        self._table.cells = []
        if len(self._table.rows) >= _MAX_ROWS:
            self._end_table()

    def _end_table(self) -> None:
        table, self._table = self._table, _Table()
        # A row that no \row ends.
        cells = [*table.cells, *([cell_text(table.lines)] if table.lines else [])]
        if rows := [*table.rows, *([cells] if cells else [])]:
            self._lists.end()
            write_table(self._out, rows)
            self._write_notes()


def _known_code_page(name: str) -> str:
    name = {"cp65001": "utf-8", "cp10000": "mac_roman", "cp0": "cp1252"}.get(name, name)
    try:
        b"".decode(name)
    except LookupError:
        return ""
    return name


def parse_rtf(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """RTF of any version, with the title and author that it states."""
    reader = RtfReader(limits)
    reader.read(data)
    text, headings = reader.finish().finish()
    if not text.strip():
        raise ParseError(
            "no_text",
            "The document has no text, perhaps only pictures. Check that this is the right file.",
        )
    metadata: dict[str, Any] = dict(reader.properties)
    return office_document((text, headings), name=name, media_type=MEDIA_TYPE, metadata=metadata)
