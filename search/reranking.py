"""Reranking: a model reads the question with each of the best hits and orders them anew."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InvalidInput
from inference.backends.rerank_basic import NoReranker
from inference.base import InferenceError
from inference.handler import rerankers
from search.passages import read_passages
from search.results import Scope
from search.retrieval.facts import ScopeFacts, facts_now, known_facts

#: A reranker reads four times what is asked for, and this many at least; more than the most cost
#: more than they bring.
DEPTH_FACTOR = 4
LEAST = 20
MOST = 100


class NoRerankerConfigured(InvalidInput):
    """Reranking was demanded where no model does it."""

    def __init__(self) -> None:
        super().__init__(
            "There is no reranker. Whoever runs this site can set one: `manage.py rerankers set"
            " MODEL` (docs/how-to/rerank.md). Or search without reranking.",
            field="rerank",
        )


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


def require_reranker(scope: Scope | None = None) -> None:
    """Raise NoRerankerConfigured where none is set up for `scope`, or without a scope for the site,
    before a model is loaded for the question."""
    if scope is None:
        found = _is_configured("default")
    else:
        # What this process remembers may be out of date, so that a refusal needs a second look.
        found = has_reranker(known_facts(scope)) or has_reranker(facts_now(scope))
    if not found:
        raise NoRerankerConfigured


def _is_configured(alias: str) -> bool:
    is_known = alias != "default" or alias in list(rerankers)
    return is_known and not isinstance(rerankers[alias], NoReranker)


def reranking_for(facts: ScopeFacts, *, k: int) -> Reranking | None:
    """The reranker that the scope's collections agree on, or the site's own; None without one.

    Scores of two models cannot be compared, so collections that disagree get the site's. Raises
    inference.base.InferenceError for a reranker that cannot be made.
    """
    wanted = {(each.reranker, each.rerank_instruction) for each in facts.collections.values()}
    alias, instruction = wanted.pop() if len(wanted) == 1 else ("", "")
    alias = alias or "default"
    if not _is_configured(alias):
        return None
    return Reranking(alias, instruction or None, rerank_depth(k))


def rerank_scores(
    query: str, chunk_ids: Sequence[int], fused: Sequence[float], reranking: Reranking
) -> dict[int, float]:
    """Score 0..1 by chunk id; a chunk without text, or deleted meanwhile, has none.

    `fused` are the scores that the chunks came with. Raises inference.base.InferenceError.
    """
    found = read_passages(chunk_ids)
    texts = {chunk_id: each.embedded_text for chunk_id, each in found.items()}
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
