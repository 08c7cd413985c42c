"""Cleaning the text of a PDF page, and finding outline titles in it."""

import re
from collections.abc import Sequence

from documents.parsers.normalise import normalise_text

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
#: The dots that lead from a title to its page number, in a table of contents.
_LEADER = re.compile(r"(?: ?\.){5,}")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\n(?=([^\W\d_]))")
#: Numbering such as "4.2 " may stand between the line's start and the title.
_MAX_NUMBERING = 12


def clean_page(text: str) -> str:
    """Words whole again (ligatures, hyphenation), no trailing space, no run of blank lines."""
    text = normalise_text(text).translate(_LIGATURES)
    text = _LEADER.sub(" …", text)
    lines = "\n".join(" ".join(line.split()) for line in text.split("\n"))
    joined = _HYPHENATED.sub(_join_if_lower, lines).replace("\u00ad", "")
    return re.sub(r"\n{3,}", "\n\n", joined).strip("\n")


def join_pages(pages: Sequence[str]) -> tuple[str, list[int]]:
    """The whole text and the offset of each page.

    A sentence that runs over the page break is not torn into two paragraphs.
    """
    parts: list[str] = []
    offsets: list[int] = []
    length, before = 0, ""
    for page in pages:
        glue = "" if not (before and page) else "\n" if _runs_on(before, page) else "\n\n"
        offsets.append(length + len(glue))
        parts += [glue, page]
        length += len(glue) + len(page)
        before = page or before
    return "".join(parts), offsets


def find_title(page: str, title: str) -> int | None:
    """Where in `page` the line begins that holds the outline entry `title`; None if nowhere."""
    words = title.split()
    if not words:
        return None
    pattern = r"\s+".join(re.escape(word) for word in words[:40])
    for match in re.finditer(pattern, page, re.I):
        start = page.rfind("\n", 0, match.start()) + 1
        if match.start() - start <= _MAX_NUMBERING:
            return start
    return None


def _join_if_lower(match: re.Match[str]) -> str:
    """`infor-/mation` is one word; `Smith-/Jones` keeps its hyphen."""
    return "" if match[1].islower() else match[0]


def _runs_on(before: str, page: str) -> bool:
    return before[-1].isalnum() and page[:1].islower()
