"""What every parser gives and what it raises: text, its structure, and one error class."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from common.errors import RagsiteError

ErrorCode = Literal[
    "empty",
    "binary",
    "encrypted",
    "truncated",
    "malformed",
    "too_large",
    "unsupported",
    "wrong_type",
    "no_text",
    "unreadable",
    "too_slow",
    "too_much_memory",
    "crashed",
]
Rendering = Literal["plain", "markdown"]


class ParseError(RagsiteError):
    """A file that cannot become a document; the message says what is wrong and the cure."""

    status = 422

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work one file may cause."""

    max_bytes: int = 100 * 1024 * 1024
    max_pages: int = 10_000
    max_characters: int = 100_000_000
    #: Of a ZIP, which Office files are: what it may hold, and how much that may be unpacked.
    max_members: int = 20_000
    max_unpacked_bytes: int = 500 * 1024 * 1024
    #: Of a part that is held whole: a tree takes up to ten times the memory of its text.
    max_part_bytes: int = 64 * 1024 * 1024
    #: How many times its packed size a large member may have. Deflate reaches 1,032; sheets of
    #: equal rows about 100.
    max_unpacked_ratio: int = 250


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line: `offset` is where that line starts in `ParsedDocument.text`."""

    offset: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page, numbered from 1, and where it starts in `ParsedDocument.text`."""

    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """A chunk made by the document's author; its boundaries are kept."""

    key: str
    text: str
    context: str = ""
    heading_path: tuple[str, ...] = ()
    summary: str = ""
    token_count: int | None = None
    page: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """The text that is stored and cut into chunks, and what is known about it.

    Headings and pages are sorted by offset. `metadata` is safe for JSON. `language` is an
    ISO 639 code when the file itself says it. `chunks` is empty unless the file brought its own.
    """

    text: str
    media_type: str
    title: str
    rendering: Rendering = "plain"
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    language: str = ""
    chunks: tuple[ParsedChunk, ...] = ()


class Parser(Protocol):
    """One file format. `suffixes` are lower case and begin with a dot."""

    @property
    def media_types(self) -> tuple[str, ...]: ...

    @property
    def suffixes(self) -> tuple[str, ...]: ...

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        """Read `data`; `name` is the file's name and serves as the title of last resort."""
        ...
