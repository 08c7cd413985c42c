"""The package that every Office file is: parts that refer to each other, and its properties."""

import posixpath
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from documents.parsers.base import Heading, Limits, ParseError
from documents.parsers.metadata import json_safe
from documents.parsers.office_xml import Element, local_name, read_xml, stream_xml
from documents.parsers.zip_archive import ZipArchive, open_zip, part_name

_CORE = {
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
_MACHINE_MADE = {"powerpoint presentation", "powerpoint-präsentation", "présentation powerpoint",
    "presentación de powerpoint", "word document", "presentation", "untitled", "slide 1",
}  # fmt: skip
_FILE_ENDINGS = (
    ".doc",
    ".docx",
    ".dotx",
    ".ppt",
    ".pptx",
    ".potx",
    ".xls",
    ".xlsx",
    ".odt",
    ".rtf",
)


@dataclass(frozen=True, slots=True)
class Relation:
    """What a part refers to. `kind` is the last word of its type, such as `slide`."""

    kind: str
    target: str


class Package:
    """Parts by name; `main` is the one that holds the document."""

    def __init__(self, archive: ZipArchive) -> None:
        self._archive = archive
        self._relations: dict[str, dict[str, Relation]] = {}

    def __contains__(self, part: str) -> bool:
        return part in self._archive

    @cached_property
    def main(self) -> str:
        part = self.related_part("", "officedocument")
        if part is None:
            raise ParseError(
                "malformed",
                "Its main part is missing. Open the file in Office and save it anew.",
            )
        return part

    def xml(self, part: str) -> Element:
        """The root of a part that must be there, and that is small enough to be held whole."""
        return read_xml(self._archive, part)

    def optional_xml(self, part: str | None) -> Element | None:
        """The root of a part, None if the file does without it."""
        return self.xml(part) if part is not None and part in self._archive else None

    def read(self, part: str) -> bytes:
        """The bytes of a part that is no XML; none if it is not there."""
        return self._archive.open_whole(part).read() if part in self._archive else b""

    def stream(self, part: str, *wanted: tuple[str, str]) -> Iterator[Element]:
        """Elements of a part that may be large, by the tags of their parent and their own."""
        return stream_xml(self._archive, part, *wanted)

    def related(self, part: str) -> dict[str, Relation]:
        """What `part` refers to, by id; what lies outside of the file is left out."""
        if part not in self._relations:
            self._relations[part] = self._read_relations(part)
        return self._relations[part]

    def _read_relations(self, part: str) -> dict[str, Relation]:
        folder, name = posixpath.split(part)
        root = self.optional_xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        relations = {}
        for node in () if root is None else root:
            if isinstance(node.tag, str) and node.get("TargetMode") != "External":
                target = _resolved(folder, node.get("Target", ""))
                kind = node.get("Type", "").rpartition("/")[2].lower()
                relations[node.get("Id", "")] = Relation(kind, target)
        return relations

    def related_parts(self, part: str, kind: str) -> list[str]:
        """Parts of one kind that `part` refers to and that are there, each once."""
        targets = (link.target for link in self.related(part).values() if link.kind == kind)
        return [target for target in dict.fromkeys(targets) if target in self._archive]

    def related_part(self, part: str, kind: str) -> str | None:
        return next(iter(self.related_parts(part, kind)), None)

    def properties(self) -> dict[str, Any]:
        """Title, author, dates and the like, as the file states them."""
        root = self.optional_xml(self.related_part("", "core-properties"))
        if root is None:
            return {}
        found = {
            _CORE.get(local_name(node), ""): " ".join((node.text or "").split()) for node in root
        }
        values: dict[str, Any] = json_safe(
            {key: found[key] for key in _CORE.values() if found.get(key)}
        )
        return values


@contextmanager
def open_package(data: bytes, limits: Limits) -> Iterator[Package]:
    """The file as a package; whatever is wrong with it becomes a ParseError with a cure."""
    with open_zip(data, limits) as archive:
        yield Package(archive)


def stated_title(properties: dict[str, Any]) -> str:
    """The title among the properties, unless a program put it there by itself."""
    title = str(properties.get("title", ""))
    machine_made = title.lower() in _MACHINE_MADE or title.lower().endswith(_FILE_ENDINGS)
    return "" if machine_made else title


def sole_heading(headings: Sequence[Heading]) -> str:
    """The first heading where it alone is of its level, as the title on a page is."""
    levels = [heading.level for heading in headings]
    return headings[0].title if levels and levels.count(levels[0]) == 1 == levels[0] else ""


def _resolved(folder: str, target: str) -> str:
    target = unquote(target.replace("\\", "/")).split("#")[0]
    path = target if target.startswith("/") else posixpath.join(folder, target)
    return part_name(posixpath.normpath(path or "."))
