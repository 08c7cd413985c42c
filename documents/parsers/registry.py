"""Which parser reads which file. A new format is one file beside this one and one line here."""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from io import BytesIO
from pathlib import PurePosixPath

from documents.code_languages import language_of_file_name
from documents.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    ParsedDocument,
    ParseError,
    Parser,
)
from documents.parsers.chunk_json import CHUNK_JSON, ChunkJsonParser
from documents.parsers.chunk_records import chunk_layout, is_chunk_json_name
from documents.parsers.code import CODE_PARSERS
from documents.parsers.csv import CsvParser
from documents.parsers.json_text import JSON_PARSERS
from documents.parsers.normalise import decode_text
from documents.parsers.plain import PlainParser
from documents.parsers.rst import RstParser
from documents.parsers.sniff import (
    Kind,
    identify_binary,
    is_html,
    is_pdf,
    is_zip,
    text_but_no_prose,
)
from documents.parsers.sql import SqlParser


@dataclass(frozen=True)
class LazyParser:
    """A parser that is imported with the first file of its kind, because it brings a library."""

    path: str
    media_types: tuple[str, ...]
    suffixes: tuple[str, ...]

    @cached_property
    def parser(self) -> Parser:
        module, _, name = self.path.rpartition(".")
        parser: Parser = getattr(import_module(f"documents.parsers.{module}"), name)()
        return parser

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        return self.parser.parse(data, name=name, limits=limits)


_OFFICE = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"
#: Formats that no text editor makes: what has their name and is text is no such file.
_BINARY: tuple[Parser, ...] = (
    LazyParser("pdf.PdfParser", ("application/pdf",), (".pdf",)),
    LazyParser(
        "docx.DocxParser",
        (f"{_OFFICE}.wordprocessingml.document",),
        (".docx", ".docm", ".dotx", ".dotm"),
    ),
    LazyParser(
        "pptx.PptxParser",
        (f"{_OFFICE}.presentationml.presentation",),
        (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
    ),
    LazyParser(
        "xlsx.XlsxParser",
        (f"{_OFFICE}.spreadsheetml.sheet",),
        (".xlsx", ".xlsm", ".xltx", ".xltm"),
    ),
    LazyParser(
        "odf.OdfParser",
        (f"{_ODF}.text", f"{_ODF}.spreadsheet", f"{_ODF}.presentation"),
        (".odt", ".ott", ".ods", ".ots", ".odp", ".otp"),
    ),
    LazyParser("epub.EpubParser", ("application/epub+zip",), (".epub",)),
)
PARSERS: tuple[Parser, ...] = (
    PlainParser(),
    LazyParser(
        "markdown.MarkdownParser", ("text/markdown",), (".md", ".markdown", ".mdown", ".mkd")
    ),
    LazyParser(
        "html.HtmlParser", ("text/html", "application/xhtml+xml"), (".html", ".htm", ".xhtml")
    ),
    *_BINARY,
    ChunkJsonParser(),
    CsvParser(),
    RstParser(),
    SqlParser(),
    *JSON_PARSERS,
    *CODE_PARSERS,
)

#: Texts whose media type does not say so.
_TEXTS = frozenset({"application/json", "application/x-ndjson"})
_BY_MEDIA_TYPE = {media_type: parser for parser in PARSERS for media_type in parser.media_types}
_BY_SUFFIX = {suffix: parser for parser in PARSERS for suffix in parser.suffixes}
_JSON_SUFFIXES = frozenset(suffix for parser in JSON_PARSERS for suffix in parser.suffixes)
_BINARY_SUFFIXES = frozenset(suffix for parser in _BINARY for suffix in parser.suffixes)
_BINARY_TYPES = frozenset(kind for parser in _BINARY for kind in parser.media_types)
_SUPPORTED = (
    "Supported are Office files (Word, PowerPoint, Excel, OpenDocument), PDF, EPUB, HTML, "
    "Markdown, reStructuredText, CSV, JSON, source code, SQL and plain text."
)


def detect_media_type(data: bytes, *, name: str) -> str:
    """The media type: by content, then, among texts, by suffix; never raises."""
    return _detect(data, name).media_type


def parse(
    data: bytes,
    *,
    name: str,
    max_bytes: int = DEFAULT_LIMITS.max_bytes,
    max_pages: int = DEFAULT_LIMITS.max_pages,
) -> ParsedDocument:
    """Parse one file with the parser of what it really is; `ParseError` says why it cannot."""
    if len(data) > max_bytes:
        raise ParseError(
            "too_large",
            f"The file has {len(data):,} bytes, the limit is {max_bytes:,}. "
            "Split it, or raise the limit.",
        )
    if not data or data.isspace():
        raise ParseError("empty", "The file is empty. Check that it was saved.")
    kind = _detect(data, name)
    _refuse_false_name(kind, name)
    parser = _BY_MEDIA_TYPE.get(kind.media_type)
    if parser is None:
        raise _refusal(kind, name)
    return parser.parse(data, name=name, limits=Limits(max_bytes=max_bytes, max_pages=max_pages))


def _detect(data: bytes, name: str) -> Kind:
    """Content decides; the name only chooses between formats that are all text."""
    is_json = is_chunk_json_name(name) or _suffix(name) in _JSON_SUFFIXES
    if is_json and chunk_layout(name, lambda: BytesIO(data)):
        return Kind(CHUNK_JSON, "chunk JSON")
    if is_zip(data):
        return identify_binary(data)
    if is_pdf(data):
        return Kind("application/pdf", "a PDF")
    if is_html(data):
        return Kind("text/html", "an HTML page")
    if not _is_text(data):
        return identify_binary(data)
    return text_but_no_prose(data) or _by_suffix(name)


def _by_suffix(name: str) -> Kind:
    if language := language_of_file_name(name):
        return Kind(language.media_type, "a text file")
    parser = _BY_SUFFIX.get(_suffix(name))
    media_type = parser.media_types[0] if parser else "text/plain"
    is_text = media_type.startswith("text/") or media_type in _TEXTS
    return Kind(media_type if is_text else "text/plain", "a text file")


def _is_text(data: bytes) -> bool:
    try:
        decode_text(data)
    except ParseError as error:
        # Text in an unknown encoding is text still, and its parser says what is wrong with it.
        return error.code != "binary"
    return True


def _refuse_false_name(kind: Kind, name: str) -> None:
    """A workbook named .docx is read as what it is; a web page or image of that name is not."""
    if kind.cure or kind.media_type in _BINARY_TYPES:
        return
    if _suffix(name) in _BINARY_SUFFIXES:
        raise ParseError(
            "wrong_type",
            f"The file is named {_suffix(name)} but is {kind.label}. Download it again, or name "
            "it rightly.",
        )


def _refusal(kind: Kind, name: str) -> ParseError:
    if kind.cure:
        return ParseError(kind.code, f"The file is {kind.label}. {kind.cure}")
    parser = _BY_SUFFIX.get(_suffix(name))
    if parser is not None:
        return ParseError(
            "binary", f"The file is named {_suffix(name)} but is {kind.label}. {_SUPPORTED}"
        )
    if kind.media_type == "application/octet-stream":
        return ParseError("binary", f"The file is {kind.label}, not text. {_SUPPORTED}")
    return ParseError("unsupported", f"The file is {kind.label}. {_SUPPORTED}")


def _suffix(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()
