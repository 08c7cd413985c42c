"""Reranking: a model reads the question with each of the best hits and orders them anew."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.backends.rerank_basic import NoReranker
from inference.base import InferenceError
from inference.handler import rerankers
from search.passages import passages
from search.retrieval.facts import ScopeFacts

#: A reranker reads four times what is asked for, and this many at least; more than the most cost
#: more than they bring.
DEPTH_FACTOR = 4
LEAST = 20
MOST = 100


@dataclass(frozen=True, slots=True)
class Reranking:
    """Which reranker reads how many hits, and what it is told to look for."""

    alias: str
    instruction: str | None
    depth: int


def rerank_depth(k: int) -> int:
    """How many hits are read again for pages of `k`: the same for every page, so that pages fit."""
    return min(max(DEPTH_FACTOR * k, LEAST), MOST)


def has_reranker(facts: ScopeFacts) -> bool:
    """Whether a reranker is set up for these collections; that it works is not tried."""
    try:
        return reranking_for(facts, k=1) is not None
    except InferenceError:
        return True


def reranking_for(facts: ScopeFacts, *, k: int) -> Reranking | None:
    """The reranker that the scope's collections agree on, or the site's own; None without one.

    Scores of two models cannot be compared, so collections that disagree get the site's. Raises
    inference.base.InferenceError for a reranker that cannot be made.
    """
    wanted = {(each.reranker, each.rerank_instruction) for each in facts.collections.values()}
    alias, instruction = wanted.pop() if len(wanted) == 1 else ("", "")
    alias = alias or "default"
    if alias == "default" and alias not in list(rerankers):
        return None
    if isinstance(rerankers[alias], NoReranker):
        return None
    return Reranking(alias, instruction or None, rerank_depth(k))


def rerank_scores(
    query: str, chunk_ids: Sequence[int], fused: Sequence[float], reranking: Reranking
) -> dict[int, float]:
    """Score 0..1 by chunk id; a chunk without text, or deleted meanwhile, has none.

    `fused` are the scores that the chunks came with. Raises inference.base.InferenceError.
    """
    texts = passages(chunk_ids)
    present = [
        (chunk_id, score)
        for chunk_id, score in zip(chunk_ids, fused, strict=True)
        if chunk_id in texts and texts[chunk_id].strip()
    ]
    if not present:
        return {}
    scores = rerankers[reranking.alias].score(
        query,
        [texts[chunk_id] for chunk_id, _ in present],
        stored=[score for _, score in present],
        instruction=reranking.instruction,
    )
    return dict(zip([chunk_id for chunk_id, _ in present], scores, strict=True))
