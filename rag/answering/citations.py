"""Find citations in a text that arrives in pieces, without ever splitting one. Begin with
`CitationScanner`. Without Django.

A citation is `[1]`, `[1, 2]`, `[1-3]`, full-width forms of these, and what models write instead,
such as `[Source 1]`, `[^1]` or `【1†source】`. All of them are emitted as `[1][2]`. Left unchanged,
because they are no citations: code, links such as `[1](address)`, `x[1]`, `[2024]`, and `\\[1]`.
"""

import re
from collections.abc import Iterator, Mapping

from rag.events import Citation, Passage

#: The longest bracketed text to wait for.
MAX_CITATION_CHARACTERS = 64
#: A wider range is not a citation.
MAX_RANGE_WIDTH = 20

_OPENING, _CLOSING = "[［【", "]］】"
_OPEN, _CLOSE = rf"[\{_OPENING}]", rf"[\{_CLOSING}]"
_BLANK = r"[ \t\u00a0\u3000]"
_LABEL = (
    r"(?:\^|(?:sources?|passages?|documents?|docs?|refs?|citations?|quellen?|fuentes?|doc)"
    rf"{_BLANK}{{0,2}}[:#]?{_BLANK}{{0,2}})?"
)
_NUMBER = rf"{_LABEL}\d{{1,3}}"
_SEPARATOR = rf"{_BLANK}{{0,3}}(?:[,;、，；&]|[-–—‐‑－]|and|und|y|et){_BLANK}{{0,3}}"
_GROUP = re.compile(
    rf"{_OPEN}{_BLANK}{{0,3}}(?P<inside>{_NUMBER}(?:{_SEPARATOR}{_NUMBER})*){_BLANK}{{0,3}}"
    rf"(?:†[^\{_CLOSING}\n]*)?{_CLOSE}",
    re.IGNORECASE,
)
_PARTS = re.compile(r"(?P<first>\d+)(?:\s*[-–—‐‑－]\s*(?P<last>\d+))?")
#: The beginning of a citation; anything else is plain text.
_BEGINS = re.compile(rf"{_BLANK}|[\d^spdrcqf]", re.IGNORECASE)
_ENDS = re.compile(rf"{_CLOSE}|{_OPEN}|\n")
#: A variable before an index in code: a single small letter, or a name with an underscore.
_INDEXED = re.compile(r"(?:^|[^\w'’])(?:[a-z]|\w*_\w*)$")

_BLANKS = re.compile(rf"{_BLANK}+")
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
_MAY_BE_FENCE = re.compile(r" {0,3}(?:`{0,64}|~{0,64})\Z")
#: Text that cannot contain or precede a citation.
_PLAIN = re.compile(rf"[^\{_OPENING}`\\\n \t\u00a0\u3000]+")

AnswerPiece = str | Citation


class CitationScanner:
    """Find citations of `known` passages in a text that comes in pieces, however it is cut. The
    joined output of `feed` and `finish` does not depend on the cuts. Numbers of no known passage
    are removed and counted in `dropped`. `at` of a citation is the offset of its bracket in the
    emitted text."""

    def __init__(self, known: Mapping[int, Passage]) -> None:
        self.dropped = 0
        self._known = known
        self._waiting = ""
        self._length = 0
        # What ends the code block or span the scanner is in, and the current line so far.
        self._fence = self._ticks = self._line = ""
        self._just_dropped = False

    def feed(self, piece: str) -> list[AnswerPiece]:
        """Return what is certain after `piece`: text, and each citation after its marker."""
        self._waiting += piece
        return _merge_adjacent_text(self._advance(final=False))

    def finish(self) -> list[AnswerPiece]:
        """Return the rest; call it when the text is complete."""
        return _merge_adjacent_text(self._advance(final=True))

    def _advance(self, *, final: bool) -> Iterator[AnswerPiece]:
        while self._waiting:
            before = self._waiting, self._just_dropped
            yield from self._step(final)
            if (self._waiting, self._just_dropped) == before:
                return

    def _step(self, final: bool) -> Iterator[AnswerPiece]:
        """One piece of the text, or nothing if its meaning depends on what follows."""
        text = self._waiting
        if not self._line and _MAY_BE_FENCE.match(text) and not final:
            return
        if self._fence or (not self._line and _FENCE.match(text)):
            yield from self._code_block(final)
        elif text[0] == "`":
            # Backticks begin inline code, and the same number of them ends it.
            ticks = _TICKS.match(text)[0]  # type: ignore[index]
            if len(ticks) < len(text) or final:
                if not self._ticks:
                    self._ticks = ticks
                elif self._ticks == ticks:
                    self._ticks = ""
                yield self._emit(ticks)
        elif self._ticks:
            yield self._emit(re.match(r"[^`\n]+|\n", text)[0])  # type: ignore[index]
        elif text[0] == "\\":
            if len(text) > 1 or final:
                yield self._emit(text[:2])
        elif blanks := _BLANKS.match(text):
            yield from self._blanks(blanks.end(), final)
        elif text[0] in _OPENING:
            yield from self._bracket(0, final)
        else:
            plain = _PLAIN.match(text)
            yield self._emit(plain[0] if plain else text[0])

    def _code_block(self, final: bool) -> Iterator[AnswerPiece]:
        """A line of a code block, or the part of it received so far, with its fences."""
        text = self._waiting
        found = _FENCE.match(text) if not self._line else None
        if found and found.end() == len(text) and not final:
            return
        fence = found["fence"] if found else ""
        if not self._fence:
            self._fence = fence
            yield self._emit(text[: found.end()] if found else "")
            return
        end = text.find("\n") + 1
        if fence.startswith(self._fence):
            rest = text[found.end() : end or len(text)] if found else ""
            if not end and not final and not rest.strip():
                return
            if not rest.strip():
                self._fence = ""
        yield self._emit(text[: end or len(text)])

    def _blanks(self, end: int, final: bool) -> Iterator[AnswerPiece]:
        """White space is kept, except before a citation that is removed."""
        text = self._waiting
        if end == len(text) and not final:
            return
        following = text[end : end + 1]
        if following and following in _OPENING:
            yield from self._bracket(end, final)
        elif self._just_dropped and not following.isalnum():
            self._waiting, self._just_dropped = text[end:], False
        else:
            yield self._emit(text[:end])

    def _bracket(self, at: int, final: bool) -> Iterator[AnswerPiece]:
        """A citation at `at`, after white space, or a bracket that is not one."""
        text = self._waiting
        inside = text[at + 1 : at + MAX_CITATION_CHARACTERS]
        closed = _ENDS.search(inside)
        if not closed and len(inside) < MAX_CITATION_CHARACTERS - 1 and not final:
            if not inside or _BEGINS.match(inside):
                return
        elif closed and not final and at + 1 + closed.end() == len(text):
            return  # the next character decides whether this is a link
        group = _GROUP.match(text, at)
        numbers = _numbers(group["inside"]) if group else None
        if group and text[at] == "[":
            following = text[group.end() : group.end() + 1]
            is_definition = following == ":" and not (self._line + text[:at]).strip()
            is_index = at == 0 and _INDEXED.search(self._line)
            if following == "(" or is_definition or is_index:
                numbers = None
        if group is None or numbers is None:
            yield self._emit(text[: at + 1])
            return
        known = [number for number in numbers if number in self._known]
        self.dropped += len(numbers) - len(known)
        rest = text[group.end() :]
        if not known:
            self._waiting = rest if _BLANKS.match(rest) else text[:at] + rest
            self._just_dropped = True
            return
        if at:
            yield self._emit(text[:at])
        for number in known:
            passage, place = self._known[number], self._length
            yield self._emit(f"[{number}]")
            yield Citation(passage, place, passage.start, passage.end, passage.text)
        self._waiting = rest

    def _emit(self, text: str) -> str:
        """Emit `text`, the beginning of what waits, and move past it."""
        self._waiting = self._waiting[len(text) :]
        self._length += len(text)
        cut = text.rfind("\n")
        if cut >= 0:
            self._ticks = ""
        self._line = text[cut + 1 :] if cut >= 0 else self._line + text
        self._just_dropped = self._just_dropped and not text
        return text


def _numbers(inside: str) -> list[int] | None:
    """The numbers of a group, without repetition; None for a range that is too wide."""
    numbers: list[int] = []
    for part in _PARTS.finditer(inside):
        first, last = int(part["first"]), int(part["last"] or part["first"])
        if last - first >= MAX_RANGE_WIDTH:
            return None
        numbers += range(first, last + 1) if last >= first else [first, last]
    return list(dict.fromkeys(numbers))


def _merge_adjacent_text(pieces: Iterator[AnswerPiece]) -> list[AnswerPiece]:
    """Merge adjacent pieces of text."""
    joined: list[AnswerPiece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return joined
