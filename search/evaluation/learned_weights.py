"""Fusion weights learned from judged questions: grid search, cross-validation,
bootstrap. Begin with `tune`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from common.errors import Conflict
from common.fusion import RERANK_FEATURES, TRIGRAM_DEPTH, adapted_weights
from common.trigrams import rarity_weighted, trigram_matches
from documents.models import Collection, Document
from search.evaluation.datasets import Dataset, Entry
from search.evaluation.evaluate import Progress, dcg, ignore_progress
from search.query import parse_query
from search.ranked_results import DEPTH, WEIGHTS, EmbedderUnavailable
from search.ranking import RankingOptions, learned_lexical_weight, rank
from search.results import Scope, read_passages
from search.retrieval.arms import retrieve

Numbers = NDArray[np.float64]

#: Grid of (lexical weight, its decrease per 1.0 of similarity).
GRID: tuple[tuple[float, float], ...] = tuple(
    product((round(0.05 * step, 2) for step in range(21)), (0.0, 0.25, 0.5))
)
FOLDS = 5
RESAMPLES = 10_000
#: Means that differ by less are the same.
EQUAL_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class JudgedPassage:
    """What each arm contributes to a passage at weight 1, and which arms listed it.

    `feedback_similarity` is the contribution of the feedback similarity; question trigrams are
    looked up in `text`.
    """

    document: int
    words: float
    meaning: float
    in_words: bool
    in_meaning: bool
    feedback_similarity: float = 0.0
    text: str = ""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A judged question with all candidates that any weights could rank.

    `passages` are in tie-breaking order. `grades` are by document; a document without passage
    counts as missed. `untuned` is the default lexical weight, 0..1.
    """

    id: str
    text: str
    passages: tuple[JudgedPassage, ...]
    grades: Mapping[int, int]
    nearest: float | None
    untuned: float


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """Learned weights and their worth as mean nDCG@k over all questions.

    `tuned` is out of fold: each question is scored with weights learned from the others only.
    `gain` is `tuned - untuned`; its 95 % confidence interval is `interval`.
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
        """nDCG gain on questions that were not learned from."""
        return self.tuned - self.untuned


def learn_weights(questions: Iterable[JudgedQuestion], *, k: int = 10) -> LearnedWeights:
    """The best weights of the grid for all questions, with a cross-validated estimate of their
    gain.

    Questions are consumed one by one: each has the texts of hundreds of passages.
    """
    ids, rows, others = [], [], []
    for question in questions:
        fusion = _QuestionFusion(question, k)
        ids.append(question.id)
        rows.append([fusion.ndcg(*point) for point in GRID])
        arms = (fusion.single("words"), fusion.single("meaning"))
        others.append([*arms, fusion.by_weight(question.untuned)])
    scores = np.array(rows)
    words, meaning, untuned = np.array(others).T
    held_out = cross_validated(scores, folds(ids))
    lexical, pull = GRID[best_point(scores)]
    return LearnedWeights(
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
    """The fold of each question: equal sizes, determined by question ids, not by their order."""
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
    """The point of `GRID` with the best mean; of equal ones, the one nearest to their centre."""
    means = scores.mean(axis=0)
    equal = np.flatnonzero(means >= means.max() - EQUAL_TOLERANCE)
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


class _QuestionFusion:
    """One question fused with any weights, as `search.ranking` does it."""

    def __init__(self, question: JudgedQuestion, k: int) -> None:
        self.question = question
        self._k = k
        self._words = np.array([passage.words for passage in question.passages])
        self._meaning = np.array([passage.meaning for passage in question.passages])
        self._likeness = np.array([passage.feedback_similarity for passage in question.passages])
        # Read once: which of them are rare depends on the weights, what they hold does not.
        self._holds = trigram_matches(question.text, [each.text for each in question.passages])
        self._ideal = dcg(sorted(question.grades.values(), reverse=True)[:k])
        self._known: dict[float, float] = {}

    def ndcg(self, lexical: float, pull: float) -> float:
        return self.by_weight(learned_lexical_weight(lexical, pull, self.question.nearest))

    def by_weight(self, lexical: float) -> float:
        """nDCG@k with lexical weight `lexical`, rounded to hundredths, and the rest for vectors."""
        lexical = round(lexical, 2)
        if lexical not in self._known:
            scores = lexical * self._words + (1 - lexical) * self._meaning + self._likeness
            # Adds trigram overlap with the question to the best passages.
            best = _order(scores)[:TRIGRAM_DEPTH]
            overlap = np.maximum(rarity_weighted(self._holds[best]), 0.0)
            most = overlap.max(initial=0.0)
            if most > 0:
                scores[best] += RERANK_FEATURES["letters"] * overlap / most
            self._known[lexical] = self._ndcg(_order(scores))
        return self._known[lexical]

    def single(self, arm: str) -> float:
        """nDCG@k of one arm's own list."""
        listed = [getattr(passage, f"in_{arm}") for passage in self.question.passages]
        order = _order(getattr(self, f"_{arm}"))
        return self._ndcg(order[np.array(listed, dtype=bool)[order]])

    def _ndcg(self, order: NDArray[np.intp]) -> float:
        """nDCG@k of documents, each ranked at its best passage."""
        ranking: dict[int, None] = {}
        for place in order:
            ranking[self.question.passages[place].document] = None
            if len(ranking) == self._k:
                break
        grades = self.question.grades
        return dcg([grades.get(document, 0) for document in ranking]) / self._ideal


def _order(scores: Numbers) -> NDArray[np.intp]:
    """Indices by descending score; ties keep their order."""
    return np.argsort(-scores, kind="stable")


#: Two per fold; fewer would overfit.
MIN_QUESTIONS = 10
UNIT_WEIGHTS = {"lexical": 1.0, "vector": 1.0}


def tune(
    collection: Collection,
    dataset: Dataset,
    *,
    scope_of: Callable[[Entry], Scope],
    k: int = 10,
    on_progress: Progress = ignore_progress,
) -> LearnedWeights:
    """Weights learned from the judged questions of `dataset` for `collection`; nothing is stored.

    `scope_of` returns the scope of a question. Raises Conflict for too few questions, and
    EmbedderUnavailable where the model does not answer.
    """
    answered = [query for query in dataset.queries if any(dataset.judgements[query.id].values())]
    if len(answered) < MIN_QUESTIONS:
        raise Conflict(
            f"{len(answered)} questions with a good answer are too few to learn from; it takes"
            f" {MIN_QUESTIONS}. Judge more of them in the admin, under Judgements."
        )
    keys = {key for grades in dataset.judgements.values() for key in grades}
    rows = Document.objects.filter(collection=collection, key__in=keys).current()
    documents = dict(rows.values_list("key", "id"))

    def questions() -> Iterator[JudgedQuestion]:
        for number, query in enumerate(answered, start=1):
            grades = dataset.judgements[query.id]
            yield _judged_question(query, scope_of(query), grades, documents)
            on_progress("learn from question", number, len(answered))

    return learn_weights(questions(), k=k)


def store_tuning(collection: Collection, learnt: LearnedWeights) -> bool:
    """Stores learned weights on the collection, for its searches to use; returns whether.

    Only if they beat the default on held-out questions. The record names the space: with
    another model it is ignored.
    """
    if round(learnt.gain, 4) <= 0:
        return False
    record = {
        "lexical": learnt.lexical,
        "pull": learnt.pull,
        "questions": learnt.questions,
        "ndcg_default": round(learnt.untuned, 4),
        "ndcg_tuned": round(learnt.tuned, 4),
        "space": collection.space_id,
        "at": timezone.now().isoformat(timespec="seconds"),
    }
    _set_tuning(collection, record)
    return True


def reset_tuning(collection: Collection) -> bool:
    """Removes learned weights; returns whether there were any."""
    had_one = collection.tuning is not None
    _set_tuning(collection, None)
    return had_one


def _set_tuning(collection: Collection, record: dict[str, Any] | None) -> None:
    collection.tuning = record
    Collection.objects.filter(pk=collection.pk).update(tuning=record)


def _judged_question(
    query: Entry, scope: Scope, grades: Mapping[str, int], documents: Mapping[str, int]
) -> JudgedQuestion:
    parsed = parse_query(query.text)
    retrieved = retrieve(parsed, scope=scope, mode="hybrid", depth=DEPTH)
    if retrieved.degraded:
        raise EmbedderUnavailable(
            "The model does not answer, and without it there is nothing to balance words with."
            " Start it, then learn again."
        )
    everything = RankingOptions(
        method="score", depth=len(retrieved.candidates), k=DEPTH, rerank=False
    )
    ranked = rank(parsed, retrieved, UNIT_WEIGHTS, everything).hits
    read = read_passages([hit.chunk_id for hit in ranked])
    texts = {chunk_id: each.embedded_text for chunk_id, each in read.items()}
    places = sorted(ranked, key=lambda hit: (min(hit.ranks.values()), hit.chunk_id))
    return JudgedQuestion(
        id=query.id,
        text=parsed.text,
        passages=tuple(
            JudgedPassage(
                document=hit.document_id,
                words=given.get("lexical", 0.0),
                meaning=given.get("vector", 0.0),
                in_words="lexical" in hit.ranks,
                in_meaning="vector" in hit.ranks,
                feedback_similarity=given.get("likeness", 0.0),
                text=texts[hit.chunk_id],
            )
            for hit in places
            if hit.chunk_id in texts
            for given in [hit.contributions]
        ),
        # A document that is not there is missed all the same: a number that none has.
        grades={documents.get(key, -n): grade for n, (key, grade) in enumerate(grades.items(), 1)},
        nearest=retrieved.nearest,
        untuned=adapted_weights(WEIGHTS, retrieved.nearest)["lexical"],
    )
