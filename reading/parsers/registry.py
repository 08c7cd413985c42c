"""Which parser reads which file: detection by content, then by name, and `parse`. A new format is
one function in a module beside this one and one line in `FORMATS`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from pathlib import PurePosixPath

import puremagic

from reading.code_languages import LANGUAGES, language_of_file_name
from reading.parsers.base import (
    DEFAULT_LIMITS,
    ErrorCode,
    Limits,
    ParsedDocument,
    ParseError,
    Parser,
)
from reading.parsers.chunk_json import CHUNK_JSON, chunk_layout, is_chunk_json_name
from reading.parsers.normalise import decode_text
from reading.parsers.outlook import OLE, PROPERTIES, CompoundFile
from reading.parsers.picture import PICTURES, picture_media_type
from reading.parsers.zip_archive import ZIP, ZIP_ERRORS, ZipArchive

_HEAD = 4096
_OOXML = "application/vnd.openxmlformats-officedocument."
_OCTETS = "application/octet-stream"
_HTML = re.compile(
    rb"(?:\s++|<\?xml[^>]{0,200}>|<!--.{0,1000}?-->)*+<(?:!doctype\s+html|html)\b", re.I | re.S
)


@dataclass(frozen=True, slots=True)
class FileKind:
    """A media type and its label with article: `a PNG image`.

    `code` and `cure` are set where more can be said than that it is not supported.
    """

    media_type: str
    label: str
    code: ErrorCode = "unsupported"
    cure: str = ""


_WORD = FileKind(f"{_OOXML}wordprocessingml.document", "a Word document (.docx)")
_EXCEL = FileKind(f"{_OOXML}spreadsheetml.sheet", "an Excel workbook (.xlsx)")
_POWERPOINT = FileKind(f"{_OOXML}presentationml.presentation", "a PowerPoint presentation (.pptx)")
_BINARY_WORKBOOK = FileKind(
    "application/vnd.ms-excel.sheet.binary.macroenabled.12", "an Excel binary workbook (.xlsb)"
)
_XPS = FileKind(
    "application/vnd.ms-xpsdocument", "an XPS document (.xps, .oxps)", cure="Print it to PDF."
)
_APPLE = FileKind(
    "application/vnd.apple.iwork",
    "an Apple iWork document (.pages, .numbers, .key)",
    cure="Export it as PDF, or as .docx, .xlsx or .pptx.",
)
#: A ZIP is known by what is in it: the first of these members that it has.
_ZIP_MEMBERS = {
    "xl/workbook.bin": _BINARY_WORKBOOK,
    "index/document.iwa": _APPLE,
    "index.zip": _APPLE,
    "index.apxl": _APPLE,
    "buildversionhistory.plist": _APPLE,
    "metadata/buildversionhistory.plist": _APPLE,
    "fixeddocumentsequence.fdseq": _XPS,
    "meta-inf/container.xml": FileKind("application/epub+zip", "an EPUB book"),
    "meta-inf/manifest.mf": FileKind("application/java-archive", "a Java archive"),
}
_PAGES_OF_XPS = re.compile(r"\.fdseq(?:/\[\d+\](?:\.last)?\.piece)?$")
#: The one folder in an archive that macOS made of a document which is a folder.
_APPLE_FOLDER = re.compile(r"[^/]+\.(?:pages|numbers|key)/")
_OFFICE_LIST = "[content_types].xml"
_OFFICE_FOLDERS = {"word/": _WORD, "xl/": _EXCEL, "ppt/": _POWERPOINT}
_OFFICE_TYPES = {
    "sheet.binary.macroenabled.main": _BINARY_WORKBOOK,
    "ms-visio.": FileKind(
        "application/vnd.ms-visio.drawing",
        "a Visio drawing (.vsdx)",
        cure="Export it as PDF.",
    ),
    "xps-fixeddocumentsequence": _XPS,
    "wordprocessingml.": _WORD,
    "ms-word.": _WORD,
    "spreadsheetml.": _EXCEL,
    "ms-excel.": _EXCEL,
    "presentationml.": _POWERPOINT,
    "ms-powerpoint.": _POWERPOINT,
}
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_ZIP = FileKind(ZIP, "a ZIP archive")
_MAIL = FileKind("message/rfc822", "a mail")
_OUTLOOK_MAIL = FileKind("application/vnd.ms-outlook", "an Outlook mail (.msg)")
_MAIL_HEADER = re.compile(rb"(?:From [^\n]{0,500}\n)?[!-9;-~]{1,100}[ \t]*:")
_OLD_EXCEL = FileKind("application/vnd.ms-excel", "an old Excel workbook (.xls)")
OLD_WORD = FileKind(
    "application/msword",
    "an old Word document (.doc)",
    cure="Save it as .docx, or install LibreOffice on the server, which then converts such files.",
)
OLD_POWERPOINT = FileKind(
    "application/vnd.ms-powerpoint",
    "an old PowerPoint presentation (.ppt)",
    cure="Save it as .pptx, or install LibreOffice on the server, which then converts such files.",
)
_COMPOUND = FileKind(
    "application/x-ole-storage",
    "an old file of Office or of another program that is not read",
    cure="Save it as .docx, .xlsx or .pptx, or export it as PDF.",
)
_ENCRYPTED_OFFICE = FileKind(
    "application/x-ole-storage",
    "an encrypted Office document",
    code="encrypted",
    cure="Open it with its password, remove the password and save it.",
)

#: Text, unless pictures in it are bytes.
_RTF = (b"{\\rtf", FileKind("application/rtf", "an RTF document"))

#: Formats that puremagic misses or confuses, and those whose bytes are valid text.
_MAGIC: tuple[tuple[bytes, FileKind], ...] = (
    (b"\x1f\x8b", FileKind("application/gzip", "a gzip archive")),
    (b"BZh", FileKind("application/x-bzip2", "a bzip2 archive")),
    (b"\xfd7zXZ\x00", FileKind("application/x-xz", "an xz archive")),
    (b"7z\xbc\xaf\x27\x1c", FileKind("application/x-7z-compressed", "a 7-Zip archive")),
    (b"Rar!\x1a\x07", FileKind("application/vnd.rar", "a RAR archive")),
    (b"SQLite format 3\x00", FileKind("application/vnd.sqlite3", "an SQLite database")),
    (b"\x7fELF", FileKind("application/x-executable", "a program (ELF)")),
    _RTF,
    (b"PAR1", FileKind("application/vnd.apache.parquet", "a Parquet file")),
)
_TEXT_MAGIC: tuple[tuple[bytes, FileKind], ...] = (
    _RTF,
    (b"%!PS", FileKind("application/postscript", "a PostScript file")),
)


_LFS_POINTER = b"version https://git-lfs.github.com/spec/v"
_MAX_POINTER = 1024


def is_pdf(data: bytes) -> bool:
    """Readers tolerate bytes before the marker, but a text may also mention `%PDF-`."""
    head = data[:1024]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-") or (
        b"%PDF-" in head and b"%%EOF" in data[-2048:]
    )


def is_zip(data: bytes) -> bool:
    """A ZIP archive, which Office files are."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_compound_file(data: bytes) -> bool:
    """A file of Office before 2007, an Outlook mail, or an Office file with a password."""
    return data.startswith(OLE)


def is_html(data: bytes) -> bool:
    """True where the file begins with its doctype or `<html`, in any ASCII-like encoding."""
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    return _HTML.match(head.replace(b"\0", b"")) is not None


def identify_binary(data: bytes) -> FileKind:
    """The kind of a file that is not text."""
    if is_zip(data):
        return _identify_zip(data)
    if is_compound_file(data):
        return _identify_compound_file(data)
    if kind := _identify_picture(data) or _starts_with(data, _MAGIC):
        return kind
    try:
        best = puremagic.magic_string(data)[0]
    except (puremagic.PureError, ValueError):
        return FileKind(_OCTETS, "a binary file")
    # Two bytes alike (0.2) are chance.
    if best.confidence < 0.3 or not best.name:
        return FileKind(_OCTETS, "a binary file")
    return FileKind(best.mime_type or _OCTETS, f"a binary file ({best.name})")


#: A compound file is known by its streams: the first of these that it has.
_STREAMS = {
    "EncryptedPackage": _ENCRYPTED_OFFICE,
    PROPERTIES: _OUTLOOK_MAIL,
    "WordDocument": OLD_WORD,
    "PowerPoint Document": OLD_POWERPOINT,
    "Workbook": _OLD_EXCEL,
    "Book": _OLD_EXCEL,
    "VisioDocument": FileKind(
        "application/vnd.visio", "an old Visio drawing (.vsd)", cure="Export it as PDF."
    ),
}


def _identify_compound_file(data: bytes) -> FileKind:
    try:
        # Not those of objects in it. Some programs write their names in capitals.
        names = {name.casefold() for name in CompoundFile(data).children()}
    except ParseError:
        names = {name.casefold() for name in _STREAMS if f"{name}\0".encode("utf-16-le") in data}
    found = (kind for name, kind in _STREAMS.items() if name.casefold() in names)
    return next(found, _COMPOUND)


def _identify_picture(data: bytes) -> FileKind | None:
    media_type = picture_media_type(data)
    return FileKind(media_type, "a picture") if media_type else None


def _starts_with(data: bytes, table: tuple[tuple[bytes, FileKind], ...]) -> FileKind | None:
    return next((kind for magic, kind in table if data.startswith(magic)), None)


def _kind_by_members(names: set[str]) -> FileKind | None:
    if kind := next((kind for member, kind in _ZIP_MEMBERS.items() if member in names), None):
        return kind
    if any(map(_PAGES_OF_XPS.search, names)):
        return _XPS
    folder = _APPLE_FOLDER.match(next(iter(names), ""))
    return _APPLE if folder and all(name.startswith(folder[0]) for name in names) else None


def _identify_zip(data: bytes) -> FileKind:
    try:
        archive = ZipArchive(data, DEFAULT_LIMITS)
    except ParseError as error:
        label = "a ZIP archive or Office document that cannot be unpacked"
        return FileKind("application/zip", label, error.code, error.message)
    names = set(archive.names)
    if "content.xml" in names and "mimetype" in names:
        # The kind in the first member of an OpenDocument file; templates count as documents.
        try:
            stated = archive.open("mimetype").read(100).decode("ascii", "replace").strip()
        except (ParseError, *ZIP_ERRORS):
            stated = ""
        if not stated.startswith(_OPEN_DOCUMENT):
            return _ZIP
        return FileKind(stated.removesuffix("-template"), "an OpenDocument file")
    if kind := _kind_by_members(names):
        return kind
    if _OFFICE_LIST not in names:
        return _ZIP
    # The main part may be anywhere: its type says what it is.
    try:
        types = archive.open_in_memory(_OFFICE_LIST).read().decode("utf-8", "replace").lower()
    except (ParseError, *ZIP_ERRORS):
        types = ""
    overrides = " ".join(re.findall(r"<(?:\w+:)?override\b[^>]*>", types))
    kinds = {**_OFFICE_TYPES, **_OFFICE_FOLDERS}
    return next(
        (
            kind
            for mark, kind in kinds.items()
            if mark in overrides or any(name.startswith(mark) for name in names)
        ),
        _ZIP,
    )


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Files that one parser reads.

    `parser` is its function, as `module.name` in this package: the module is imported with the
    first file, because it may need a library. Suffixes are lower case and begin with a dot. No text
    editor makes a file that is `binary`: what has its name and is text is no such file.
    """

    parser: str
    media_types: tuple[str, ...]
    suffixes: tuple[str, ...]
    binary: bool = False

    def load(self) -> Parser:
        module, _, name = self.parser.rpartition(".")
        parser: Parser = getattr(import_module(f"reading.parsers.{module}"), name)
        return parser


FORMATS: tuple[FileFormat, ...] = (
    FileFormat("text_formats.parse_plain", ("text/plain",), (".txt", ".text", ".log")),
    FileFormat(
        "text_formats.parse_markdown", ("text/markdown",), (".md", ".markdown", ".mdown", ".mkd")
    ),
    FileFormat("text_formats.parse_rst", ("text/x-rst",), (".rst", ".rest")),
    FileFormat(
        "html.parse_html", ("text/html", "application/xhtml+xml"), (".html", ".htm", ".xhtml")
    ),
    FileFormat(
        "xml_text.parse_xml",
        ("application/xml", "text/xml"),
        (".xml", ".rss", ".atom", ".kml", ".gpx", ".opml"),
    ),
    FileFormat("csv.parse_csv", ("text/csv",), (".csv", ".tsv", ".tab")),
    FileFormat("subtitles.parse_vtt", ("text/vtt",), (".vtt",)),
    FileFormat("subtitles.parse_srt", ("application/x-subrip",), (".srt",)),
    FileFormat("rtf.parse_rtf", ("application/rtf",), (".rtf",), binary=True),
    FileFormat("json_text.parse_json", ("application/json",), (".json", ".geojson")),
    FileFormat("json_text.parse_json", ("application/x-ndjson",), (".jsonl", ".ndjson")),
    FileFormat("chunk_json.parse_chunk_file", (CHUNK_JSON,), ()),
    *(FileFormat("code.parse_code", (code.media_type,), code.suffixes) for code in LANGUAGES),
    FileFormat("pdf.parse_pdf", ("application/pdf",), (".pdf",), binary=True),
    FileFormat(
        "docx.parse_docx", (_WORD.media_type,), (".docx", ".docm", ".dotx", ".dotm"), binary=True
    ),
    FileFormat(
        "pptx.parse_pptx",
        (_POWERPOINT.media_type,),
        (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm"),
        binary=True,
    ),
    FileFormat(
        "xlsx.parse_xlsx", (_EXCEL.media_type,), (".xlsx", ".xlsm", ".xltx", ".xltm"), binary=True
    ),
    FileFormat("xls.parse_xls", (_OLD_EXCEL.media_type,), (".xls", ".xlt"), binary=True),
    FileFormat("xls.parse_xls", (_BINARY_WORKBOOK.media_type,), (".xlsb",), binary=True),
    FileFormat(
        "odf.parse_odf",
        tuple(f"{_OPEN_DOCUMENT}{kind}" for kind in ("text", "spreadsheet", "presentation")),
        (".odt", ".ott", ".ods", ".ots", ".odp", ".otp"),
        binary=True,
    ),
    FileFormat(
        "picture.parse_picture",
        PICTURES,
        (
            ".png",
            ".jpg",
            ".jpeg",
            ".tif",
            ".tiff",
            ".webp",
            ".gif",
            ".bmp",
            ".avif",
            ".heic",
            ".heif",
        ),
        binary=True,
    ),
    FileFormat("zip_folder.parse_zip", (ZIP,), (".zip",), binary=True),
    FileFormat("epub.parse_epub", ("application/epub+zip",), (".epub",), binary=True),
    FileFormat("mail.parse_mail", (_MAIL.media_type,), (".eml",)),
    FileFormat("mail.parse_outlook", (_OUTLOOK_MAIL.media_type,), (".msg",), binary=True),
    FileFormat("mail.refuse_mbox", ("application/mbox",), (".mbox",)),
)

_BY_MEDIA_TYPE = {media_type: entry for entry in FORMATS for media_type in entry.media_types}
_BY_SUFFIX = {suffix: entry for entry in FORMATS for suffix in entry.suffixes}
_SUPPORTED_FORMATS = (
    "Supported formats: Office files (Word, PowerPoint, Excel, OpenDocument), RTF, PDF, pictures, "
    "EPUB, HTML, XML, Markdown, reStructuredText, CSV, JSON, mail, subtitles, ZIP archives, "
    "source code, SQL and plain text."
)


def is_binary(media_type: str) -> bool:
    """Whether files of this type are no text that an editor shows."""
    if media_type in {OLD_WORD.media_type, OLD_POWERPOINT.media_type}:  # read once converted
        return True
    found = _BY_MEDIA_TYPE.get(media_type)
    return found is not None and found.binary


def detect_media_type(data: bytes, *, name: str) -> str:
    """The media type: by content, then, among texts, by suffix; never raises."""
    return _detect_kind(data, name).media_type


def parse(
    data: bytes,
    *,
    name: str,
    max_bytes: int = DEFAULT_LIMITS.max_bytes,
    max_pages: int = DEFAULT_LIMITS.max_pages,
    page_texts: Mapping[str, str] | None = None,
) -> ParsedDocument:
    """Parse one file with the parser of its detected type; `ParseError` says why that is
    impossible.

    `page_texts` are the texts read off the pictures of pages, by page number, that an earlier call
    gave as `ParsedDocument.scans`.
    """
    if len(data) > max_bytes:
        raise ParseError(
            "too_large",
            f"The file has {len(data):,} bytes; {max_bytes:,} are allowed. "
            "Split it, or raise the limit.",
        )
    if not data or data.isspace():
        raise ParseError("empty", "The file is empty. Check that it was saved.")
    if data.startswith(_LFS_POINTER) and len(data) < _MAX_POINTER:
        raise ParseError(
            "wrong_type",
            "The file is stored with Git LFS, and this is only the pointer to it. Run"
            " `git lfs pull` where it comes from, or upload the file itself.",
        )
    kind = _detect_kind(data, name)
    # A workbook or picture named .docx is read as what it is; a web page of that name is refused.
    found, named = _BY_MEDIA_TYPE.get(kind.media_type), _BY_SUFFIX.get(_suffix(name))
    is_binary = kind.cure or (found and found.binary)
    if not is_binary and named and named.binary:
        raise ParseError(
            "wrong_type",
            f"The file is named {_suffix(name)} but is {kind.label}. Download it again, or "
            "correct its name.",
        )
    if found and not kind.cure:
        limits = Limits(max_bytes=max_bytes, max_pages=max_pages)
        scans = {int(page): text for page, text in (page_texts or {}).items()}
        options = {"page_texts": scans} if scans else {}
        document = found.load()(data, name=name, limits=limits, **options)
        if document.language in _LATIN_LANGUAGES and not _is_latin(document.text):
            document = replace(document, language="")
        return document
    if kind.cure:
        raise ParseError(kind.code, f"The file is {kind.label}. {kind.cure}")
    if named:
        raise ParseError(
            "binary", f"The file is named {_suffix(name)} but is {kind.label}. {_SUPPORTED_FORMATS}"
        )
    if kind.media_type == _OCTETS:
        raise ParseError("binary", f"The file is {kind.label}, not text. {_SUPPORTED_FORMATS}")
    raise ParseError("unsupported", f"The file is {kind.label}. {_SUPPORTED_FORMATS}")


#: Written in Latin letters. Programs state their own language for a text in any.
_LATIN_LANGUAGES = frozenset(
    (
        "af",
        "ca",
        "cs",
        "da",
        "de",
        "en",
        "es",
        "et",
        "eu",
        "fi",
        "fr",
        "ga",
        "hr",
        "hu",
        "id",
        "it",
        "lt",
        "lv",
        "ms",
        "nb",
        "nl",
        "nn",
        "no",
        "pl",
        "pt",
        "ro",
        "sk",
        "sl",
        "sq",
        "sv",
        "sw",
        "tr",
        "vi",
    )
)
_SAMPLE_CHARACTERS = 4_000


def _is_latin(text: str) -> bool:
    letters = [character for character in text[:_SAMPLE_CHARACTERS] if character.isalpha()]
    latin = sum(letter < "\u0250" or "\u1e00" <= letter < "\u1f00" for letter in letters)
    return 2 * latin >= len(letters)


def _detect_kind(data: bytes, name: str) -> FileKind:
    """Content decides; the name only chooses between text formats."""
    named = _BY_SUFFIX.get(_suffix(name))
    # Parts of a mail may be bytes of any kind.
    is_mail = named is not None and named.parser == "mail.parse_mail" and _MAIL_HEADER.match(data)
    is_json = named is not None and named.parser == "json_text.parse_json"
    if (is_json or is_chunk_json_name(name)) and chunk_layout(name, lambda: BytesIO(data)):
        return FileKind(CHUNK_JSON, "chunk JSON")
    if is_pdf(data) and not is_zip(data):
        return FileKind("application/pdf", "a PDF")
    if is_mail or is_html(data):
        return _MAIL if is_mail else FileKind("text/html", "an HTML page")
    # A picture without compression may look like text in UTF-16.
    is_picture = b"\0" in data[:64] and picture_media_type(data)
    if is_zip(data) or is_picture or not _is_text(data):
        return identify_binary(data)
    if kind := _starts_with(data, _TEXT_MAGIC):
        return kind
    media_type = "text/plain"
    if language := language_of_file_name(name):
        media_type = language.media_type
    elif named and not named.binary:
        media_type = named.media_types[0]
    elif named is None and data.removeprefix(b"\xef\xbb\xbf").startswith(b"<?xml "):
        media_type = "application/xml"
    return FileKind(media_type, "a text file")


def _is_text(data: bytes) -> bool:
    try:
        decode_text(data)
    except ParseError as error:
        # Text in an unknown encoding is still text; its parser raises the error.
        return error.code != "binary"
    return True


def _suffix(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()
