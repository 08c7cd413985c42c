"""Fusion weights learned from judged questions: grid search, cross-validation,
bootstrap. Begin with `tune`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from common.errors import Conflict, EmbedderUnavailable
from common.fusion import RERANK_FEATURES, TRIGRAM_DEPTH, adapted_weights
from common.trigrams import rarity_weighted, trigram_matches
from documents.models import Collection, Document
from search.evaluation.datasets import Dataset, Entry
from search.evaluation.evaluate import Progress, dcg, ignore_progress
from search.query import parse_query
from search.ranked_results import DEPTH, WEIGHTS
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


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """A judged question with all candidates that any weights could rank, to be fused with any
    weights as `search.ranking` does it.

    Arrays by passage, in tie-breaking order: its document, what `words` and `meaning` contribute at
    weight 1 and which of them listed it, the contribution of the feedback `similarity`, and
    `holds`: which trigrams of the question it has. `grades` are by document; one without passage
    counts as missed. `nearest` is the best normalised similarity, `untuned` the default lexical
    weight, 0..1.
    """

    id: str
    documents: Sequence[int]
    contributions: Mapping[str, Numbers]
    listed: Mapping[str, NDArray[np.bool_]]
    similarity: Numbers
    holds: NDArray[np.bool_]
    grades: Mapping[int, int]
    nearest: float | None
    untuned: float

    def by_weight(self, lexical: float, k: int) -> float:
        """nDCG@k with lexical weight `lexical`, rounded to hundredths, and the rest for vectors."""
        lexical = round(lexical, 2)
        words, meaning = self.contributions["words"], self.contributions["meaning"]
        scores = lexical * words + (1 - lexical) * meaning + self.similarity
        # Adds trigram overlap with the question to the best passages.
        best = _order(scores)[:TRIGRAM_DEPTH]
        overlap = np.maximum(rarity_weighted(self.holds[best]), 0.0)
        most = overlap.max(initial=0.0)
        if most > 0:
            scores[best] += RERANK_FEATURES["letters"] * overlap / most
        return self._ndcg(_order(scores), k)

    def single(self, arm: str, k: int) -> float:
        """nDCG@k of one arm's own list."""
        order = _order(self.contributions[arm])
        return self._ndcg(order[self.listed[arm][order]], k)

    def _ndcg(self, order: NDArray[np.intp], k: int) -> float:
        """nDCG@k of documents, each ranked at its best passage."""
        ranking = list(dict.fromkeys(self.documents[place] for place in order))[:k]
        ideal = dcg(sorted(self.grades.values(), reverse=True)[:k])
        return dcg([self.grades.get(document, 0) for document in ranking]) / ideal


def learn_weights(questions: Iterable[JudgedQuestion], *, k: int = 10) -> LearnedWeights:
    """The best weights of the grid for all questions, with a cross-validated estimate of their
    gain.

    Questions are consumed one by one: each has the texts of hundreds of passages.
    """
    ids, rows, others = [], [], []
    for question in questions:
        by_weight = cache(partial(question.by_weight, k=k))
        weights = [learned_lexical_weight(*point, question.nearest) for point in GRID]
        ids.append(question.id)
        rows.append([by_weight(round(weight, 2)) for weight in weights])
        arms = (question.single("words", k), question.single("meaning", k))
        others.append([*arms, by_weight(round(question.untuned, 2))])
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
    places = [hit for hit in places if hit.chunk_id in texts]
    given = [hit.contributions for hit in places]

    def arrays(name: str) -> Numbers:
        return np.array([each.get(name, 0.0) for each in given])

    return JudgedQuestion(
        id=query.id,
        documents=[hit.document_id for hit in places],
        contributions={"words": arrays("lexical"), "meaning": arrays("vector")},
        listed={
            name: np.array([arm in hit.ranks for hit in places], dtype=bool)
            for name, arm in (("words", "lexical"), ("meaning", "vector"))
        },
        similarity=arrays("likeness"),
        # Which trigrams are rare depends on the weights, which passages have them does not.
        holds=trigram_matches(parsed.text, [texts[hit.chunk_id] for hit in places]),
        # A document that is not there is missed all the same: a number that none has.
        grades={documents.get(key, -n): grade for n, (key, grade) in enumerate(grades.items(), 1)},
        nearest=retrieved.nearest,
        untuned=adapted_weights(WEIGHTS, retrieved.nearest)["lexical"],
    )
