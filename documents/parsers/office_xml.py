"""XML parts of Office files: read without entities, in one spelling of the namespaces."""

import re
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

from lxml import etree

from documents.parsers.base import ParseError
from documents.parsers.zip_archive import BoundedReader, ZipArchive

Element = etree._Element

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(main|relationships|chart|diagram)\b")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_DOCTYPE = b"<!DOCTYPE"
_OPTIONS: dict[str, Any] = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}

_OFFICE = "http://schemas.openxmlformats.org/"
W = f"{{{_OFFICE}wordprocessingml/2006/main}}"
S = f"{{{_OFFICE}spreadsheetml/2006/main}}"
P = f"{{{_OFFICE}presentationml/2006/main}}"
A = f"{{{_OFFICE}drawingml/2006/main}}"
R = f"{{{_OFFICE}officeDocument/2006/relationships}}"
M = f"{{{_OFFICE}officeDocument/2006/math}}"
MC = f"{{{_OFFICE}markup-compatibility/2006}}"


def read_xml(archive: ZipArchive, part: str) -> Element:
    """The root of a part, which must be there and small enough to be held whole."""
    source = _plain(archive.open_whole(part))
    try:
        return etree.parse(source, etree.XMLParser(**_OPTIONS)).getroot()
    except etree.LxmlError as error:
        raise _no_xml(part, error) from error


def stream_xml(archive: ZipArchive, part: str, *wanted: tuple[str, str]) -> Iterator[Element]:
    """Elements of a parent's and their own tag, each complete; emptied when the next is asked for.

    So a part of any size takes little memory. `*` stands for any tag.
    """
    tags = [tag for _, tag in wanted]
    source = _plain(archive.open(part))
    try:
        for _, element in etree.iterparse(source, events=("end",), tag=tags, **_OPTIONS):
            parent = element.getparent()
            if parent is None or not {(parent.tag, element.tag), (parent.tag, "*")} & set(wanted):
                continue
            yield element
            element.clear()
            while element.getprevious() is not None:
                del parent[0]
    except etree.LxmlError as error:
        raise _no_xml(part, error) from error


def local_name(element: Element) -> str:
    """The tag without its namespace; of an entity reference or the like the empty string."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def alternatives(element: Element) -> Iterable[Element]:
    """Of `mc:AlternateContent` one version of the content: the first, else the fallback."""
    versions = (*element.iterfind(f"{MC}Choice"), *element.iterfind(f"{MC}Fallback"))
    return next((version for version in versions if len(version)), ())


def integer(text: str | None, default: int = 0) -> int:
    """A whole number as Office writes it; `default` for anything else."""
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,9}", text) else default


def switched_on(value: str | None) -> bool:
    """Of a flag that is present: without a value it is on."""
    return value not in {"0", "false", "off"}


def _no_xml(part: str, error: Exception) -> ParseError:
    return ParseError(
        "malformed",
        f"Its part {part} is damaged ({str(error)[:200]}). Open the file and save it anew.",
    )


def _plain(source: BoundedReader) -> IO[bytes]:
    """lxml asks for no more than `read`."""
    return cast("IO[bytes]", _Plain(source))


class _Plain:
    """Refuses a document type, which no Office writes and which entities need; strict names
    become the usual ones."""

    def __init__(self, source: BoundedReader) -> None:
        self._source = source
        self._tail = b""
        self._first = True

    def read(self, size: int = -1) -> bytes:
        block = self._source.read(size)
        seen = (self._tail + block).replace(b"\0", b"")
        if _DOCTYPE in seen:
            raise ParseError(
                "malformed",
                "The file declares a document type, which Office never does and which can do "
                "harm. Open it in Office and save it anew.",
            )
        self._tail = block[-32:]
        if self._first:
            block, self._first = _STRICT.sub(_TRANSITIONAL, block), False
        return block
