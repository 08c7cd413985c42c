"""How well what passages are called (title, headings, file name) answers to a question. Pure.

Who types a title, a heading or a file name wants that very document, however many others say the
same words more often.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.letters import MOST, shared

#: What being called as the question says adds, beside arms whose weights sum to 1: as much as both
#: together, so it goes before nearly all that a passage gains by saying the words oftener.
EXACT = 1.0
#: How steeply that falls for a name that is only like the question. An inflected word keeps most.
STEEPNESS = 6
#: What the name of a title, a heading and a file adds that is a part of the question, the more so
#: the larger a part. Files are often called by a word that says little.
PART = np.array([0.3, 0.3, 0.0])
#: A document that is called so goes before a part of another one that is.
WORTH = np.array([1.0, 0.8, 0.9])
TITLE, HEADING, FILE = range(3)

#: Between the title and the headings of a passage's context.
BETWEEN = " > "
#: What follows a file's last dot, and is longer, is a part of its name.
LONGEST_ENDING = 5


@dataclass(frozen=True, slots=True)
class Named:
    """What a candidate is called: title and key of its document, and its context as indexed."""

    title: str
    key: str
    context: str


def title_match(question: str, candidates: Sequence[Named]) -> NDArray[np.float64]:
    """What to add to each candidate's score: 0 to 1.3, not to be divided by the best one's.

    Names are compared both ways by trigrams: no language is assumed, and neither case nor
    punctuation counts. All passages of a document gain the same by its title, so the best of them
    stays the best; documents of the same name stay in their order.
    """
    scores = np.zeros(len(candidates))
    names: dict[str, int] = {}
    places, kinds, owners = [], [], []
    segments, has_dot = question.count("/") + 1, "." in question
    for owner, candidate in enumerate(candidates):
        title, file, context = candidate.title, candidate.key, candidate.context
        # Files are known without their folders and without their endings: of a path's segments as
        # many as the question has.
        if "/" in file:
            file = "/".join(file.rsplit("/", segments)[-segments:])
        if "." in file and not has_dot:
            stem, _, ending = file.rpartition(".")
            file = stem if len(ending) <= LONGEST_ENDING else file
        called = [(TITLE, title), (FILE, file)]
        if context != title and len(context) <= MOST:  # what is too long is no name
            headings = [each for each in context.split(BETWEEN) if each != title]
            called += [(HEADING, each) for each in headings]
            if title and headings:
                called.append((HEADING, f"{title} {headings[-1]}"))
        for kind, name in called:
            places.append(names.setdefault(name, len(names)))
            kinds.append(kind)
            owners.append(owner)
    if names:
        of_question, of_name, length = shared(question, list(names))
        alike = 2 * of_question * of_name / np.maximum(of_question + of_name, 1e-9)
        exact = EXACT * (alike * length) ** STEEPNESS
        part = np.sqrt(of_question) * of_name**4
        added = WORTH[kinds] * (exact[places] + PART[kinds] * part[places])
        np.maximum.at(scores, owners, added)
    return scores
