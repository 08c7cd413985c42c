r"""Citations in a text that comes piece by piece: found, resolved, and never cut in two. Pure.

A citation is `[1]`, `[1, 2]`, `[1-3]`, full-width forms of these, and what models write in their
place, such as `[Source 1]`, `[^1]` or `【1†source】`. All of them leave as `[1][2]`. Not citations,
and left as they are: code, links such as `[1](address)`, `x[1]`, `[2024]`, and an escaped `\[1]`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rag.events import Cited
from rag.passage import Passage

#: The longest thing in brackets that is waited for.
LONGEST = 64
#: A range of more is something else.
WIDEST_RANGE = 20

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
#: What may begin a group; anything else is plain text at once.
_BEGINS = re.compile(rf"{_BLANK}|[\d^spdrcqf]", re.IGNORECASE)
_ENDS = re.compile(rf"{_CLOSE}|{_OPEN}|\n")
#: What an index stands behind in code: a small letter alone, or a name with an underscore.
_INDEXED = re.compile(r"(?:^|[^\w'’])(?:[a-z]|\w*_\w*)$")

_BLANKS = re.compile(rf"{_BLANK}+")
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
_MAY_BE_FENCE = re.compile(r" {0,3}(?:`{0,64}|~{0,64})\Z")
#: Up to here a text has nothing that could matter.
_PLAIN = re.compile(rf"[^\{_OPENING}`\\\n \t\u00a0\u3000]+")

Piece = str | Cited


@dataclass(slots=True)
class _Place:
    """Where in a text of Markdown the scanner stands: `fence` and `ticks` are what ends the code
    that it is in, `line` is the line so far."""

    fence: str = ""
    ticks: str = ""
    line: str = ""

    def moved(self, text: str) -> None:
        """Behind `text`."""
        cut = text.rfind("\n")
        self.line = text[cut + 1 :] if cut >= 0 else self.line + text
        if cut >= 0:
            self.ticks = ""


class CitationScanner:
    """Finds citations of `known` in a text that comes in pieces, wherever those are cut.

    What `feed` and `finish` give, joined, does not depend on the cuts. A number that nothing is
    known by is taken out and counted in `dropped`. `at` of a citation is the offset of its bracket
    in the text that was given out.
    """

    def __init__(self, known: Mapping[int, Passage]) -> None:
        self.dropped = 0
        self._known = known
        self._waiting = ""
        self._length = 0
        self._place = _Place()
        self._just_dropped = False

    def feed(self, piece: str) -> list[Piece]:
        """What can be said for sure after `piece`: text, and citations behind theirs."""
        self._waiting += piece
        return _joined(self._advance(final=False))

    def finish(self) -> list[Piece]:
        """The rest, where nothing more comes."""
        return _joined(self._advance(final=True))

    def _advance(self, *, final: bool) -> Iterator[Piece]:
        while self._waiting:
            before = self._waiting, self._just_dropped
            yield from self._step(final)
            if (self._waiting, self._just_dropped) == before:
                return

    def _step(self, final: bool) -> Iterator[Piece]:
        """One piece of the text, or nothing where its meaning hangs on what is still to come."""
        text = self._waiting
        if not self._place.line and _MAY_BE_FENCE.match(text) and not final:
            return
        if self._place.fence or (not self._place.line and _FENCE.match(text)):
            yield from self._fenced(final)
        elif text[0] == "`":
            yield from self._ticks(final)
        elif self._place.ticks:
            yield self._out(re.match(r"[^`\n]+|\n", text)[0])  # type: ignore[index]
        elif text[0] == "\\":
            if len(text) > 1 or final:
                yield self._out(text[:2])
        elif blanks := _BLANKS.match(text):
            yield from self._blanks(blanks.end(), final)
        elif text[0] in _OPENING:
            yield from self._bracket(0, final)
        else:
            plain = _PLAIN.match(text)
            yield self._out(plain[0] if plain else text[0])

    def _fenced(self, final: bool) -> Iterator[Piece]:
        """A line of code, or the part of it that is there; with the fences around."""
        text, place = self._waiting, self._place
        found = _FENCE.match(text) if not place.line else None
        if found and found.end() == len(text) and not final:
            return
        fence = found["fence"] if found else ""
        if not place.fence:
            place.fence = fence
            yield self._out(text[: found.end()] if found else "")
            return
        end = text.find("\n") + 1
        if fence.startswith(place.fence):
            rest = text[found.end() : end or len(text)] if found else ""
            if not end and not final and not rest.strip():
                return
            if not rest.strip():
                place.fence = ""
        yield self._out(text[: end or len(text)])

    def _ticks(self, final: bool) -> Iterator[Piece]:
        """Backticks begin code in a line, and as many of them end it."""
        run = _TICKS.match(self._waiting)[0]  # type: ignore[index]
        if len(run) == len(self._waiting) and not final:
            return
        if not self._place.ticks:
            self._place.ticks = run
        elif self._place.ticks == run:
            self._place.ticks = ""
        yield self._out(run)

    def _blanks(self, end: int, final: bool) -> Iterator[Piece]:
        """Blanks stay, unless they stand before a citation that is taken out."""
        text = self._waiting
        if end == len(text) and not final:
            return
        following = text[end : end + 1]
        if following and following in _OPENING:
            yield from self._bracket(end, final)
        elif self._just_dropped and not following.isalnum():
            self._waiting, self._just_dropped = text[end:], False
        else:
            yield self._out(text[:end])

    def _bracket(self, at: int, final: bool) -> Iterator[Piece]:
        """A citation at `at`, behind blanks, or a bracket that is none."""
        text = self._waiting
        inside = text[at + 1 : at + LONGEST]
        closed = _ENDS.search(inside)
        if not closed and len(inside) < LONGEST - 1 and not final:
            if not inside or _BEGINS.match(inside):
                return
        elif closed and not final and at + 1 + closed.end() == len(text):
            return  # whether this is a link stands behind it
        group = _GROUP.match(text, at)
        numbers = _numbers(group["inside"]) if group else None
        if group is None or numbers is None or self._is_something_else(text, at, group.end()):
            yield self._out(text[: at + 1])
            return
        known = [number for number in numbers if number in self._known]
        self.dropped += len(numbers) - len(known)
        if known:
            yield from self._cited(text[:at], known, group.end())
        else:
            rest = text[group.end() :]
            self._waiting = rest if _BLANKS.match(rest) else text[:at] + rest
            self._just_dropped = True

    def _cited(self, blanks: str, numbers: list[int], end: int) -> Iterator[Piece]:
        rest = self._waiting[end:]
        if blanks:
            self._waiting = blanks
            yield self._out(blanks)
        for number in numbers:
            passage, at = self._known[number], self._length
            self._waiting = f"[{number}]"
            yield self._out(self._waiting)
            yield Cited(passage, at, passage.start, passage.end, passage.text)
        self._waiting = rest

    def _is_something_else(self, text: str, at: int, end: int) -> bool:
        if text[at] != "[":
            return False
        is_link = text[end : end + 1] == "(" or (
            text[end : end + 1] == ":" and not (self._place.line + text[:at]).strip()
        )
        return is_link or (at == 0 and bool(_INDEXED.search(self._place.line)))

    def _out(self, text: str) -> str:
        """`text`, which is what waits first, as given out."""
        self._waiting = self._waiting[len(text) :]
        self._length += len(text)
        self._place.moved(text)
        self._just_dropped = self._just_dropped and not text
        return text


@dataclass(frozen=True, slots=True)
class Scanned:
    """A whole text with its citations, and how many were taken out."""

    text: str
    cited: tuple[Cited, ...]
    dropped: int


def scan(text: str, known: Mapping[int, Passage]) -> Scanned:
    """The citations of a text that is there as a whole."""
    scanner = CitationScanner(known)
    pieces = [*scanner.feed(text), *scanner.finish()]
    return Scanned(
        text="".join(piece for piece in pieces if isinstance(piece, str)),
        cited=tuple(piece for piece in pieces if isinstance(piece, Cited)),
        dropped=scanner.dropped,
    )


def _numbers(inside: str) -> list[int] | None:
    """The numbers of a group, each once; None where it is a range of too many."""
    numbers: list[int] = []
    for part in _PARTS.finditer(inside):
        first, last = int(part["first"]), int(part["last"] or part["first"])
        if last - first >= WIDEST_RANGE:
            return None
        numbers += range(first, last + 1) if last >= first else [first, last]
    return list(dict.fromkeys(numbers))


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    """Texts that follow one another as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece:
            joined.append(piece)
    return joined
