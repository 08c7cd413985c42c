"""Learning weights from judged questions: a grid, cross-validation, a bootstrap. Pure."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from common.fusion import EVIDENCE, LETTERS_DEPTH
from common.letters import held_trigrams, weighed
from search.evaluation.measures import dcg
from search.weights import learnt_lexical

Numbers = NDArray[np.float64]

#: Weights of words, and how much of them moves to meaning where the nearest passage is closer.
GRID: tuple[tuple[float, float], ...] = tuple(
    product((round(0.05 * step, 2) for step in range(21)), (0.0, 0.25, 0.5))
)
FOLDS = 5
RESAMPLES = 10_000
#: Means that differ by less are the same.
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Passage:
    """What each arm gives a passage at weight 1, and which arms listed it.

    `likeness` is what that evidence adds, and `text` what the question's letters are looked for in.
    """

    document: int
    words: float
    meaning: float
    in_words: bool
    in_meaning: bool
    likeness: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A judged question with everything that any weights could rank.

    `passages` are in the order that breaks ties. `grades` are by document; a document that is not
    among the passages counts as missed. `untuned` is the weight of words by default, 0..1.
    """

    id: str
    text: str
    passages: tuple[Passage, ...]
    grades: Mapping[int, int]
    nearest: float | None
    untuned: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt and what it is worth: means of nDCG@k over all questions.

    `tuned` is out of fold: each question is measured with weights learnt from the others only.
    `gain` is `tuned - untuned`; with 95 % confidence it lies in `interval`.
    """

    lexical: float
    pull: float
    questions: int
    words: float
    meaning: float
    untuned: float
    tuned: float
    interval: tuple[float, float]

    @property
    def gain(self) -> float:
        """Of questions that the weights had not seen."""
        return self.tuned - self.untuned


def learn(questions: Iterable[Question], *, k: int = 10) -> Learnt:
    """The best weights of the grid for all questions, and an honest guess of their worth.

    Questions are taken one by one and not kept: each has the texts of hundreds of passages.
    """
    ids, rows, others = [], [], []
    for question in questions:
        fusion = _Fusion(question, k)
        ids.append(question.id)
        rows.append([fusion.ndcg(*point) for point in GRID])
        arms = (fusion.single("words"), fusion.single("meaning"))
        others.append([*arms, fusion.by_weight(question.untuned)])
    scores = np.array(rows)
    words, meaning, untuned = np.array(others).T
    held_out = cross_validated(scores, folds(ids))
    lexical, pull = GRID[best_point(scores)]
    return Learnt(
        lexical=lexical,
        pull=pull,
        questions=len(ids),
        words=float(words.mean()),
        meaning=float(meaning.mean()),
        untuned=float(untuned.mean()),
        tuned=float(held_out.mean()),
        interval=bootstrap_interval(held_out - untuned),
    )


def folds(ids: Sequence[str]) -> NDArray[np.intp]:
    """The fold of each question, equally large, by the questions' ids and not by their order."""
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in ids]
    places = np.argsort(np.argsort(np.array(digests), kind="stable"), kind="stable")
    return places % FOLDS


def cross_validated(scores: Numbers, fold: NDArray[np.intp]) -> Numbers:
    """Each question's score (questions × points) at the point that is best for the other folds."""
    held_out = np.empty(len(scores))
    for each in np.unique(fold):
        inside = fold == each
        held_out[inside] = scores[inside, best_point(scores[~inside])]
    return held_out


def best_point(scores: Numbers) -> int:
    """The point of `GRID` with the best mean; of several, the one nearest to their middle.

    A few questions leave whole ranges of weights equal, whose edges are only just good enough.
    """
    means = scores.mean(axis=0)
    equal = np.flatnonzero(means >= means.max() - SAME)
    points = np.array(GRID)[equal]
    distances = np.abs(points - points.mean(axis=0)).sum(axis=1)
    return int(equal[np.argmin(np.round(distances, 6))])


def bootstrap_interval(differences: Numbers) -> tuple[float, float]:
    """95 % percentile interval of the mean of paired differences; the same every time.

    Efron and Tibshirani, “An Introduction to the Bootstrap” (1993), chapter 13.
    """
    chance = np.random.default_rng(7)
    size = len(differences)
    means = [differences[chance.integers(0, size, size)].mean() for _ in range(RESAMPLES)]
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


class _Fusion:
    """One question, fused with any weights, as `search.ranking` does it."""

    def __init__(self, question: Question, k: int) -> None:
        self.question = question
        self._k = k
        self._words = np.array([passage.words for passage in question.passages])
        self._meaning = np.array([passage.meaning for passage in question.passages])
        self._likeness = np.array([passage.likeness for passage in question.passages])
        # Read once: which of them are rare depends on the weights, what they hold does not.
        self._holds = held_trigrams(question.text, [each.text for each in question.passages])
        self._ideal = dcg(sorted(question.grades.values(), reverse=True)[:k])
        self._known: dict[float, float] = {}

    def ndcg(self, lexical: float, pull: float) -> float:
        """nDCG@k by learnt weights."""
        return self.by_weight(learnt_lexical(lexical, pull, self.question.nearest))

    def by_weight(self, lexical: float) -> float:
        """nDCG@k where words weigh `lexical`, to the hundredth, and meaning the rest."""
        lexical = round(lexical, 2)
        if lexical not in self._known:
            scores = lexical * self._words + (1 - lexical) * self._meaning + self._likeness
            self._known[lexical] = self._ndcg(_order(self._with_letters(scores)))
        return self._known[lexical]

    def single(self, arm: str) -> float:
        """nDCG@k of one arm's own list."""
        listed = [getattr(passage, f"in_{arm}") for passage in self.question.passages]
        order = _order(getattr(self, f"_{arm}"))
        return self._ndcg(order[np.array(listed, dtype=bool)[order]])

    def _with_letters(self, scores: Numbers) -> Numbers:
        """The best are compared with the question by letters."""
        best = _order(scores)[:LETTERS_DEPTH]
        held = np.maximum(weighed(self._holds[best]), 0.0)
        most = held.max(initial=0.0)
        if most > 0:
            scores = scores.copy()
            scores[best] += EVIDENCE["letters"] * held / most
        return scores

    def _ndcg(self, order: NDArray[np.intp]) -> float:
        """Of documents, each at the place of its best passage."""
        ranking: dict[int, None] = {}
        for place in order:
            ranking[self.question.passages[place].document] = None
            if len(ranking) == self._k:
                break
        grades = self.question.grades
        return dcg([grades.get(document, 0) for document in ranking]) / self._ideal


def _order(scores: Numbers) -> NDArray[np.intp]:
    """Places from the best score down; equal ones as they stand."""
    return np.argsort(-scores, kind="stable")
