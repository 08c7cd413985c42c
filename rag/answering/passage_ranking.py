"""Which of the passages found an answer is taken from: a search ranks what a reader wants to see,
an answer wants the page that is about the question. Begin with `rank_passages`. Without Django.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rag.answering.tables import TableRow
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


def favour_tables(passages: Sequence[Passage], rows: Sequence[TableRow]) -> list[Passage]:
    """The passages, best first, with those more relevant whose tables have the `rows` that are
    asked for: a search finds the words around a price rather than the list of prices."""
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
