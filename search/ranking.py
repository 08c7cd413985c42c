"""From what the arms listed to one ranking: fusion, thresholds, reranking, diversity."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from time import perf_counter

from common.fusion import EVIDENCE, LETTERS_DEPTH, Arm, Fused, Method, fuse, with_evidence
from common.letters import letters
from documents.models import Document
from inference.base import InferenceError
from search.diversity import diversified
from search.passages import passages
from search.query import Query
from search.reranking import Reranking, rerank_scores, reranking_for
from search.retrieval.arms import Candidate, Retrieved


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hit in the making. `score` is what orders it among its like: the reranker's where it was
    read again, else the fused one; reranked hits come first. `relevance` is 0..1, for a bar."""

    candidate: Candidate
    fused: Fused
    fused_rank: int
    rerank: float | None = None

    @property
    def score(self) -> float:
        return self.fused.score if self.rerank is None else self.rerank


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
        reranked = [hit.score for hit in self.hits if hit.rerank is not None]
        best_read, worst_read = max(reranked, default=0.0), min(reranked, default=0.0)
        best_fused = max((hit.score for hit in self.hits if hit.rerank is None), default=0.0)
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


class NoRerankerConfigured(Exception):
    """Reranking was demanded where no model does it."""


def rank(
    query: Query, retrieved: Retrieved, weights: Mapping[str, float], options: RankingOptions
) -> Ranking:
    """Order the candidates. A reranker that does not work leaves the fused order, and it is said.

    Raises NoRerankerConfigured.
    """
    hits = fused_hits(query, retrieved, weights, options)
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


#: What each arm, and each piece of evidence, knows of a candidate.
VALUES: Mapping[str, Callable[[Candidate], float | None]] = {
    "lexical": lambda candidate: candidate.lexical,
    "vector": lambda candidate: candidate.closeness,
    "likeness": lambda candidate: candidate.likeness,
    "graph": lambda candidate: candidate.graph,
}


def fused_hits(
    query: Query, retrieved: Retrieved, weights: Mapping[str, float], options: RankingOptions
) -> list[Ranked]:
    """The candidates in the order of what the arms and the evidence say together."""
    candidates = {candidate.chunk_id: candidate for candidate in retrieved.candidates}
    arms = [_arm(report.name, weights[report.name], retrieved) for report in retrieved.arms]
    # Evidence is beside both arms or not at all: a search by one of them stays what it is.
    has_evidence = options.evidence and len(arms) > 1 and options.method == "score"
    if has_evidence:
        arms.append(_arm("likeness", EVIDENCE["likeness"], retrieved))
    fused = fuse(arms, method=options.method)
    if has_evidence and options.letters:
        fused = with_evidence(fused, _letters(query, fused[:LETTERS_DEPTH]))
    return [
        Ranked(candidates[entry.hit], entry, rank)
        for rank, entry in enumerate(fused[: options.depth], start=1)
    ]


def _letters(query: Query, fused: Sequence[Fused]) -> Arm:
    """How much of the question's letters the best hits hold."""
    scores = letters(query.text, passages([entry.hit for entry in fused]))
    return Arm("letters", ranks={}, scores=scores, weight=EVIDENCE["letters"])


def _arm(name: str, weight: float, retrieved: Retrieved) -> Arm:
    known = {entry.chunk_id: VALUES[name](entry) for entry in retrieved.candidates}
    return Arm(
        name=name,
        ranks={
            entry.chunk_id: entry.ranks[name]
            for entry in retrieved.candidates
            if name in entry.ranks
        },
        # NaN is a likeness without a direction: that between two opposite vectors.
        scores={
            chunk_id: score
            for chunk_id, score in known.items()
            if score is not None and not isnan(score)
        },
        weight=weight,
    )


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
        [hit.fused.score for hit in hits],
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
