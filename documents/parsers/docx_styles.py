"""What the styles of a Word document say about its paragraphs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from documents.parsers.office_xml import Element, W, integer

#: Word names its own styles in English in every language, other programs in their own.
_HEADING = re.compile(
    r"(?:heading|(?:ü|ue)?berschrift|titre|t[ií]tulo|titolo|kop|rubrik|overskrift|otsikko|nag[łl][óo]wek|"
    r"nadpis|c[ií]msor|ba[sş]l[ıi]k|заголовок|標題|标题|見出し|제목)[\s_-]*([1-9])",
    re.I,
)
_TITLE = frozenset({"title", "titel", "titre", "título", "titulo", "titolo", "tytuł", "название"})
_CONTENTS = re.compile(r"(?:toc|contents|verzeichnis|inhaltsverzeichnis)\s*[1-9]", re.I)
_BODY_TEXT = 9
_MAX_CHAIN = 20


@dataclass(frozen=True, slots=True)
class Numbered:
    """A list and the level in it, from 0."""

    list_id: str
    level: int


@dataclass(frozen=True, slots=True)
class Style:
    name: str
    base: str = ""
    outline: int | None = None
    numbered: Numbered | None = None


class Styles:
    """Paragraph styles by id; one that is not defined is known by its id alone."""

    def __init__(self, root: Element | None) -> None:
        nodes = [] if root is None else root.findall(f"{W}style")
        self._styles = {node.get(f"{W}styleId", ""): _style(node) for node in nodes}

    def is_title(self, style_id: str) -> bool:
        return any(style.name.lower() in _TITLE for style in self._chain(style_id))

    def is_contents(self, style_id: str) -> bool:
        """Whether it is an entry of the table of contents, which repeats the headings."""
        return any(_CONTENTS.fullmatch(style.name) for style in self._chain(style_id))

    def heading_level(self, style_id: str) -> int | None:
        """1 for the highest; None for what is no heading."""
        for style in self._chain(style_id):
            if style.outline is not None:
                return level_of_outline(style.outline)
            if heading := _HEADING.fullmatch(style.name):
                return int(heading[1])
        return None

    def numbered(self, style_id: str) -> Numbered | None:
        found = (style.numbered for style in self._chain(style_id))
        return next((numbered for numbered in found if numbered), None)

    def _chain(self, style_id: str) -> Iterator[Style]:
        """The style and those it is based on."""
        for _ in range(_MAX_CHAIN):
            if not style_id:
                return
            style = self._styles.get(style_id) or Style(name=style_id)
            yield style
            style_id = style.base


def level_of_outline(outline: int) -> int | None:
    """Outline levels count from 0, and 9 is body text."""
    return outline + 1 if 0 <= outline < _BODY_TEXT else None


def outline_of(properties: Element | None) -> int | None:
    """The outline level in `w:pPr`."""
    node = None if properties is None else properties.find(f"{W}outlineLvl")
    return None if node is None else integer(node.get(f"{W}val"), _BODY_TEXT)


def numbered_of(properties: Element | None) -> Numbered | None:
    """The list in `w:pPr`; the list of id 0 says that there is none."""
    node = None if properties is None else properties.find(f"{W}numPr")
    if node is None:
        return None
    return Numbered(value(node, "numId"), integer(value(node, "ilvl")))


def value(node: Element | None, name: str) -> str:
    """`w:val` of the child `w:name`."""
    child = None if node is None else node.find(f"{W}{name}")
    return "" if child is None else child.get(f"{W}val", "")


def _style(node: Element) -> Style:
    properties = node.find(f"{W}pPr")
    return Style(
        name=value(node, "name"),
        base=value(node, "basedOn"),
        outline=outline_of(properties),
        numbered=numbered_of(properties),
    )
