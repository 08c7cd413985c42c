"""The one form under which a name is known, however it is written. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph.extraction.functionwords import FUNCTION_WORDS

#: Longer names are not looked up in questions.
LONGEST = 8
#: Words of a pasted question beyond these are not looked at.
MOST_WORDS = 100
#: A form is a key in an index.
MOST_CHARACTERS = 200

_ARTICLES = frozenset(("the", "a", "an"))
_APOSTROPHES = str.maketrans("’‘ʼ＇`´", "'" * 6)
_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_INSIDE_WORD = re.compile(r"(?<=\w)'(?=\w)|\u00ad")
_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
#: A letter or digit of any script; `+` and `#` behind one are part of it (C++, C#).
_WORD = re.compile(r"[^\W_]+[+#]{0,2}")
#: Vowel signs and the like of scripts that cannot do without; `\w` leaves them out.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0980-\u0983\u09bc-\u09d7\u0a01-\u0a51\u0a81-\u0acd\u0b01-\u0b57\u0b82-\u0bd7\u0c00-\u0c56"
    "\u0c81-\u0cd6\u0d00-\u0d57\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u109d\u17b4-\u17d3\u200c\u200d"
)
_WORD_WITH_MARKS = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*[+#]{{0,2}}")


@dataclass(frozen=True, slots=True)
class Asked:
    """A run of a question's words that may be a name: words `start` to `end` (exclusive).

    `is_capital` where all its telling words are written with a capital, and it is more than the
    first word of the question.
    """

    form: str
    start: int
    end: int
    is_capital: bool


def form(text: str) -> str:
    """`The Beyoncé's` → `beyonce`; empty where no letter and no digit is left.

    Case, width, punctuation, possessive endings, a leading English article and accents of Latin
    letters make no difference; initials join (`J. R. R.` is `JRR`). Marks of other scripts are
    letters of theirs, and stay.
    """
    return _form([word for word, _ in _words(text)])


def question_forms(text: str, *, longest: int = LONGEST) -> list[Asked]:
    """All runs of up to `longest` words of a question that may be names, by where they begin.

    A run of function words is one only if it is written as a name (`The Who`), and so is a single
    word behind the first, unless the question is written without capitals.
    """
    words = list(_words(text))[:MOST_WORDS]
    has_capitals = any(capital for _, capital in words[1:])
    return [
        Asked(_form([word for word, _ in words[start:end]]), start, end, is_capital)
        for start in range(len(words))
        for end in range(start + 1, min(start + longest, len(words)) + 1)
        for is_capital in [_is_capital(words[start:end], is_first=start == 0)]
        if is_capital or _may_be_name(words[start:end], start, has_capitals=has_capitals)
    ]


def _is_capital(run: Sequence[tuple[str, bool]], *, is_first: bool) -> bool:
    """Whether its telling words, or all where there are none, are written with capitals, and not
    because the question begins with it."""
    telling = [capital for word, capital in run if word not in FUNCTION_WORDS]
    return all(telling or [capital for _, capital in run]) and not (
        is_first and (len(run) == 1 or not telling)
    )


def _may_be_name(run: Sequence[tuple[str, bool]], start: int, *, has_capitals: bool) -> bool:
    """Whether to look it up though it is not written with capitals."""
    is_telling = any(word not in FUNCTION_WORDS for word, _ in run)
    return is_telling and (len(run) > 1 or start == 0 or not has_capitals)


def _form(words: Sequence[str]) -> str:
    words = _joined_initials(words)
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)[:MOST_CHARACTERS].rstrip()


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Each word in its normal form, and whether it is written with a capital."""
    text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES).replace("&", " and ")
    text = _INSIDE_WORD.sub("", _POSSESSIVE.sub("", text))
    pattern = _WORD
    if not text.isascii():
        text = _without_accents(text)
        pattern = _WORD_WITH_MARKS
    for found in pattern.finditer(text):
        yield found[0].casefold(), found[0][0] != found[0][0].lower()


def _without_accents(text: str) -> str:
    """`Beyoncé` → `Beyonce`."""
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def _joined_initials(words: Sequence[str]) -> list[str]:
    """`j r r tolkien` → `jrr tolkien`; a single letter stays one."""
    joined: list[str] = []
    is_open = False
    for word in words:
        is_initial = len(word) == 1 and "a" <= word <= "z"
        if is_initial and is_open:
            joined[-1] += word
        else:
            joined.append(word)
        is_open = is_initial
    return joined
