"""Parts of compounds: `Krankenversicherungskarte` is found by `Versicherung` and by `Karte`. Begin
with `Splitter.parts`.

A word is split where all its parts are known: words of the collection, or of the word lists that
pyspellchecker brings for German and Dutch. Others of these languages have no list there.
"""

import gzip
import json
import re
from array import array
from bisect import bisect_left
from collections.abc import Collection
from functools import lru_cache
from importlib.resources import files

#: Text search configuration → pyspellchecker's word lists for it.
COMPOUNDING = {
    "german": ("de",),
    "dutch": ("nl",),
    "swedish": ("",),
    "danish": ("",),
    "norwegian": ("",),
}
#: The language of a shorter text may be another than was detected or assumed.
SURE_LANGUAGE_CHARACTERS = 200
_LINKS = ("", "s", "n", "en", "es", "er", "e", "ens")
MIN_COMPOUND = 9
MIN_PART = 4
#: A text without such a word has no compounds.
MAY_COMPOUND = re.compile(rf"[^\W\d_]{{{MIN_COMPOUND}}}")
#: A part that is known by its stem only, of which the end of the word is not.
MIN_STEM = 5
MAX_ENDING = 2
#: The count that pyspellchecker gives to words of its dictionary that are rare in its texts.
RARE = 50
#: A word that is so frequent has no rare parts: `Millionen` is no compound of `Mill` and `Ionen`.
FREQUENT = 100
#: Particles, which make verbs and their nouns and say nothing that one would search for.
_PARTICLES = """
    unter über gegen zwischen wieder nach voraus hinter durch ohne wider weiter ander andere
    zusammen entgegen heraus hinaus herein hinein hervor zurück neben nieder vorher überein
    onder over tegen tussen weer achter door zonder samen terug buiten binnen voor
    under över mellan efter utan genom mellem uden gennem gjennom
"""
_NO_PARTS = frozenset(_PARTICLES.split())


class _WordList:
    """Words with their frequencies in texts. Rare ones are kept as hashes only: 3 MB for 340,000
    words, where a dictionary takes fifteen times as much."""

    def __init__(self, words: dict[str, int]) -> None:
        self._counts = {word: count for word, count in words.items() if count > RARE}
        self._hashes = array("q", sorted(map(hash, words)))

    def __contains__(self, word: str) -> bool:
        code = hash(word)
        at = bisect_left(self._hashes, code)
        return at < len(self._hashes) and self._hashes[at] == code

    def count(self, word: str) -> int:
        return self._counts.get(word, 0)


@lru_cache(maxsize=3)
def _word_list(code: str) -> _WordList:
    """pyspellchecker's list; an empty one for the code ''."""
    if not code:
        return _WordList({})
    packed = files("spellchecker").joinpath(f"resources/{code}.json.gz").read_bytes()
    return _WordList(json.loads(gzip.decompress(packed)))


class Splitter:
    """Of texts with this text search configuration, in a collection that has the `stems`."""

    def __init__(self, language: str, stems: Collection[str]) -> None:
        self._language = language
        self._stems = stems
        self._splitters: dict[str, _Splitter] = {}

    def parts(self, text: str) -> set[str]:
        """The parts, in lower case and not stemmed, of all compounds of a text, and parts of these;
        of those with more than two also what is left without the first, and without the last."""
        codes = COMPOUNDING.get(self._language, ())
        if len(text) < SURE_LANGUAGE_CHARACTERS and MAY_COMPOUND.search(text):
            codes = (*codes, "de", "nl")
        found: set[str] = set()
        for code in dict.fromkeys(codes):
            if code not in self._splitters:
                self._splitters[code] = _Splitter(code, self._stems)
            found |= self._splitters[code].parts(text)
        return found


class _Splitter:
    def __init__(self, code: str, stems: Collection[str]) -> None:
        self._stems = stems
        self._listed = _word_list(code)
        first = "[A-ZÄÖÜ]" if code == "de" else r"[^\W\d_]"  # compounds of German are nouns
        self._candidate = re.compile(rf"\b{first}[^\W\d_]{{{MIN_COMPOUND - 1},}}\b")
        self._split = lru_cache(maxsize=50_000)(self._split_word)

    def parts(self, text: str) -> set[str]:
        found: set[str] = set()
        for word in set(self._candidate.findall(text)):
            found |= self._split(word.lower())
        return found

    def _split_word(self, word: str) -> frozenset[str]:
        starts = self._best_split(word, 0) if len(word) >= 2 * MIN_PART else []
        if len(starts) < 2:
            return frozenset()
        ends = [*starts[1:], len(word)]
        parts = {self._unlinked(word[at:end]) for at, end in zip(starts, ends, strict=True)}
        if self._listed.count(word) >= FREQUENT and not all(map(self._listed.count, parts)):
            return frozenset()
        if len(starts) > 2:
            parts |= {word[starts[1] :], self._unlinked(word[: starts[-1]])}
        return frozenset(parts).union(*(self._split(part) for part in parts))

    def _best_split(self, word: str, start: int) -> list[int]:
        """Where the parts of `word[start:]` begin, as few as possible; empty if it has none."""
        rest = word[start:]
        best = [start] if start and self._is_known(rest) else []
        for end in range(start + MIN_PART, len(word) - MIN_PART + 1):
            if best and len(best) <= 2:
                break
            part = word[start:end]
            if self._is_known(self._unlinked(part)) or (not start and self._is_stem(part)):
                others = self._best_split(word, end)
                if others and (not best or len(others) + 1 < len(best)):
                    best = [start, *others]
        return best

    def _unlinked(self, part: str) -> str:
        """A part without the letters that join it to the next one; itself if it is a word."""
        bare = (part.removesuffix(link) for link in _LINKS)
        return next((each for each in bare if self._is_known(each)), part)

    def _is_stem(self, part: str) -> bool:
        """Whether it is a verb or noun without its end, as in `Heizkosten` and `Mietvertrag`."""
        return part not in _NO_PARTS and any(part + end in self._listed for end in ("e", "en"))

    def _is_known(self, part: str) -> bool:
        if len(part) < MIN_PART or part in _NO_PARTS:
            return False
        stems = (part[:-cut] for cut in range(1, min(MAX_ENDING, len(part) - MIN_STEM) + 1))
        return part in self._listed or part in self._stems or any(s in self._stems for s in stems)
