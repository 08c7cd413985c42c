"""Trigram overlap: how many of a question's letter trigrams passages contain. Pure; higher is
better.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

TrigramIds = NDArray[np.int64]
Units = NDArray[np.uint16]
Fractions = NDArray[np.float64]

#: Longer questions are cut: the rest of a pasted page only costs time.
MAX_QUESTION_CHARACTERS = 500

_SPACE = ord(" ")
#: What a UTF-16 unit is read as: letters and digits as they are, all else as a space. Beyond the
#: basic plane, where units come in pairs, nothing counts as a letter.
_UNITS = np.arange(1 << 16, dtype="u2")
_NORMALIZED_UNITS = np.where(
    np.strings.isalnum(_UNITS.astype("<u4").view("<U1")), _UNITS, np.uint16(_SPACE)
)


def trigram_overlap(question: str, passages: Mapping[int, str]) -> dict[int, float]:
    """For each passage, the summed weights of the question's trigrams that it contains.

    A trigram weighs more the fewer of these passages contain it, so no statistics are needed. Words
    are padded with spaces: inflected forms, compounds and misspellings share most trigrams, which
    stems do not see. Frequency and passage length do not count.
    """
    scores = rarity_weighted(trigram_matches(question, list(passages.values())))
    return dict(zip(passages, scores.tolist(), strict=True))


def trigram_matches(question: str, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which trigrams of the question each text contains: shape (texts, trigrams)."""
    # Which of the trigrams, sorted, each text holds: one row a text.
    trigrams = _unique_trigrams(_text_units([question[:MAX_QUESTION_CHARACTERS]])[0])
    units, lengths = _text_units(texts)
    at, places = _find_trigrams(trigrams, units)
    holds = np.zeros((len(texts), len(trigrams)), dtype=bool)
    text_of = np.searchsorted(np.cumsum(lengths), at, side="right")
    holds[text_of, places] = True
    return holds


def rarity_weighted(holds: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Summed weights of the trigrams that each text contains, rare ones among these texts weighing
    most.
    """
    weights = np.log((len(holds) + 1) / (holds.sum(axis=0) + 0.5))
    scores: NDArray[np.float64] = holds @ weights
    return scores


def name_similarity(question: str, names: Sequence[str]) -> tuple[Fractions, Fractions, Fractions]:
    """For each name: the share of the question's trigrams that it contains, the share of its own
    trigrams in the question, and the ratio of the shorter to the longer length. 1 is equality.

    Trigrams reach across one space, so word order counts too.
    """
    asked = _text_units([question[:MAX_QUESTION_CHARACTERS]])[0]
    wanted, size = _unique_trigrams(asked), int(np.count_nonzero(_is_informative(asked)))
    holds = np.zeros((len(names), len(wanted)), dtype=bool)
    if not holds.size:
        nothing = np.zeros(len(names))
        return nothing, nothing, nothing
    units, lengths = _text_units(names)
    ends = np.cumsum(lengths)
    # None begins with the two spaces at the end of a text.
    sizes = np.diff(np.cumsum(_is_informative(units))[ends - 3], prepend=0)
    at, places = _find_trigrams(wanted, units)
    name_of = np.searchsorted(ends, at, side="right")
    holds[name_of, places] = True
    held = np.bincount(name_of, minlength=len(names))
    alike = np.minimum(sizes, size) / np.maximum(sizes, size)
    return np.count_nonzero(holds, axis=1) / len(wanted), held / np.maximum(sizes, 1), alike


def _unique_trigrams(units: Units) -> TrigramIds:
    """The trigrams of these, sorted, each once."""
    return np.unique(_trigrams(units, np.flatnonzero(_is_informative(units))))


def _is_informative(units: Units) -> NDArray[np.bool_]:
    """Which trigrams are informative: those across two spaces (a boundary of texts) are not."""
    space = units == _SPACE
    beside = space[:-1] & space[1:]
    says: NDArray[np.bool_] = ~(beside[:-1] | beside[1:])
    return says


def _find_trigrams(trigrams: TrigramIds, units: Units) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the given (sorted) trigrams in the units, and which each is.

    A coarse hash table removes most positions before the exact lookup.
    """
    may_be = np.zeros(1 << 16, dtype=bool)
    may_be[_hash16(*(((trigrams >> shift) & 0xFFFF).astype("u2") for shift in (32, 16, 0)))] = True
    at = np.flatnonzero(may_be[_hash16(units[:-2], units[1:-1], units[2:])])
    found = _trigrams(units, at)
    places = np.searchsorted(trigrams, found)
    places[places == len(trigrams)] = 0
    same = trigrams[places] == found
    return at[same], places[same]


def _text_units(texts: Sequence[str]) -> tuple[Units, list[int]]:
    """Units of all texts one after another, lower case, each padded with two spaces; and
    lengths.
    """
    folded = [f"  {text.casefold()}  " for text in texts]
    units = np.frombuffer("".join(folded).encode("utf-16-le", "replace"), dtype="<u2")
    lengths = [len(each) for each in folded]
    if len(units) != sum(lengths):  # some letters take two units
        lengths = [len(each.encode("utf-16-le", "replace")) // 2 for each in folded]
    return _NORMALIZED_UNITS[units], lengths


def _trigrams(units: Units, at: NDArray[np.intp]) -> TrigramIds:
    """Three units in one number, for each of these places."""
    first, second, third = (units[at + step].astype(np.int64) for step in range(3))
    return (first << 32) | (second << 16) | third


def _hash16(first: Units, second: Units, third: Units) -> Units:
    """Sixteen bits of each trigram; products wrap around."""
    return first * np.uint16(0x9E37) + second * np.uint16(0x79B1) + third
