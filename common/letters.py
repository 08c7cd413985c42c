"""How much of a question's letters passages hold. Pure; higher is better."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Units = NDArray[np.uint16]
Shares = NDArray[np.float64]

#: Nobody asks more than this; the rest of a pasted page only costs time.
MOST = 500

_SPACE = ord(" ")
#: What a UTF-16 unit is read as: letters and digits as they are, all else as a space. Beyond the
#: basic plane, where units come in pairs, nothing counts as a letter.
_UNITS = np.arange(1 << 16, dtype="u2")
_READ_AS = np.where(np.strings.isalnum(_UNITS.astype("<u4").view("<U1")), _UNITS, np.uint16(_SPACE))


def letters(question: str, passages: Mapping[int, str]) -> dict[int, float]:
    """For each passage the summed weight of those of the question's trigrams that it holds.

    A trigram weighs more the fewer of these passages hold it, so no statistics are needed. Words
    begin and end with a space: inflected forms, compounds and misspelt names share most of theirs,
    which stems do not see. How often a passage holds one does not count, nor does its length.
    """
    scores = weighed(held_trigrams(question, list(passages.values())))
    return dict(zip(passages, scores.tolist(), strict=True))


def held_trigrams(question: str, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which trigrams of the question each text holds, of shape (texts, trigrams)."""
    return _holds(_wanted(_words([question[:MOST]])[0]), texts)


def weighed(holds: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The summed weights of what each text holds, rare among these texts weighing most."""
    weights = np.log((len(holds) + 1) / (holds.sum(axis=0) + 0.5))
    scores: NDArray[np.float64] = holds @ weights
    return scores


def shared(question: str, names: Sequence[str]) -> tuple[Shares, Shares, Shares]:
    """Of each name: the share of the question's trigrams that it holds, the share of its own that
    the question holds, and how long the shorter of the two is beside the longer. 1 is the same.

    Trigrams reach across one space, so the order of words counts too.
    """
    asked = _words([question[:MOST]])[0]
    wanted, size = _wanted(asked), int(np.count_nonzero(_says(asked)))
    holds = np.zeros((len(names), len(wanted)), dtype=bool)
    if not holds.size:
        nothing = np.zeros(len(names))
        return nothing, nothing, nothing
    units, lengths = _words(names)
    ends = np.cumsum(lengths)
    # None begins with the two spaces at the end of a text.
    sizes = np.diff(np.cumsum(_says(units))[ends - 3], prepend=0)
    at, places = _places(wanted, units)
    name_of = np.searchsorted(ends, at, side="right")
    holds[name_of, places] = True
    held = np.bincount(name_of, minlength=len(names))
    alike = np.minimum(sizes, size) / np.maximum(sizes, size)
    return np.count_nonzero(holds, axis=1) / len(wanted), held / np.maximum(sizes, 1), alike


def _wanted(units: Units) -> Numbers:
    """The trigrams of these, sorted, each once."""
    return np.unique(_trigrams(units, np.flatnonzero(_says(units))))


def _says(units: Units) -> NDArray[np.bool_]:
    """Which trigrams say something. Two spaces in a row are where something else than words is, or
    one text ends: that says nothing."""
    space = units == _SPACE
    beside = space[:-1] & space[1:]
    says: NDArray[np.bool_] = ~(beside[:-1] | beside[1:])
    return says


def _holds(wanted: Numbers, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which of the trigrams, sorted, each text holds: one row a text."""
    units, lengths = _words(texts)
    at, places = _places(wanted, units)
    holds = np.zeros((len(texts), len(wanted)), dtype=bool)
    text_of = np.searchsorted(np.cumsum(lengths), at, side="right")
    holds[text_of, places] = True
    return holds


def _places(wanted: Numbers, units: Units) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where wanted trigrams, sorted, begin among the units, and which each of them is.

    Texts have thousands of trigrams and few are wanted, so a coarse table sorts out most of them
    before any is looked up.
    """
    may_be = np.zeros(1 << 16, dtype=bool)
    may_be[_coarse(*(((wanted >> shift) & 0xFFFF).astype("u2") for shift in (32, 16, 0)))] = True
    at = np.flatnonzero(may_be[_coarse(units[:-2], units[1:-1], units[2:])])
    found = _trigrams(units, at)
    places = np.searchsorted(wanted, found)
    places[places == len(wanted)] = 0
    same = wanted[places] == found
    return at[same], places[same]


def _words(texts: Sequence[str]) -> tuple[Units, list[int]]:
    """The units of all texts after each other, lower case, each text in two spaces; lengths."""
    folded = [f"  {text.casefold()}  " for text in texts]
    units = np.frombuffer("".join(folded).encode("utf-16-le", "replace"), dtype="<u2")
    lengths = [len(each) for each in folded]
    if len(units) != sum(lengths):  # some letters take two units
        lengths = [len(each.encode("utf-16-le", "replace")) // 2 for each in folded]
    return _READ_AS[units], lengths


def _trigrams(units: Units, at: NDArray[np.intp]) -> Numbers:
    """Three units in one number, for each of these places."""
    first, second, third = (units[at + step].astype(np.int64) for step in range(3))
    return (first << 32) | (second << 16) | third


def _coarse(first: Units, second: Units, third: Units) -> Units:
    """Sixteen bits of each trigram; products wrap around."""
    return first * np.uint16(0x9E37) + second * np.uint16(0x79B1) + third
