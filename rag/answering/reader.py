"""The model that reads a question and a text together and says how well the one answers the other:
the reranker of the collections, on its own scale. Begin with `find_reader`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from documents.embedders import (
    CALIBRATION_PAIRS,
    SimilarityScale,
    measured_scales,
    similarity_scale,
)
from inference.interfaces import InferenceError
from inference.model_languages import is_made_for
from inference.model_registry import rerankers
from search.ranking import find_reranker, require_reranker
from search.reranking import reranker_languages
from search.results import Scope
from search.retrieval.scope_facts import cached_facts

logger = logging.getLogger(__name__)

#: Probabilities nearer to 0 or 1 are not told apart.
MIN_PROBABILITY = 1e-9
#: How far a model's log-odds of related and unrelated pairs are apart at least, if it tells them.
MIN_LOG_ODDS = 1.0


@dataclass(frozen=True)
class Reader:
    """The reranker with this alias, for questions in `query_language` (ISO code; "" if unknown)."""

    alias: str
    instruction: str | None
    query_language: str

    def knows(self, language: str) -> bool:
        """Whether it was made for texts in this language, an ISO code or a PostgreSQL name."""
        return is_made_for(self._languages, language[:2])

    def read(self, question: str, texts: Sequence[str]) -> list[float] | None:
        """How well each text answers the question: 0 is unrelated, 1 a usual answer in other words,
        more is nearer to the question's own. None where the model does not answer, or does not tell
        one from the other."""
        try:
            scale = self._scale()
            if scale is None:
                return None
            read = self._log_odds(question, texts)
        except InferenceError as error:
            logger.warning("the reranker failed, answers are chosen without it: %s", error)
            return None
        readings: list[float] = scale.nearness(read).tolist()
        return readings

    @cached_property
    def _languages(self) -> frozenset[str]:
        return reranker_languages(self.alias)

    def _log_odds(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        if not texts:
            return np.zeros(0)
        found = rerankers[self.alias].score(question, texts, instruction=self.instruction)
        share = np.clip(np.array(found), MIN_PROBABILITY, 1 - MIN_PROBABILITY)
        log_odds: NDArray[np.float64] = np.log(share / (1 - share))
        return log_odds

    def _scale(self) -> SimilarityScale | None:
        """Measured once a model, by the pairs that embedders are put on their scales with; None
        for a model that does not tell these apart."""
        texts = [text for _, text in CALIBRATION_PAIRS]

        def measure() -> list[SimilarityScale]:
            odds = [self._log_odds(question, texts) for question, _ in CALIBRATION_PAIRS]
            return [similarity_scale(np.stack(odds))]

        identity = f"{rerankers.identity(self.alias)}\0{self.instruction}"
        [scale] = measured_scales("reader", identity, measure)
        return scale if scale.related - scale.unrelated >= MIN_LOG_ODDS else None


def find_reader(scope: Scope, *, query_language: str, wanted: bool | None = None) -> Reader | None:
    """The reader for questions in `query_language` over `scope`; None where no reranker is set up
    or it was not made for that language. `wanted` as `rerank` of a search: False is without, True
    demands one. Raises NoRerankerConfigured."""
    if wanted is False:
        return None
    if wanted:
        require_reranker(scope)
    try:
        found = find_reranker(cached_facts(scope))
    except InferenceError as error:
        logger.warning("the reranker cannot be used, answers are chosen without it: %s", error)
        return None
    reader = Reader(*found, query_language) if found else None
    return reader if reader and reader.knows(query_language) else None
