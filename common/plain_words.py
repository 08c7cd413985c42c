"""Markdown without its signs, for the few lines that a list has room for."""

import re

#: Stand around a highlight, until the text is escaped.
START, END = "\ue000", "\ue001"
#: Where a link leads.
_TARGET = re.compile(r"\]\([^)\s]{0,2000}+\)")
#: Marks that a reader of one line does not need: code, emphasis, ends of links. Each is found
#: without what a highlight may have cut off.
_MARKS = re.compile(
    r"!?\[|\]|`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|^(?:(?<!\s\n)\s*+|[ \t]*+)#{1,6}\s", re.MULTILINE
)
#: The line above or below a block of code, with the name of its language.
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|\Z)", re.MULTILINE)
#: A heading that something follows.
_HEADING = re.compile(
    r"^[ \t]*+#{1,6}[ \t]++(?P<words>[^\n]*[^\s#])[ \t#]*+\n\s*+(?=\S)", re.MULTILINE
)
_ITEM = re.compile(r"^[ \t]*+[-*+][ \t]++(?=\S)", re.MULTILINE)
#: The line between the head of a table and its rows, and the ends of a row.
_RULE = re.compile(
    r"^[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++[ \t]*+:?-*+:?[ \t]*+(?:\n|\Z)", re.MULTILINE
)
_ROW_START = re.compile(r"^[ \t]*\|[ \t]*", re.MULTILINE)
_ROW_END = re.compile(r"(?:(?<![ \t])[ \t]++)?\|[ \t]*+$(?!\Z)", re.MULTILINE)
_LAST_ROW_END = re.compile(r"(?:(?<![ \t])[ \t]++)?\|\s*+\Z")
_CELL_END = re.compile(r"(?:(?<!\s)\s++)?\|\s*+")


def without_signs(text: str) -> str:
    """Words in place of Markdown. Cells of a table are parted by dots, its rows by semicolons.

    A heading is followed by a colon, but the one that the text begins with is left out: it stands
    above the text already. It stays where nothing else is highlighted.
    """
    text = _FENCE.sub(_if_torn, _RULE.sub("", text))
    text = _HEADING.sub(_and_colon, _without_first_heading(text))
    text = _MARKS.sub("", _TARGET.sub(_if_torn, _ITEM.sub("• ", text)))
    text = _ROW_END.sub(";", _LAST_ROW_END.sub("", _ROW_START.sub("", text)))
    return _CELL_END.sub(" · ", text)


def _without_first_heading(text: str) -> str:
    heading = _HEADING.match(text.lstrip("\n"))
    rest = text.lstrip("\n")[heading.end() :] if heading else ""
    return rest if heading and (START in rest or START not in heading[0]) else text


def _and_colon(heading: re.Match[str]) -> str:
    words = heading["words"]
    return f"{words} " if words.endswith((".", ":", "?", "!", "…")) else f"{words}: "


def _if_torn(found: re.Match[str]) -> str:
    """Nothing, but for what a highlight begins or ends in: whole ones go with it."""
    return "" if found[0].count(START) == found[0].count(END) else found[0]
