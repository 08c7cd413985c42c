"""Types of all parsers: the parsed text with its structure, and one error class."""

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
    """A file that cannot become a document; the message says what is wrong and how to fix it."""

    status = 422

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum work for one file."""

    max_bytes: int = 100 * 1024 * 1024
    max_pages: int = 10_000
    max_characters: int = 100_000_000
    #: Members of a ZIP archive, as Office files are, and their unpacked bytes.
    max_members: int = 20_000
    max_unpacked_bytes: int = 500 * 1024 * 1024
    #: A part that is parsed in memory: its tree takes up to ten times the memory of its text.
    max_part_bytes: int = 64 * 1024 * 1024
    #: Compression ratio of a large member. Deflate reaches 1,032; sheets of
    #: equal rows about 100.
    max_unpacked_ratio: int = 250

    def check_characters(self, count: int, subject: str) -> None:
        """Raise ParseError if `subject`, such as “The PDF”, has more characters than allowed."""
        if count > self.max_characters:
            raise ParseError(
                "too_large",
                f"{subject} has more than {self.max_characters:,} characters. Split it.",
            )


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line: `offset` is where that line starts in `ParsedDocument.text`."""

    offset: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page, numbered from 1, and where it starts in `ParsedDocument.text`. `label` is what stands
    on it, such as `iv`, where that is not its number."""

    offset: int
    number: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class ParsedChunk:
    """A chunk cut by the document's author; its boundaries are kept."""

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
    """The text to store and chunk, with its structure.

    Headings and pages are sorted by offset. `scans` are the numbers of pages whose text can only be
    read off their picture. `metadata` is JSON-safe. `language` is an ISO 639 code if the file
    states it. `chunks` is empty unless the file has its own.
    """

    text: str
    media_type: str
    title: str
    rendering: Rendering = "plain"
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    scans: tuple[int, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    language: str = ""
    chunks: tuple[ParsedChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPage:
    """What OCR read on a page. `lines` are JSON values, as in `documents.models.ScannedPage`, with
    boxes as fractions of the shown page; `rotation` is how far that must be turned clockwise, in
    degrees; `confidence` is the mean over its characters, 0 to 1."""

    text: str
    lines: list[dict[str, Any]]
    confidence: float
    rotation: int
    engine: str


@dataclass(frozen=True, slots=True)
class ContainerPart:
    """A file in a mail or archive. `path` is its name with its folders; `data` is None outside of
    the window that was unpacked; `problem` is why it cannot be unpacked."""

    path: str
    size: int
    data: bytes | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class UnpackedContainer:
    """The files in a mail or archive; those of a window, from one of them on, with their bytes.
    `about` is a mail's subject, sender and date."""

    parts: tuple[ContainerPart, ...]
    about: dict[str, Any] = field(default_factory=dict)
    message_id: str = ""


#: Bytes of the parts of a window; a larger part goes alone.
WINDOW_BYTES = 16 * 1024 * 1024


class Parser(Protocol):
    """Reads one file format; `name` is the file's name, used as the title if there is no other.

    Those of files with pictures of pages also take `page_texts`, texts by page number.
    """

    def __call__(
        self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS, **options: Any
    ) -> ParsedDocument: ...
