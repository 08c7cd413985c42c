"""Which of the passages found an answer is taken from: a search ranks what a reader wants to see,
an answer wants the page that is about the question. Begin with `rank_passages` and `read_passages`.
Without Django.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.trigrams import trigram_overlap
from rag.answering.answer_types import AnswerKind
from rag.answering.segments import split_segments
from rag.answering.tables import extreme_rows, priced_rows
from rag.events import Passage

#: Weights of a passage's relevance, in the unit in which the words that the best sentence has in
#: common with the question weigh 1. Fitted in docs/decisions/0070.
SCORE_WEIGHT = 0.8
COVERAGE_WEIGHT = 0.7
DOCUMENT_WEIGHT = 0.2
TITLE_WEIGHT = 0.15
LINK_WEIGHT = 0.1
#: Passages that link to a document, of which more say nothing further.
MAX_LINKS = 3.0
#: Weights of what a passage gives to each of its sentences where a model compares these: there the
#: search's score, titles and links tell nothing more.
SENTENCE_COVERAGE_WEIGHT = 1.0
SENTENCE_NEARNESS_WEIGHT = 0.6
#: What sentences in another language than the question gain where the model knows many languages:
#: what they lose by LANGUAGE_NEARNESS, times the weights of their own and the passage's nearness.
FOREIGN_WEIGHT = 1.2

#: What a passage gains that has the row of a table that is asked for.
TABLE_WEIGHT = 0.5
#: Weight of what a reranker makes of a passage's best part, 0 for an unrelated one and 1 for a
#: usual answer, beside the parts of the relevance above. See docs/decisions/0082.
READING_WEIGHT = 1.0

#: A part of a passage that is read at once, in characters: some sentences.
WINDOW_CHARACTERS = 400
#: Passages of which the most promising part is read, and parts that are read in all: on two cores
#: a part takes about 12 ms.
MAX_READ_PASSAGES, MAX_WINDOWS = 10, 20
#: Between title and headings, and what is read below them.
_MAX_HEADING_CHARACTERS = 120

_LINK_TARGET = re.compile(r"\]\(([^)\s#?]+)")


def rank_passages(
    passages: Sequence[Passage],
    *,
    coverage: Sequence[float],
    title_nearness: Sequence[float] | None,
    nearness: Sequence[float] | None = None,
    is_foreign: Sequence[bool] = (),
) -> list[Passage]:
    """The passages with their `relevance` and `answer_score`, best first; all of a search's
    candidates should be given.

    It sums the search's score over the best one; `coverage`, the share (0..1) of the question's
    terms that the passage holds; the document's share of what was found, over that of the best
    document; and `title_nearness`, the calibrated similarity of the document's title to the
    question, None if no model could tell; and how many of the other passages, weighted by their
    scores, link to the document. The answer score, which its sentences share, sums coverage and
    `nearness`, the passage's own calibrated similarity, and makes good what those that are
    foreign to the question lose by their language.
    """
    if not passages:
        return []
    scores = np.array([passage.fused for passage in passages])
    # What exceeds the last candidate, so that many weak passages do not make a document.
    excess = scores - scores.min()
    of_document: dict[int, float] = defaultdict(float)
    for passage, more in zip(passages, excess.tolist(), strict=True):
        of_document[passage.document_id] += more
    documents = np.array([of_document[passage.document_id] for passage in passages])
    relevance = SCORE_WEIGHT * scores / max(scores.max(), 1e-9)
    relevance = relevance + COVERAGE_WEIGHT * np.asarray(coverage)
    relevance = relevance + DOCUMENT_WEIGHT * documents / max(documents.max(), 1e-9)
    relevance = relevance + LINK_WEIGHT * _links(passages, scores)
    if title_nearness is not None:
        relevance = relevance + TITLE_WEIGHT * np.asarray(title_nearness)
    order = np.argsort(-relevance, kind="stable").tolist()
    shared = SENTENCE_COVERAGE_WEIGHT * np.asarray(coverage)
    if nearness is not None:
        shared = shared + SENTENCE_NEARNESS_WEIGHT * np.asarray(nearness)
    if is_foreign:
        shared = shared + FOREIGN_WEIGHT * np.asarray(is_foreign)
    return [
        replace(
            passages[place],
            relevance=float(relevance[place]),
            coverage=float(coverage[place]),
            answer_score=float(shared[place]),
        )
        for place in order
    ]


def _links(passages: Sequence[Passage], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each passage, the scores of the passages of other documents that link to its document, as
    Markdown links relative to their own: the best counts 1, all together at most MAX_LINKS."""
    found: dict[str, float] = defaultdict(float)
    for passage, score in zip(passages, (scores / max(scores.max(), 1e-9)).tolist(), strict=True):
        folder = posixpath.dirname(passage.document_key)
        targets = {
            posixpath.normpath(posixpath.join(folder, target))
            for target in _LINK_TARGET.findall(passage.text)
            if "://" not in target
        }
        for target in targets - {passage.document_key}:
            found[target] += score
    return np.array([min(found[each.document_key], MAX_LINKS) for each in passages])


def favour_tables(
    question: str, passages: Sequence[Passage], *, kind: AnswerKind | None
) -> list[Passage]:
    """The passages, best first, with those more relevant whose tables have the rows that are asked
    for: a search finds the words around a price rather than the list of prices."""
    rows = extreme_rows(question, passages) or (
        priced_rows(question, passages) if kind == "money" else []
    )
    asked_for = {row.passage.chunk_id for row in rows}
    if not asked_for:
        return list(passages)
    favoured = [
        replace(
            passage,
            relevance=(passage.relevance or 0.0) + TABLE_WEIGHT * (passage.chunk_id in asked_for),
        )
        for passage in passages
    ]
    return sorted(favoured, key=lambda passage: -(passage.relevance or 0.0))


#: How well each text answers the question, in order: 0 is unrelated, 1 a usual answer; None if no
#: model can tell.
ReadFunction = Callable[[Sequence[str]], Sequence[float] | None]


def read_passages(
    question: str,
    passages: Sequence[Passage],
    read: ReadFunction,
    *,
    is_known: Sequence[bool],
) -> list[Passage]:
    """The passages, which come best first, as a reranker orders them together with what was known
    of each: with `readings`, and these in their `relevance`. Unchanged where `read` tells nothing.

    Reading all of every passage would take too long: read are windows of some sentences, of each of
    the first passages the one with most of the question's letters, and a few more. Passages in a
    language that the model does not know, where `is_known` is false, are taken for average ones.
    """
    windows = [
        (place, start, end)
        for place in [at for at, known in enumerate(is_known) if known][:MAX_READ_PASSAGES]
        for start, end in _windows(passages[place].text)
    ]
    held = trigram_overlap(
        question,
        {at: passages[place].text[start:end] for at, (place, start, end) in enumerate(windows)},
    )
    most = max(held.values(), default=0.0) or 1.0
    promising = sorted(
        range(len(windows)),
        key=lambda at: -(held[at] / most + (passages[windows[at][0]].relevance or 0.0)),
    )
    by_letters = sorted(range(len(windows)), key=lambda at: held[at])
    first_of = {windows[at][0]: at for at in by_letters}  # the last one, with the most, stays
    chosen = list(dict.fromkeys([*first_of.values(), *promising]))[:MAX_WINDOWS]
    told = read([_read_text(passages[windows[at][0]], *windows[at][1:]) for at in chosen])
    if not told:
        return list(passages)
    readings: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for at, reading in zip(chosen, told, strict=True):
        place, start, end = windows[at]
        readings[place].append((start, end, reading))
    best = {place: max(reading for *_, reading in found) for place, found in readings.items()}
    least, average = min(best.values()), sum(best.values()) / len(best)
    ordered = [
        replace(
            passage,
            readings=tuple(readings[place]),
            relevance=(passage.relevance or 0.0)
            + READING_WEIGHT * best.get(place, least if is_known[place] else average),
        )
        for place, passage in enumerate(passages)
    ]
    return sorted(ordered, key=lambda passage: -(passage.relevance or 0.0))


def _windows(text: str) -> list[tuple[int, int]]:
    """Neighbouring segments of the text, together at most WINDOW_CHARACTERS, or one longer one."""
    windows: list[tuple[int, int]] = []
    for part in split_segments(text):
        if windows and part.end - windows[-1][0] <= WINDOW_CHARACTERS:
            windows[-1] = (windows[-1][0], part.end)
        else:
            windows.append((part.start, part.end))
    return windows


def _read_text(passage: Passage, start: int, end: int) -> str:
    """A window with title and headings, which say what it is about."""
    return f"{passage.heading[-_MAX_HEADING_CHARACTERS:]}\n{passage.text[start:end]}"
