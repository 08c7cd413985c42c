"""What a file really is, by its first bytes."""

import re
from dataclasses import dataclass

import puremagic

from documents.parsers.base import DEFAULT_LIMITS, ErrorCode, ParseError
from documents.parsers.zip_archive import BROKEN_ZIP, ZipArchive

_HEAD = 4096
_OFFICE = "application/vnd.openxmlformats-officedocument."
_OCTETS = "application/octet-stream"
_HTML = re.compile(
    rb"(?:\s++|<\?xml[^>]{0,200}>|<!--.{0,1000}?-->)*+<(?:!doctype\s+html|html)\b", re.I | re.S
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A media type and what people call it, with its article: `a PNG image`.

    Where more can be said than that it is not read, `code` and `cure` say it.
    """

    media_type: str
    label: str
    code: ErrorCode = "unsupported"
    cure: str = ""


_WORD = Kind(f"{_OFFICE}wordprocessingml.document", "a Word document (.docx)")
_EXCEL = Kind(f"{_OFFICE}spreadsheetml.sheet", "an Excel workbook (.xlsx)")
_POWERPOINT = Kind(f"{_OFFICE}presentationml.presentation", "a PowerPoint presentation (.pptx)")
#: A ZIP is known by what is in it: the first of these members that it has.
_ZIP_MEMBERS = {
    "xl/workbook.bin": Kind(
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
        "an Excel binary workbook (.xlsb)",
        cure="Save it as .xlsx.",
    ),
    "meta-inf/container.xml": Kind("application/epub+zip", "an EPUB book"),
    "meta-inf/manifest.mf": Kind("application/java-archive", "a Java archive"),
}
_OFFICE_LIST = "[content_types].xml"
_OFFICE_FOLDERS = {"word/": _WORD, "xl/": _EXCEL, "ppt/": _POWERPOINT}
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_ZIP = Kind("application/zip", "a ZIP archive")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLD_OFFICE = Kind(
    "application/x-ole-storage",
    "an old Office document (.doc, .xls, .ppt)",
    cure="Save it as .docx, .xlsx or .pptx.",
)
_LOCKED_OFFICE = Kind(
    "application/x-ole-storage",
    "an encrypted Office document",
    code="encrypted",
    cure="Open it with its password, remove the password and save it.",
)

#: Formats that puremagic misses or confuses, and those whose bytes are valid text.
_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89PNG", Kind("image/png", "a PNG image")),
    (b"\xff\xd8\xff", Kind("image/jpeg", "a JPEG image")),
    (b"GIF87a", Kind("image/gif", "a GIF image")),
    (b"GIF89a", Kind("image/gif", "a GIF image")),
    (b"II*\x00", Kind("image/tiff", "a TIFF image")),
    (b"MM\x00*", Kind("image/tiff", "a TIFF image")),
    (b"\x1f\x8b", Kind("application/gzip", "a gzip archive")),
    (b"BZh", Kind("application/x-bzip2", "a bzip2 archive")),
    (b"\xfd7zXZ\x00", Kind("application/x-xz", "an xz archive")),
    (b"7z\xbc\xaf\x27\x1c", Kind("application/x-7z-compressed", "a 7-Zip archive")),
    (b"Rar!\x1a\x07", Kind("application/vnd.rar", "a RAR archive")),
    (b"SQLite format 3\x00", Kind("application/vnd.sqlite3", "an SQLite database")),
    (b"\x7fELF", Kind("application/x-executable", "a program (ELF)")),
    (b"PAR1", Kind("application/vnd.apache.parquet", "a Parquet file")),
)
_TEXT_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"{\\rtf", Kind("application/rtf", "an RTF document")),
    (b"%!PS", Kind("application/postscript", "a PostScript file")),
)


def is_pdf(data: bytes) -> bool:
    """Readers tolerate junk before the mark, but a text may also speak of `%PDF-`."""
    head = data[:1024]
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"%PDF-") or (
        b"%PDF-" in head and b"%%EOF" in data[-2048:]
    )


def is_zip(data: bytes) -> bool:
    """A ZIP archive, which Office files are."""
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_html(data: bytes) -> bool:
    """True where the file begins with its doctype or `<html`, in any ASCII-like encoding."""
    head = data[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    return _HTML.match(head.replace(b"\0", b"")) is not None


def text_but_no_prose(data: bytes) -> Kind | None:
    """Formats made of ASCII characters that would be garbage as text."""
    return _starts_with(data, _TEXT_MAGIC)


def identify_binary(data: bytes) -> Kind:
    """The kind of a file that is known not to be text."""
    if is_zip(data):
        return _identify_zip(data)
    if data.startswith(_OLE):
        locked = "EncryptedPackage".encode("utf-16-le") in data
        return _LOCKED_OFFICE if locked else _OLD_OFFICE
    return _starts_with(data, _MAGIC) or _ask_puremagic(data)


def _starts_with(data: bytes, table: tuple[tuple[bytes, Kind], ...]) -> Kind | None:
    return next((kind for magic, kind in table if data.startswith(magic)), None)


def _identify_zip(data: bytes) -> Kind:
    try:
        archive = ZipArchive(data, DEFAULT_LIMITS)
    except ParseError as error:
        label = "a ZIP archive or Office document that cannot be unpacked"
        return Kind("application/zip", label, error.code, error.message)
    names = set(archive.names)
    if "content.xml" in names and "mimetype" in names:
        return _open_document(archive)
    if kind := next((kind for member, kind in _ZIP_MEMBERS.items() if member in names), None):
        return kind
    folders = _OFFICE_FOLDERS if _OFFICE_LIST in names else {}
    return next(
        (kind for folder, kind in folders.items() if any(x.startswith(folder) for x in names)), _ZIP
    )


def _open_document(archive: ZipArchive) -> Kind:
    """The first part of such a file says what it is; templates are read alike."""
    try:
        stated = archive.open("mimetype").read(100).decode("ascii", "replace").strip()
    except (ParseError, *BROKEN_ZIP):
        stated = ""
    if not stated.startswith(_OPEN_DOCUMENT):
        return _ZIP
    return Kind(stated.removesuffix("-template"), "an OpenDocument file")


def _ask_puremagic(data: bytes) -> Kind:
    try:
        matches = puremagic.magic_string(data)
    except (puremagic.PureError, ValueError):
        return Kind(_OCTETS, "a binary file")
    best = matches[0]
    # Two bytes alike (0.2) are chance.
    if best.confidence < 0.3 or not best.name:
        return Kind(_OCTETS, "a binary file")
    return Kind(best.mime_type or _OCTETS, f"a binary file ({best.name})")
