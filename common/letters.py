"""How much of a question's letters passages hold. Pure; higher is better."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

#: Nobody asks more than this; the rest of a pasted page only costs time.
MOST = 500

_SPACE = ord(" ")
#: What a UTF-16 unit is read as: letters and digits as they are, all else as a space. Beyond the
#: basic plane, where units come in pairs, nothing counts as a letter.
_READ_AS = np.array([unit if chr(unit).isalnum() else _SPACE for unit in range(1 << 16)])


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


def _wanted(units: Numbers) -> Numbers:
    """The trigrams of these, sorted, each once. Two spaces in a row are where something else than
    words is, or one text ends: that says nothing."""
    space = units == _SPACE
    beside = space[:-1] & space[1:]
    return np.unique(_trigrams(units)[~(beside[:-1] | beside[1:])])


def _holds(wanted: Numbers, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which of the trigrams, sorted, each text holds: one row a text.

    Texts have thousands of trigrams and few are wanted, so a coarse table sorts out most of them
    before any is looked up.
    """
    units, lengths = _words(texts)
    found = _trigrams(units)
    may_be = np.zeros(1 << 16, dtype=bool)
    may_be[_coarse(wanted)] = True
    at = np.flatnonzero(may_be[_coarse(found)])
    places = np.searchsorted(wanted, found[at])
    places[places == len(wanted)] = 0
    same = wanted[places] == found[at]
    holds = np.zeros((len(texts), len(wanted)), dtype=bool)
    text_of = np.searchsorted(np.cumsum(lengths), at[same], side="right")
    holds[text_of, places[same]] = True
    return holds


def _words(texts: Sequence[str]) -> tuple[Numbers, list[int]]:
    """The units of all texts after each other, lower case, each text in two spaces; lengths."""
    encoded = [f"  {text.casefold()}  ".encode("utf-16-le", "replace") for text in texts]
    units = np.frombuffer(b"".join(encoded), dtype="<u2")
    return _READ_AS[units], [len(each) // 2 for each in encoded]


def _trigrams(units: Numbers) -> Numbers:
    """Three units in one number, for each place but the last two."""
    first, second, third = units[:-2], units[1:-1], units[2:]
    return (first << 32) | (second << 16) | third


def _coarse(trigrams: Numbers) -> Numbers:
    return (trigrams * 0x9E3779B1 >> 20) & 0xFFFF
