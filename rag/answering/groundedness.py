"""Find which source supports each sentence of an answer. Begin with `check_claims`.

Numbers and names that occur in no source weigh most, then words. Measured in docs/decisions/0032.
Without Django.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from common.text import has_unspaced_script
from graph.extraction.normalized_names import FUNCTION_WORDS
from rag.answering.phrases import is_refusal
from rag.events import Passage
from reading.segments import split_segments

#: Share of a sentence's content words that one source must contain.
MIN_OVERLAP = 0.5
#: A sentence with fewer content words is not judged by them.
MIN_WORDS = 3

_CITATION = re.compile(r"\s*\[\d+\]")
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?")
_DIGIT_GROUPING = re.compile(r"[.,\u00a0\u202f' ](?=\d{3}(?:\D|$))")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_NAME = re.compile(r"(?<![.!?:;…\n\"“„«*_>-] )(?<!^)(?<![\w'’-])[A-ZÀ-ÞА-Я][\w'’]+", re.MULTILINE)
_MARKUP = re.compile(r"[*_`#>|]+")
_NUMBER_WORDS = {
    word: str(value)
    for value, words in enumerate(
        (
            "zero null cero zéro",
            "one eins uno un",
            "two zwei dos deux",
            "three drei tres trois",
            "four vier cuatro quatre",
            "five fünf cinco cinq",
            "six sechs seis",
            "seven sieben siete sept",
            "eight acht ocho huit",
            "nine neun nueve neuf",
            "ten zehn diez dix",
            "eleven elf once onze",
            "twelve zwölf doce douze",
        )
    )
    for word in words.split()
}
#: A sentence in the language of its sources shares this many of its function words with them; with
#: fewer function words than these, in sentence or sources, the language stays unknown.
MIN_FUNCTION_WORD_OVERLAP = 0.5
MIN_FUNCTION_WORDS = 4
MIN_SOURCE_FUNCTION_WORDS = 10
#: Languages that capitalize all nouns, not only names.
_CAPITALIZED_NOUN_LANGUAGES = frozenset({"de", "lb"})

_Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class _Source:
    """A passage with its stems, function words and numbers."""

    passage: Passage
    stems: _Words
    function_words: _Words
    numbers: _Words


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, `text`, with its offsets. `source` is the passage that holds all its
    numbers and names and most of its words; None where none does, or they cannot be compared, as
    in another language."""

    start: int
    end: int
    text: str
    is_supported: bool
    source: Passage | None = None

    def data(self) -> dict[str, Any]:
        return {"start": self.start, "end": self.end, "text": self.text}


def check_claims(answer: str, passages: Sequence[Passage]) -> list[Claim]:
    """The sentences of `answer` that state something, in order. `passages` are all possible
    sources, the best first."""
    capitals_are_names = not any(
        passage.language[:2].lower() in _CAPITALIZED_NOUN_LANGUAGES for passage in passages
    )
    sources = []
    for passage in passages:
        text = f"{passage.heading}\n{passage.text}"
        words = {word.casefold() for word in _WORD.findall(text)}
        spelt = {_NUMBER_WORDS[word] for word in words & _NUMBER_WORDS.keys()}
        stems = _stems(text, content_only=False)
        sources.append(_Source(passage, stems, _function_words(text), numbers(text) | spelt))
    found = []
    for part in split_segments(answer):
        text = answer[part.start : part.end]
        claims = not _CITATION.sub("", text).rstrip().endswith(("?", ":", "？", "："))
        if part.kind in ("code", "heading") or not claims or is_refusal(text):
            continue
        supported, source = _support(text, sources, capitals=capitals_are_names)
        found.append(Claim(part.start, part.end, text, supported, source))
    return found


def unsupported(answer: str, passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """The claims of `answer` without support, as `Claim.data` gives them."""
    return [claim.data() for claim in check_claims(answer, passages) if not claim.is_supported]


def content_stems(text: str, *, content_only: bool = True) -> frozenset[str]:
    """The stems of the content words of a text, or of all its words and their parts."""
    return _stems(text, content_only=content_only)


def word_stem(word: str) -> str:
    """The word roughly without inflection, in any alphabetic language."""
    return _stem(word)


def number_value(word: str) -> str | None:
    """A number or number word without digit grouping; None for any other word."""
    if word[0].isdigit():
        return _DIGIT_GROUPING.sub("", word).replace(",", ".")
    return _NUMBER_WORDS.get(word.casefold())


def names_and_numbers(text: str, *, language: str) -> frozenset[str]:
    """The numbers in a text, and the stems of its names: capitalized words that begin no sentence,
    unless `language` (an ISO code) capitalizes all nouns."""
    if language[:2].lower() in _CAPITALIZED_NOUN_LANGUAGES:
        return numbers(text)
    names = {_stem(name) for name in _NAME.findall(text) if _is_content_word(name)}
    return numbers(text) | names


def _support(
    sentence: str, sources: Sequence[_Source], *, capitals: bool
) -> tuple[bool, Passage | None]:
    """Whether the sources support the sentence, and the one that does so best. `capitals` says
    whether capitalized words are names."""
    text = _MARKUP.sub(" ", _CITATION.sub("", sentence))
    said = numbers(text)
    if said - _Words().union(*(source.numbers for source in sources)):
        return False, None
    if _is_other_language(text, sources):
        return True, None  # its words cannot be compared
    names = {_stem(name) for name in _NAME.findall(text) if capitals and _is_content_word(name)}
    if names - _Words().union(*(source.stems for source in sources)):
        return False, None
    words = _stems(text)
    shares = [len(words & source.stems) / max(1, len(words)) for source in sources]
    least = MIN_OVERLAP if len(words) >= MIN_WORDS else 1.0
    fitting = [
        (share, source.passage)
        for share, source in zip(shares, sources, strict=True)
        if share >= least and said <= source.numbers and names <= source.stems and (words or said)
    ]
    best = max(fitting, key=lambda each: each[0], default=(0.0, None))[1]
    return len(words) < MIN_WORDS or max(shares, default=0) >= MIN_OVERLAP, best


def _is_other_language(sentence: str, sources: Sequence[_Source]) -> bool:
    """Whether the sentence seems to be in another language or script than all sources."""
    small = _function_words(sentence)
    known = _Words().union(*(source.function_words for source in sources))
    if len(small) >= MIN_FUNCTION_WORDS and len(known) >= MIN_SOURCE_FUNCTION_WORDS:
        return len(small & known) < MIN_FUNCTION_WORD_OVERLAP * len(small)
    stems = _stems(sentence)
    scripts = {_script(word) for source in sources for word in source.stems}
    return bool(stems and scripts) and not any(_script(word) in scripts for word in stems)


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text, without digit grouping."""
    return frozenset(
        _DIGIT_GROUPING.sub("", number[0]).replace(",", ".") for number in _NUMBER.finditer(text)
    )


def _function_words(text: str) -> _Words:
    return frozenset({word.casefold() for word in _WORD.findall(text)} & FUNCTION_WORDS)


def _stems(text: str, *, content_only: bool = True) -> _Words:
    """Stems of its content words, or of all words and their parts; for scripts without spaces,
    character bigrams."""
    stems: set[str] = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        if has_unspaced_script(word):
            stems |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        elif not content_only:
            stems |= {_stem(part) for part in (word, *re.split(r"['’-]", word))}
        elif _is_content_word(word):
            stems.add(_stem(word))
    return frozenset(stems)


def _script(word: str) -> str:
    return unicodedata.name(word[:1], "").split(" ")[0]


def _is_content_word(word: str) -> bool:
    return len(word) > 2 and word.casefold() not in FUNCTION_WORDS


def _stem(word: str) -> str:
    """The word roughly without inflection, in any alphabetic language."""
    plain = unicodedata.normalize("NFKD", word.casefold()).split("'")[0].split("’")[0]
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return plain if len(plain) < 5 else plain[: max(4, len(plain) - 3)][:7]
