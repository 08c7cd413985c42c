"""A message as sentences and clauses, without what the user only quotes."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Longer messages are pasted: a letter, a log, a story in the first person.
LONGEST_MESSAGE = 4_000
#: Nor does anybody introduce himself in a sentence longer than this.
LONGEST_SENTENCE = 400

#: Stand in the text for what is quoted. The user's own characters of that kind are removed.
_FIRST_QUOTE, _LAST_QUOTE = 0xE000, 0xE0FF
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_QUOTED = re.compile(f"[{chr(_FIRST_QUOTE)}-{chr(_LAST_QUOTE)}]")

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2019\u02bc\u00b4`\u2018", "'"))
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_CITED_LINE = re.compile(r"^\s*[>|].*$", re.MULTILINE)
_BRACKETED = re.compile(r"\[[^\[\]\n]*\]|[\[\]]")
_QUOTATIONS = re.compile(
    r"[“„«»][^“”„«»\n]{0,300}(?:[”“»«]|$)"
    r"|\"[^\"\n]{0,300}(?:\"|$)"
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){1,300}'(?!\w)",
    re.MULTILINE,
)
_ENDS_IN_COLON = re.compile(r":[ \t]*(?:\n|$)")
_TERMINATOR = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]+(?=\s|$)|[\n;]+")
_ABBREVIATED = re.compile(
    r"(?:\b(?:st|mt|ft|dr|mr|mrs|ms|prof|jr|sr|vs|nr|geb|bzw|ca|d\.c|u\.s|u\.k|e\.g|i\.e|z\.\s?b)"
    r"|\b(?!i\b)[^\W\d_])$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\b\d{1,2}$")
_MONTH = re.compile(r"\s(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|o[kc]t|nov|de[cz])", re.I)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` has single spaces and no end mark; a quotation is one private character in it."""

    text: str
    is_question: bool
    quotations: Sequence[str] = ()

    def restored(self, value: str) -> str:
        """`value`, a part of the text, with what was quoted there."""
        return _QUOTED.sub(lambda quote: self.quotations[ord(quote[0]) - _FIRST_QUOTE], value)


def sentences(message: str) -> list[Sentence]:
    """What the user says in `message`, in order: no code, no cited lines, no quotations, nothing
    that follows on a line which ends in a colon, and nothing at all of a pasted text."""
    if len(message) > LONGEST_MESSAGE:
        return []
    return list(_sentences(_PRIVATE.sub(" ", unicodedata.normalize("NFC", message))))


def _sentences(text: str) -> Iterator[Sentence]:
    for pattern in (_CODE, _CITED_LINE, _BRACKETED):
        text = pattern.sub(" ", text)
    text = text.translate(_APOSTROPHES)
    text, quotations = _without_quotations(text)
    text = _ENDS_IN_COLON.split(text, maxsplit=1)[0]
    start = 0
    for end in _TERMINATOR.finditer(text):
        if _is_inside(text, start, end):
            continue
        yield from _sentence(text[start : end.start()], "?" in end[0] or "？" in end[0], quotations)
        start = end.end()
    yield from _sentence(text[start:], False, quotations)


def _without_quotations(text: str) -> tuple[str, list[str]]:
    quotations: list[str] = []

    def put_away(match: re.Match[str]) -> str:
        if len(quotations) > _LAST_QUOTE - _FIRST_QUOTE:
            return " "
        quotations.append(match[0].strip("“”„«»\"' "))
        return chr(_FIRST_QUOTE + len(quotations) - 1)

    return _QUOTATIONS.sub(put_away, text), quotations


def _is_inside(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether the point belongs to “St. Louis” or to “3. Mai” and ends no sentence."""
    if end[0] != ".":
        return False
    before = text[max(start, end.start() - 12) : end.start()]
    if _ABBREVIATED.search(before):
        return True
    return bool(_ORDINAL.search(before) and _MONTH.match(text, end.end()))


def _sentence(text: str, is_question: bool, quotations: Sequence[str]) -> Iterator[Sentence]:
    text = _SPACE.sub(" ", text).strip()
    if 0 < len(text) <= LONGEST_SENTENCE:
        yield Sentence(text, is_question, quotations)
