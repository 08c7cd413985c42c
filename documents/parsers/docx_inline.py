"""The text of one Word paragraph: what a reader sees, without what was deleted or hidden."""

import re
from dataclasses import dataclass, field

from documents.parsers.office_symbols import symbol
from documents.parsers.office_xml import Element, W, alternatives, local_name, switched_on

_SKIPPED = frozenset(
    {
        "pPr", "rPr", "sdtPr", "sdtEndPr", "fldData", "ffData",
        "del", "moveFrom", "delText", "delInstrText",
        "rt", "rubyPr", "commentReference", "annotationRef", "",
    }
)  # fmt: skip
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "ptab": "\t", "noBreakHyphen": "-"}
_DRAWINGS = frozenset({"drawing", "pict", "object"})
_REFERRING = _DRAWINGS | {"sym", "footnoteReference", "endnoteReference"}
_FIELDS = frozenset({"fldChar", "instrText", "fldSimple"})
_PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b")


@dataclass(slots=True)
class Paragraph:
    """Line breaks are `\\n`; notes and drawings belong behind the paragraph.

    `notes` are pairs such as `("footnote", "2")`, each of which has its mark in the text; these
    count from `first_note`.
    """

    first_note: int
    parts: list[str] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    drawings: list[Element] = field(default_factory=list)
    has_page_number: bool = False

    @property
    def text(self) -> str:
        return "".join(self.parts)


def read_paragraph(node: Element, *, first_note: int = 1) -> Paragraph:
    """Walk a `w:p`; notes are numbered in the text from `first_note`."""
    walk = _Walk(first_note)
    walk.children(node)
    return walk.found


class _Walk:
    def __init__(self, first_note: int) -> None:
        self.found = Paragraph(first_note)
        self._instruction = ""
        self._in_page_field = False

    def children(self, node: Element) -> None:
        for child in node:
            self._element(child)

    def _element(self, node: Element) -> None:
        match local_name(node):
            case "t":
                self._write(node.text or "")
            case name if name in _SKIPPED or _is_invisible(node):
                return
            case name if name in _BREAKS:
                self._write(_BREAKS[name])
            case name if name in _REFERRING:
                self._refer(node, name)
            case name if name in _FIELDS:
                self._field(node, name)
            case "AlternateContent":
                for child in alternatives(node):
                    self._element(child)
            case _:
                self.children(node)

    def _refer(self, node: Element, name: str) -> None:
        """What stands for something that is elsewhere."""
        if name == "sym":
            self._write(symbol(node.get(f"{W}font", ""), node.get(f"{W}char", "")))
        elif name in _DRAWINGS:
            self.found.drawings.append(node)
        else:
            self.found.notes.append((name.removesuffix("Reference"), node.get(f"{W}id", "")))
            self._write(f"[{self.found.first_note + len(self.found.notes) - 1}]")

    def _write(self, text: str) -> None:
        if not self._in_page_field:
            self.found.parts.append(text)

    def _field(self, node: Element, name: str) -> None:
        """The result of a field is text; the number of the page is not."""
        if name == "instrText":
            self._instruction += node.text or ""
        elif name == "fldSimple" and _PAGE_FIELD.match(node.get(f"{W}instr", "")):
            self.found.has_page_number = True
        elif name == "fldSimple":
            self.children(node)
        elif node.get(f"{W}fldCharType") == "separate":
            self._in_page_field = bool(_PAGE_FIELD.match(self._instruction))
            self.found.has_page_number |= self._in_page_field
        else:
            self._instruction, self._in_page_field = "", False


def is_placeholder(control: Element) -> bool:
    """A content control that nobody has filled shows what to type."""
    return _is_on(control.find(f"{W}sdtPr/{W}showingPlcHdr"))


def _is_invisible(node: Element) -> bool:
    return _is_on(node.find(f"{W}rPr/{W}vanish")) or is_placeholder(node)


def _is_on(flag: Element | None) -> bool:
    return flag is not None and switched_on(flag.get(f"{W}val"))
