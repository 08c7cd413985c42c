"""Base of rerankers that run a model in this process."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from inference.interfaces import InvalidScore, check_texts
from inference.local.model_folder import LocalModel, ModelFolder, read_checkpoint

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    import numpy as np
    from numpy.typing import NDArray

    from inference.local.batches import Columns


def sigmoid_scores(log_odds: "NDArray[np.float32]") -> list[float]:
    """The logistic function of each. Raises InvalidScore naming the first that is not finite.

    In float64, where two good texts keep their order up to log-odds of 36; in float32 both would
    round to 1 from 17 on.
    """
    import numpy as np  # noqa: PLC0415

    if not np.isfinite(log_odds).all():
        row = int(np.argmin(np.isfinite(log_odds)))
        raise InvalidScore(
            f"the score of text {row} is NaN or infinite: set OPTIONS['dtype'] to 'float32'."
        )
    # Through logaddexp, which does not overflow for texts that are far from relevant.
    return [float(score) for score in np.exp(-np.logaddexp(0, -log_odds.astype(np.float64)))]


class ScoringModelProtocol(Protocol):
    """A model in memory, of torch or of onnxruntime."""

    def log_odds(self, columns: "Columns") -> "NDArray[np.float32]":
        """Log-odds of relevance, shape (texts,), in the order given."""


S = TypeVar("S", bound=ScoringModelProtocol)


class LocalReranker(LocalModel[S]):
    """Scores texts with a model that reads each together with the query."""

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """One probability of relevance for each text, in order. Raises InferenceError."""
        check_texts([query])
        check_texts(texts)
        columns = self._columns(query, texts, instruction)
        return sigmoid_scores(self._loaded().log_odds(columns)) if texts else []

    @cached_property
    def _checkpoint(self) -> ModelFolder:
        return read_checkpoint(self._located[0], max_length=self._max_length)

    @abstractmethod
    def _columns(self, query: str, texts: Sequence[str], instruction: str | None) -> "Columns":
        """The model's inputs for each text, by argument name."""
