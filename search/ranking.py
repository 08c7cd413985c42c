"""From what the arms listed to one ranking: fusion, thresholds, reranking, diversity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from common.fusion import EVIDENCE, LETTERS_DEPTH, Arm, Fused, Fusion, Numbers, fuse
from common.fusion_options import RRF_K, Method
from common.letters import held_trigrams, weighed
from documents.models import Document
from inference.base import InferenceError
from search.diversity import diversified
from search.known_items import Named, title_match
from search.passages import Passage, read_passages
from search.query import Query
from search.reranking import NoRerankerConfigured, Reranking, rerank_scores, reranking_for
from search.retrieval.arms import Candidate, Retrieved

#: Reads passages by chunk id; one that was deleted meanwhile is absent.
Passages = Callable[[Sequence[int]], Mapping[int, Passage]]


class Texts:
    """What passages say beside one question. Each is read and compared once, however often it is
    ranked."""

    def __init__(self, question: str, passages: Passages = read_passages) -> None:
        self._question = question
        self._passages = passages
        self._compared: dict[int, tuple[NDArray[np.bool_], float]] = {}

    def compare(
        self, chunk_ids: Sequence[int]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Numbers]:
        """Which of these there still are; of each that is there the question's trigrams that it
        holds, of shape (passages, trigrams), and what to add for what it is called."""
        if missing := [each for each in chunk_ids if each not in self._compared]:
            read = self._passages(missing)
            passages = read.values()
            holds = held_trigrams(self._question, [each.embedded_text for each in passages])
            named = [Named(each.title, each.document_key, each.context) for each in passages]
            matches = title_match(self._question, named).tolist()
            self._compared |= zip(read, zip(holds, matches, strict=True), strict=True)
        present = np.array([each in self._compared for each in chunk_ids], bool)
        found = [self._compared[each] for each in chunk_ids if each in self._compared]
        return present, np.array([each[0] for each in found]), np.array([each[1] for each in found])


@dataclass(slots=True)
class Ranked:
    """A hit in the making. `score` is what orders it among its like: the reranker's where it was
    read again, else the fused one; reranked hits come first."""

    candidate: Candidate
    fused_score: float
    fused_rank: int
    fusion: Fusion
    rerank: float | None = None

    @property
    def fused(self) -> Fused:
        """What each arm added to its fused score."""
        place = self.candidate.place
        given = self.fusion.contributions
        return Fused(
            hit=self.candidate.chunk_id,
            score=self.fused_score,
            contributions={name: float(given[name][place]) for name in sorted(given)},
            best_rank=int(self.fusion.best_ranks[place]),
        )

    @property
    def score(self) -> float:
        return self.fused_score if self.rerank is None else self.rerank


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hits in their final order, before grouping and paging."""

    hits: tuple[Ranked, ...]
    reranked: int = 0
    reranker: str = ""
    degraded: tuple[str, ...] = ()
    milliseconds: float = 0.0

    def relevance(self) -> Callable[[Ranked], float]:
        """What tells 0..1 for a hit's bar: its score over the best of its kind, and for one that
        was not read again never more than for one that was."""
        read = [hit.rerank for hit in self.hits if hit.rerank is not None]
        best_read, worst_read = max(read, default=0.0), min(read, default=0.0)
        best_fused = max([hit.fused_score for hit in self.hits if hit.rerank is None], default=0.0)
        ceiling = _share(worst_read, best_read) if best_read > 0 else 1.0

        def relevance(hit: Ranked) -> float:
            if hit.rerank is not None:
                return _share(hit.score, best_read)
            return _share(hit.score, best_fused) * ceiling

        return relevance


@dataclass(frozen=True, slots=True)
class RankingOptions:
    """`evidence` beside the arms' own scores, see `fusion.EVIDENCE`. Without `letters` the best
    stand in another order, and the same hits are listed.

    `rerank`: None where a reranker is set up, True demands one, False does without.

    Thresholds are on their own score only, and a hit that has no such score does not pass them.
    """

    method: Method
    depth: int
    k: int
    evidence: bool = True
    rerank: bool | None = None
    min_similarity: float | None = None
    min_rerank: float | None = None
    diversify: bool = False
    letters: bool = True
    rrf_k: int = RRF_K


def rank(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    texts: Texts | None = None,
) -> Ranking:
    """Order the candidates. A reranker that does not work leaves the fused order, and it is said.

    Raises NoRerankerConfigured.
    """
    hits = fused_hits(query, retrieved, weights, options, texts)
    if options.min_similarity is not None:
        least = options.min_similarity
        hits = [hit for hit in hits if _reaches(hit.candidate.similarity, least)]
    ranking = _reranked(query, hits, retrieved, options)
    hits = list(ranking.hits)
    if options.min_rerank is not None:
        hits = [hit for hit in hits if _reaches(hit.rerank, options.min_rerank)]
    if options.diversify:
        hits = _diversified(hits)
    return replace(ranking, hits=tuple(hits))


#: Which of the candidates' scores each arm goes by.
SCORES = {"lexical": "lexical", "vector": "closeness", "graph": "graph"}


def fused_hits(
    query: Query,
    retrieved: Retrieved,
    weights: Mapping[str, float],
    options: RankingOptions,
    texts: Texts | None = None,
) -> list[Ranked]:
    """The candidates in the order of what the arms and the evidence say together. `texts` tells
    what the best of them say, where evidence is taken from it."""
    candidates = retrieved.candidates
    arms = {report.name: weights[report.name] for report in retrieved.arms}
    # Evidence is beside both arms or not at all: a search by one of them stays what it is.
    has_evidence = options.evidence and len(arms) > 1 and options.method == "score"
    said = [
        Arm(name, candidates.scores[SCORES[name]], candidates.ranks[name], weight)
        for name, weight in arms.items()
    ]
    if has_evidence:
        said.append(Arm("likeness", candidates.scores["likeness"], weight=EVIDENCE["likeness"]))
    fusion = fuse(candidates.chunk_ids, said, method=options.method, rrf_k=options.rrf_k)
    order = fusion.order()
    if has_evidence and options.letters and len(order):
        fusion = _with_texts(fusion, order[:LETTERS_DEPTH], texts or Texts(query.text))
        order = fusion.order()
    order = order[: options.depth]
    fused = zip(order.tolist(), fusion.scores[order].tolist(), strict=True)
    return [
        Ranked(Candidate(candidates, place), score, rank, fusion)
        for rank, (place, score) in enumerate(fused, start=1)
    ]


def _with_texts(fusion: Fusion, places: NDArray[np.intp], texts: Texts) -> Fusion:
    """With how much of the question's trigrams the best hits hold, and whether they are called as
    the question says."""
    present, holds, named = texts.compare(fusion.hits[places].tolist())
    if not present.any():
        return fusion
    places = places[present]
    held = np.maximum(weighed(holds), 0.0)
    most = held.max(initial=0.0)
    if most > 0:
        fusion = fusion.with_evidence("letters", places, EVIDENCE["letters"] * held / most)
    return fusion.with_evidence("title", places, named) if named.any() else fusion


def _reaches(score: float | None, least: float) -> bool:
    return score is not None and score >= least


def _reranked(
    query: Query, hits: Sequence[Ranked], retrieved: Retrieved, options: RankingOptions
) -> Ranking:
    """The best hits by the reranker's score, then the others as they were."""
    if options.rerank is False:
        return Ranking(tuple(hits))
    started = perf_counter()
    try:
        reranking = reranking_for(retrieved.facts, k=options.k)
        if reranking is None:
            if options.rerank:
                raise NoRerankerConfigured
            return Ranking(tuple(hits))
        best, others = hits[: reranking.depth], hits[reranking.depth :]
        scores = _scores(query, best, reranking)
    except InferenceError:
        return Ranking(tuple(hits), degraded=("rerank",), milliseconds=_since(started))
    read = [
        replace(hit, rerank=scores[hit.candidate.chunk_id])
        for hit in best
        if hit.candidate.chunk_id in scores
    ]
    read.sort(key=lambda hit: -hit.score)  # stable: equal scores keep the fused order
    # Vectors without a text cannot be read.
    unread = [hit for hit in best if hit.candidate.chunk_id not in scores]
    return Ranking(
        hits=(*read, *unread, *others),
        reranked=len(read),
        reranker=reranking.alias,
        milliseconds=_since(started),
    )


def _scores(query: Query, hits: Sequence[Ranked], reranking: Reranking) -> dict[int, float]:
    return rerank_scores(
        query.text,
        [hit.candidate.chunk_id for hit in hits],
        [hit.fused_score for hit in hits],
        reranking,
    )


def _since(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)


def _diversified(hits: Sequence[Ranked]) -> list[Ranked]:
    """Among the reranked and among the others, for their scores are of two kinds."""
    documents = {hit.candidate.document_id for hit in hits}
    sources = dict(Document.objects.filter(pk__in=documents).values_list("pk", "source"))

    def spread(part: Sequence[Ranked]) -> list[Ranked]:
        return diversified(
            part,
            score=lambda hit: hit.score,
            document=lambda hit: hit.candidate.document_id,
            source=lambda hit: sources.get(hit.candidate.document_id, ""),
        )

    return [
        *spread([hit for hit in hits if hit.rerank is not None]),
        *spread([hit for hit in hits if hit.rerank is None]),
    ]


def _share(score: float, best: float) -> float:
    return max(0.0, min(1.0, score / best)) if best > 0 else 0.0
