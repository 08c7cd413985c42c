"""Which sentences of an answer nothing in its sources speaks for. Pure.

Numbers and names that stand in no source are the strongest sign, then words. Measured in
docs/decisions/0032.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from common.spaceless import is_spaceless
from graph.extraction.functionwords import FUNCTION_WORDS
from rag.answering.quotable import parts
from rag.answering.wording import is_refusal
from rag.events import Unsupported
from rag.passage import Passage

#: Tells how near sentences are to the nearest source: 0 has nothing to do with any, 1 is a usual
#: answer to a question. Nothing where no model can say so.
Near = Callable[[Sequence[str]], Sequence[float] | None]

#: Of a sentence's telling words one source must hold so many; with less than the lower share not
#: even a near source supports it.
LEAST_SHARE = 0.5
LEAST_SHARE_WHERE_NEAR = 0.25
NEAR = 1.0
#: A sentence with fewer telling words is not judged by them.
FEWEST_WORDS = 3

_CITATION = re.compile(r"\s*\[\d+\]")
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?")
_GROUPING = re.compile(r"[.,\u00a0\u202f' ](?=\d{3}(?:\D|$))")
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
#: In the language of its sources a sentence shares so many of its small words with them; fewer than
#: these, of a sentence and of its sources, tell nothing.
LEAST_SMALL_WORDS = 0.5
FEWEST_SMALL_WORDS = 4
FEWEST_KNOWN = 10
#: There all nouns have capitals, and not only names.
_CAPITAL_NOUNS = frozenset({"de", "lb"})

_Words = frozenset[str]


@dataclass(frozen=True, slots=True)
class _Source:
    """What is known of a text: its words, each cut to its stem, its small words, its numbers."""

    stems: _Words
    small: _Words
    numbers: _Words


def unsupported(
    answer: str, passages: Sequence[Passage], *, near: Near | None = None
) -> list[Unsupported]:
    """Those sentences, in their order, by offsets in `answer`. `passages` is all that it could rest
    on. `near` is asked once, about sentences whose words alone do not decide."""
    is_telling = not any(passage.language[:2].lower() in _CAPITAL_NOUNS for passage in passages)
    sources = [_source(f"{passage.heading}\n{passage.text}") for passage in passages]
    judged = [
        (start, end, _judged(answer[start:end], sources, capitals=is_telling))
        for start, end in _statements(answer)
    ]
    unsure = [(start, end) for start, end, verdict in judged if verdict is None]
    asked = [_CITATION.sub("", answer[start:end]) for start, end in unsure]
    told = near(asked) if near and asked else None
    nearness = dict(zip(unsure, told, strict=True)) if told is not None else {}
    return [
        Unsupported(start, end, answer[start:end])
        for start, end, verdict in judged
        if verdict is False or (verdict is None and nearness.get((start, end), 0.0) < NEAR)
    ]


def _statements(answer: str) -> Iterator[tuple[int, int]]:
    """Sentences that claim something."""
    for part in parts(answer):
        said = answer[part.start : part.end]
        if part.kind in ("code", "heading") or is_refusal(said):
            continue
        if _CITATION.sub("", said).rstrip().endswith(("?", ":", "？", "：")):
            continue
        yield part.start, part.end


def _judged(sentence: str, sources: Sequence[_Source], *, capitals: bool) -> bool | None:
    """Whether a source speaks for it; None where that takes a model. `capitals` tell names."""
    said = _MARKUP.sub(" ", _CITATION.sub("", sentence))
    if _numbers(said) - _Words().union(*(source.numbers for source in sources)):
        return False
    if _is_translated(said, sources):
        return True  # words say nothing then
    names = {_stem(name) for name in _NAME.findall(said) if capitals and _tells(name)}
    if names - _Words().union(*(source.stems for source in sources)):
        return False
    words = _stems(said)
    if len(words) < FEWEST_WORDS:
        return True
    share = max((len(words & source.stems) for source in sources), default=0) / len(words)
    if share >= LEAST_SHARE:
        return True
    return None if share >= LEAST_SHARE_WHERE_NEAR else False


def _is_translated(said: str, sources: Sequence[_Source]) -> bool:
    """Whether it seems to be in another language, or another script, than all sources."""
    small = _small(said)
    known = _Words().union(*(source.small for source in sources))
    if len(small) >= FEWEST_SMALL_WORDS and len(known) >= FEWEST_KNOWN:
        return len(small & known) < LEAST_SMALL_WORDS * len(small)
    stems = _stems(said)
    scripts = {_script(word) for source in sources for word in source.stems}
    return bool(stems and scripts) and not any(_script(word) in scripts for word in stems)


def _source(text: str) -> _Source:
    words = {word.casefold() for word in _WORD.findall(text)}
    spelt = {_NUMBER_WORDS[word] for word in words & _NUMBER_WORDS.keys()}
    return _Source(_stems(text, telling=False), _small(text), _numbers(text) | spelt)


def _numbers(text: str) -> frozenset[str]:
    """Figures, without what groups their digits."""
    return frozenset(
        _GROUPING.sub("", number[0]).replace(",", ".") for number in _NUMBER.finditer(text)
    )


def _small(text: str) -> _Words:
    return frozenset({word.casefold() for word in _WORD.findall(text)} & FUNCTION_WORDS)


def _stems(text: str, *, telling: bool = True) -> _Words:
    """Of its telling words, or of all and their parts; where no space parts words, each two
    letters that stand together."""
    stems: set[str] = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        if is_spaceless(word):
            stems |= {word[at : at + 2] for at in range(max(1, len(word) - 1))}
        elif not telling:
            stems |= {_stem(part) for part in (word, *re.split(r"['’-]", word))}
        elif _tells(word):
            stems.add(_stem(word))
    return frozenset(stems)


def _script(word: str) -> str:
    return unicodedata.name(word[:1], "").split(" ")[0]


def _tells(word: str) -> bool:
    return len(word) > 2 and word.casefold() not in FUNCTION_WORDS


def _stem(word: str) -> str:
    """The word without what its inflection changes, roughly, in any language with letters."""
    plain = unicodedata.normalize("NFKD", word.casefold()).split("'")[0].split("’")[0]
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return plain if len(plain) < 5 else plain[: max(4, len(plain) - 3)][:7]
