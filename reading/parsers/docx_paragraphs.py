"""Paragraphs of a Word document: visible text (`ParagraphReader`), styles, and the list numbers
that Word computes (`Numbering`)."""

import re
from collections.abc import Callable, Iterator

from reading.parsers.office_content import Paragraph
from reading.parsers.office_package import (
    Element,
    W,
    alternative_content,
    is_true,
    local_name,
    parse_integer,
)

_GREEK = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_GREEK_CAPITALS = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_OPERATORS = {
    0xA3: "≤", 0xA5: "∞", 0xAB: "↔", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xB0: "°",
    0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB7: "•", 0xB8: "÷", 0xB9: "≠", 0xBA: "≡",
    0xBB: "≈", 0xC5: "⊕", 0xC6: "∅", 0xCE: "∈", 0xD5: "∏", 0xD6: "√", 0xE5: "∑", 0xF2: "∫",
}  # fmt: skip


def symbol_character(font: str, code: str) -> str:
    """The character for `w:sym` in the font `Symbol`; empty for pictorial fonts such as
    Wingdings."""
    try:
        place = int(code, 16)
    except ValueError:
        return ""
    private = 0xF000 <= place <= 0xF0FF
    place -= 0xF000 if private else 0
    if font.lower() != "symbol":
        return "" if private or not 0x20 <= place < 0xD800 else chr(place)
    if 0x61 <= place <= 0x7A:
        return _GREEK[place - 0x61]
    if 0x41 <= place <= 0x5A:
        return _GREEK_CAPITALS[place - 0x41]
    return _OPERATORS.get(place, chr(place) if 0x20 <= place < 0x7F else "")


#: Word names its own styles in English in every language, other programs in their own.
_HEADING_STYLE = re.compile(
    r"(?:heading|(?:ü|ue)?berschrift|titre|t[ií]tulo|titolo|kop|rubrik|overskrift|otsikko|nag[łl][óo]wek|"
    r"nadpis|c[ií]msor|ba[sş]l[ıi]k|заголовок|標題|标题|見出し|제목)[\s_-]*([1-9])",
    re.I,
)
_TITLE_STYLES = frozenset(
    {"title", "titel", "titre", "título", "titulo", "titolo", "tytuł", "название"}
)
_CONTENTS_STYLE = re.compile(r"(?:toc|contents|verzeichnis|inhaltsverzeichnis)\s*[1-9]", re.I)
_BODY_TEXT = 9
_MAX_CHAIN = 20


#: The id of a list and the level in it, from 0.
ListPosition = tuple[str, int]


class ParagraphStyles:
    """Paragraph styles by id; an undefined one is known by its id only."""

    def __init__(self, root: Element | None) -> None:
        nodes = () if root is None else root.iterfind(f"{W}style")
        #: name, the style that it is based on, and `w:pPr`
        self._styles = {
            node.get(f"{W}styleId", ""): (
                child_value(node, "name"),
                child_value(node, "basedOn"),
                node.find(f"{W}pPr"),
            )
            for node in nodes
        }

    def is_title(self, style_id: str) -> bool:
        return any(name.lower() in _TITLE_STYLES for name, _ in self._chain(style_id))

    def is_contents(self, style_id: str) -> bool:
        """Whether it is an entry of the table of contents, which repeats the headings."""
        return any(_CONTENTS_STYLE.fullmatch(name) for name, _ in self._chain(style_id))

    def heading_level(self, style_id: str) -> int | None:
        """1 for the highest; None if it is not a heading."""
        for name, properties in self._chain(style_id):
            if (outline := outline_level(properties)) is not None:
                return heading_level_of_outline(outline)
            if heading := _HEADING_STYLE.fullmatch(name):
                return int(heading[1])
        return None

    def numbered(self, style_id: str) -> ListPosition | None:
        found = (list_position(properties) for _, properties in self._chain(style_id))
        return next((numbered for numbered in found if numbered), None)

    def _chain(self, style_id: str) -> Iterator[tuple[str, Element | None]]:
        """Names and properties of the style and those it is based on."""
        for _ in range(_MAX_CHAIN):
            if style_id:
                name, style_id, properties = self._styles.get(style_id, (style_id, "", None))
                yield name, properties


def heading_level_of_outline(outline: int) -> int | None:
    """Outline levels count from 0, and 9 is body text."""
    return outline + 1 if 0 <= outline < _BODY_TEXT else None


def outline_level(properties: Element | None) -> int | None:
    """The outline level in `w:pPr`."""
    node = None if properties is None else properties.find(f"{W}outlineLvl")
    return None if node is None else parse_integer(node.get(f"{W}val"), _BODY_TEXT)


def list_position(properties: Element | None) -> ListPosition | None:
    """The list position in `w:pPr`; list id 0 means none."""
    node = None if properties is None else properties.find(f"{W}numPr")
    if node is None:
        return None
    return child_value(node, "numId"), parse_integer(child_value(node, "ilvl"))


def child_value(node: Element | None, name: str) -> str:
    """`w:val` of the child `w:name`."""
    child = None if node is None else node.find(f"{W}{name}")
    return "" if child is None else child.get(f"{W}val", "")


_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class Numbering:
    """Counts the items of all lists in text order.

    Lists of one scheme continue each other's numbers, unless they restart a level.
    """

    def __init__(self, root: Element | None) -> None:
        nodes = [] if root is None else [node for node in root if isinstance(node.tag, str)]
        self._schemes = {
            node.get(f"{W}abstractNumId", ""): _levels(node)
            for node in nodes
            if node.tag == f"{W}abstractNum"
        }
        self._lists = {node.get(f"{W}numId", ""): node for node in nodes if node.tag == f"{W}num"}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[ListPosition] = set()

    def label(self, numbered: ListPosition) -> str | None:
        """The next label, such as `2.1` or `(a)`; empty for a bullet, None if there is no list."""
        list_id, at = numbered
        entry = self._lists.get(list_id)
        if entry is None:
            return None
        scheme = child_value(entry, "abstractNumId")
        levels = dict(self._schemes.get(scheme, {}))
        counts = self._counts.setdefault(scheme, {})
        for override in entry.iterfind(f"{W}lvlOverride"):
            levels |= _levels(override)
            start = child_value(override, "startOverride")
            is_here = parse_integer(override.get(f"{W}ilvl")) == at
            if start and is_here and numbered not in self._begun:
                counts[at] = parse_integer(start, 1) - 1
        self._begun.add(numbered)
        level = levels.get(at)
        for upper in range(min(at, _MOST_LEVELS)):  # those passed over have begun as well
            counts.setdefault(upper, _list_start(levels.get(upper)))
        counts[at] = counts.get(at, _list_start(level) - 1) + 1
        for deeper in [other for other in counts if other > at]:
            # What restarts it: by default each level above, else those down to the one named.
            restart = child_value(levels.get(deeper), "lvlRestart")
            if not restart or at < parse_integer(restart):
                del counts[deeper]
        if level is None or child_value(level, "numFmt") == "bullet":
            return ""
        is_legal = _is_on(level.find(f"{W}isLgl"))

        def format_number(place: re.Match[str]) -> str:
            level = levels.get(int(place[1]) - 1)
            number = counts.get(int(place[1]) - 1, _list_start(level))
            form = child_value(level, "numFmt")
            if form in {"bullet", "none"}:
                return ""
            return str(number) if is_legal else _NUMBER_FORMATS.get(form, str)(number)

        return _PLACEHOLDER.sub(format_number, child_value(level, "lvlText"))


#: Word has no more.
_MOST_LEVELS = 9


def _levels(node: Element) -> dict[int, Element]:
    return {parse_integer(level.get(f"{W}ilvl")): level for level in node.iterfind(f"{W}lvl")}


def _list_start(level: Element | None) -> int:
    """A level that names no start begins with 0 (ISO/IEC 29500-1, 17.9.25)."""
    return 1 if level is None else parse_integer(child_value(level, "start"), 0)


def _alphabetic(number: int, alphabet: str = "abcdefghijklmnopqrstuvwxyz") -> str:
    """a … z, aa, bb …, as Word counts."""
    times, letter = divmod(number - 1, len(alphabet))
    return alphabet[letter] * min(times + 1, 10) if number > 0 else str(number)


def _roman(number: int) -> str:
    text, left = "", min(number, 3999)
    for size, letters in _ROMAN:
        times, left = divmod(left, size)
        text += letters * times
    return text or str(number)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in {11, 12, 13} else ending}"


def _chinese(number: int) -> str:
    """一 … 九十九; larger numbers in digits."""
    if not 0 < number < 100:
        return str(number)
    tens, ones = divmod(number, 10)
    digits = "一二三四五六七八九"
    text = (digits[tens - 1] if tens > 1 else "") + ("十" if tens else "")
    return text + (digits[ones - 1] if ones else "")


_CYRILLIC = "абвгдежзиклмнопрстуфхцчшщыэюя"
_NUMBER_FORMATS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "ordinal": _ordinal,
    "numberInDash": lambda number: f"- {number} -",
    "lowerLetter": _alphabetic,
    "upperLetter": lambda number: _alphabetic(number).upper(),
    "russianLower": lambda number: _alphabetic(number, _CYRILLIC),
    "russianUpper": lambda number: _alphabetic(number, _CYRILLIC).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
}


_SKIPPED = frozenset(
    {
        "pPr", "rPr", "sdtPr", "sdtEndPr", "fldData", "ffData",
        "del", "moveFrom", "delText", "delInstrText",
        "rt", "rubyPr", "annotationRef", "",
    }
)  # fmt: skip
_BREAKS = {"br": "\n", "cr": "\n", "tab": "\t", "ptab": "\t", "noBreakHyphen": "-"}
_DRAWING_TAGS = frozenset({"drawing", "pict", "object"})
_NOTE_TAGS = frozenset({"footnoteReference", "endnoteReference"})
_FIELDS = frozenset({"fldChar", "instrText", "fldSimple"})
#: `Page 3 of 12` without its numbers.
_MAX_PAGE_NUMBER_WORDS = 3
_PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b")


class ParagraphReader:
    """Reads paragraphs of the body; numbers the notes that they refer to.

    `notes` are their texts by kind and id, such as `("footnote", "2")`.
    """

    def __init__(self) -> None:
        self.notes: dict[tuple[str, str], str] = {}
        self._note_count = 0
        self._found = Paragraph()
        self._instruction = ""
        self._has_page_number = self._in_page_field = False

    def read(self, node: Element) -> Paragraph:
        """Walk a `w:p`. A paragraph that says no more than `Page 3 of 12` has no text."""
        self._found = Paragraph()
        self._instruction = ""
        self._has_page_number = self._in_page_field = False
        self._children(node)
        if self._has_page_number and len(self._found.text.split()) <= _MAX_PAGE_NUMBER_WORDS:
            self._found.parts.clear()
        return self._found

    def _children(self, node: Element) -> None:
        for child in node:
            self._element(child)

    def _element(self, node: Element) -> None:
        name = local_name(node)
        if name == "t":
            self._write(node.text or "")
        elif name in _SKIPPED or _is_on(node.find(f"{W}rPr/{W}vanish")) or is_placeholder(node):
            return
        elif name in _BREAKS:
            self._write(_BREAKS[name])
        elif name == "sym":
            self._write(symbol_character(node.get(f"{W}font", ""), node.get(f"{W}char", "")))
        elif name in _DRAWING_TAGS:
            self._found.drawings.append(node)
        elif name in _NOTE_TAGS:
            self._note_count += 1
            text = self.notes.get((name.removesuffix("Reference"), node.get(f"{W}id", "")), "")
            self._found.notes.append(f"[{self._note_count}] {text}")
            self._write(f"[{self._note_count}]")
        elif name == "commentReference":
            if text := self.notes.get(("comment", node.get(f"{W}id", "")), ""):
                self._found.notes.append(f"Comment: {text}")
        elif name in _FIELDS:
            self._field(node, name)
        elif name == "AlternateContent":
            for child in alternative_content(node):
                self._element(child)
        else:
            self._children(node)

    def _write(self, text: str) -> None:
        if not self._in_page_field:
            self._found.parts.append(text)

    def _field(self, node: Element, name: str) -> None:
        """Keep the result of a field, except page numbers."""
        if name == "instrText":
            self._instruction += node.text or ""
        elif name == "fldSimple" and _PAGE_FIELD.match(node.get(f"{W}instr", "")):
            self._has_page_number = True
        elif name == "fldSimple":
            self._children(node)
        elif node.get(f"{W}fldCharType") == "separate":
            self._in_page_field = bool(_PAGE_FIELD.match(self._instruction))
            self._has_page_number |= self._in_page_field
        else:
            self._instruction, self._in_page_field = "", False


def is_placeholder(control: Element) -> bool:
    """Whether a content control was not filled in and shows its prompt."""
    return _is_on(control.find(f"{W}sdtPr/{W}showingPlcHdr"))


def _is_on(flag: Element | None) -> bool:
    return flag is not None and is_true(flag.get(f"{W}val"))
