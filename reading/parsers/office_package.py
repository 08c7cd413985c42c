"""The package that every Office file is: XML parts read safely, the relations between them, and the
document's properties. Begin with `OfficePackage`."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import IO, Any, cast
from urllib.parse import unquote

from lxml import etree

from reading.parsers.base import Heading, Page, ParsedDocument, ParseError
from reading.parsers.normalise import json_safe, language_code, readable_title
from reading.parsers.zip_archive import BoundedReader, ZipArchive, normalise_part_name

Element = etree._Element

_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(main|relationships|chart|diagram)\b")
_TRANSITIONAL = rb"http://schemas.openxmlformats.org/\1/2006/\2"
_DOCTYPE = b"<!DOCTYPE"
#: That of OpenOffice, which only names a definition elsewhere that is not read.
_OPEN_OFFICE_DOCTYPE = re.compile(
    rb"""<!DOCTYPE\s[\w:.-]{1,99}\sPUBLIC\s"-//OpenOffice\.org//[^"<>]{0,99}"\s"[\w./-]{0,99}"\s?>"""
)
_PARSER_OPTIONS: dict[str, Any] = {
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
    """The root of a required part that is small enough for memory."""
    source = cast("IO[bytes]", _SafeXml(archive.open_in_memory(part)))
    try:
        return etree.parse(source, etree.XMLParser(**_PARSER_OPTIONS)).getroot()
    except etree.LxmlError as error:
        raise _damaged_part(part, error) from error


def local_name(element: Element) -> str:
    """The tag without its namespace; empty for entity references and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def alternative_content(element: Element) -> Iterable[Element]:
    """One branch of `mc:AlternateContent`: the first, else the fallback."""
    versions = (*element.iterfind(f"{MC}Choice"), *element.iterfind(f"{MC}Fallback"))
    return next((version for version in versions if len(version)), ())


def parse_integer(text: str | None, default: int = 0) -> int:
    """A whole number as Office writes it; `default` for anything else."""
    return int(text) if text and re.fullmatch(r"-?[0-9]{1,9}", text) else default


def is_true(value: str | None) -> bool:
    """Whether a flag that is present is on; without a value it is."""
    return value not in {"0", "false", "off"}


def _damaged_part(part: str, error: Exception) -> ParseError:
    return ParseError(
        "malformed",
        f"Its part {part} is damaged ({str(error)[:200]}). Open the file and save it again.",
    )


class _SafeXml:
    """What lxml reads from: refuses document types but those of OpenOffice: entities need them, and
    Office never writes any; converts strict namespaces to the usual ones."""

    def __init__(self, source: BoundedReader) -> None:
        self._source = source
        self._tail = b""
        self._first = True

    def read(self, size: int = -1) -> bytes:
        block = self._source.read(size)
        seen = (self._tail + block).replace(b"\0", b"")
        if _DOCTYPE in _OPEN_OFFICE_DOCTYPE.sub(b"", seen):
            raise ParseError(
                "malformed",
                "The file declares a document type, which Office never does and which can do "
                "harm. Open it in Office and save it again.",
            )
        self._tail = block[-32:]
        if self._first:
            block, self._first = _STRICT.sub(_TRANSITIONAL, block), False
        return block


_CORE_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "description": "description",
    "category": "category",
    "language": "language",
    "created": "created_at",
    "modified": "modified_at",
}
#: Titles that programs give by themselves, in lower case.
_GENERATED_TITLES = {
    "powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint",
    "presentación de powerpoint", "word document", "presentation", "untitled", "slide 1",
}  # fmt: skip
_FILE_ENDINGS = tuple(".doc .docx .dotx .ppt .pptx .potx .xls .xlsx .odt .rtf".split())  # noqa: SIM905


class OfficePackage:
    """Parts by name; `main` is the one with the document."""

    def __init__(self, archive: ZipArchive) -> None:
        self._archive = archive
        self._relations: dict[str, dict[str, tuple[str, str]]] = {}

    def __contains__(self, part: str) -> bool:
        return part in self._archive

    @cached_property
    def main(self) -> str:
        part = self.related_part("", "officedocument")
        if part is None:
            raise ParseError(
                "malformed",
                "Its main part is missing. Open the file in Office and save it again.",
            )
        return part

    def xml(self, part: str) -> Element:
        """The root of a required part that is small enough for memory."""
        return read_xml(self._archive, part)

    def optional_xml(self, part: str | None) -> Element | None:
        """The root of a part, None if it is missing."""
        return self.xml(part) if part is not None and part in self._archive else None

    def read(self, part: str) -> bytes:
        """The bytes of a part that is not XML; empty if it is missing."""
        return self._archive.open_in_memory(part).read() if part in self._archive else b""

    def stream(self, part: str, *wanted: tuple[str, str]) -> Iterator[Element]:
        """Complete elements with the given tags (parent's, own), cleared when the next is
        requested, so that a part of any size takes little memory. `*` matches any tag."""
        tags = [tag for _, tag in wanted]
        source = cast("IO[bytes]", _SafeXml(self._archive.open(part)))
        try:
            for _, element in etree.iterparse(source, events=("end",), tag=tags, **_PARSER_OPTIONS):
                parent = element.getparent()
                if parent is None or not {(parent.tag, element.tag), (parent.tag, "*")} & set(
                    wanted
                ):
                    continue
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del parent[0]
        except etree.LxmlError as error:
            raise _damaged_part(part, error) from error

    def related(self, part: str) -> dict[str, tuple[str, str]]:
        """References of `part` by id, without external ones: the last word of the type, such as
        `slide`, and the part it leads to."""
        if part not in self._relations:
            folder, name = posixpath.split(part)
            root = self.optional_xml(posixpath.join(folder, "_rels", f"{name}.rels"))
            relations = {}
            for node in () if root is None else root:
                if isinstance(node.tag, str) and node.get("TargetMode") != "External":
                    path = unquote(node.get("Target", "").replace("\\", "/")).split("#")[0]
                    if not path.startswith("/"):
                        path = posixpath.join(folder, path)
                    target = normalise_part_name(posixpath.normpath(path or "."))
                    kind = node.get("Type", "").rpartition("/")[2].lower()
                    relations[node.get("Id", "")] = kind, target
            self._relations[part] = relations
        return self._relations[part]

    def related_parts(self, part: str, kind: str) -> list[str]:
        """Existing parts of one kind that `part` refers to, each once."""
        targets = (target for found, target in self.related(part).values() if found == kind)
        return [target for target in dict.fromkeys(targets) if target in self._archive]

    def related_part(self, part: str, kind: str) -> str | None:
        return next(iter(self.related_parts(part, kind)), None)

    def properties(self) -> dict[str, Any]:
        """Title, author, dates and the like, as the file states them."""
        root = self.optional_xml(self.related_part("", "core-properties"))
        return read_properties(() if root is None else root, _CORE_PROPERTIES)


def read_properties(nodes: Iterable[Element], keys: Mapping[str, str]) -> dict[str, Any]:
    """The texts of the nodes whose names have a key; the first of each key."""
    found: dict[str, str] = {}
    for node in nodes:
        key, text = keys.get(local_name(node)), " ".join((node.text or "").split())
        if key and text:
            found.setdefault(key, text)
    properties: dict[str, Any] = json_safe(found)
    return properties


def office_document(
    content: tuple[str, tuple[Heading, ...]],
    *,
    name: str,
    media_type: str,
    metadata: dict[str, Any],
    title: str = "",
    fallback_title: str = "",
    pages: Sequence[Page] = (),
) -> ParsedDocument:
    """The document of a text with its headings.

    It is called by the given title, else by the title property unless a program generated that,
    else by the fallback, else by the file's name.
    """
    text, headings = content
    stated = str(metadata.get("title", ""))
    if stated.lower() in _GENERATED_TITLES or stated.lower().endswith(_FILE_ENDINGS):
        stated = ""
    return ParsedDocument(
        text=text,
        media_type=media_type,
        title=title or stated or fallback_title or readable_title(name),
        rendering="markdown",
        headings=headings,
        pages=tuple(pages),
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def single_top_heading(headings: Sequence[Heading]) -> str:
    """The first heading if it is the only one of its level, as a document title is."""
    levels = [heading.level for heading in headings]
    return headings[0].title if levels and levels.count(levels[0]) == 1 == levels[0] else ""
