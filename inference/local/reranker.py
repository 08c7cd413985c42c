"""Base of rerankers that run a model in this process."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from inference.interfaces import BackendUnavailable, InvalidScore, check_texts
from inference.local.model_folder import LocalModel, ModelFolder, read_checkpoint, read_json

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

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


class PairReranker(LocalReranker[S]):
    """Reads query and text as one pair. A pair that is too long loses the end of the longer text.
    Instructions are ignored.
    """

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from inference.tokens import load_tokenizer  # noqa: PLC0415

        checkpoint = self._checkpoint
        tokenizer = load_tokenizer(checkpoint.path, lowercase=checkpoint.lowercase)
        special = tokenizer.num_special_tokens_to_add(is_pair=True)
        if checkpoint.max_length < special + 2:
            raise BackendUnavailable(
                f"max_length {checkpoint.max_length} leaves no room for a query and a text beside"
                f" {special} special tokens: raise it."
            )
        tokenizer.enable_truncation(checkpoint.max_length, strategy="longest_first")
        return tokenizer

    @cached_property
    def _has_types(self) -> bool:
        """False where the folder says that the tokenizer does not return token types."""
        config = read_json(self._checkpoint.path / "tokenizer_config.json")
        return "token_type_ids" in config.get("model_input_names", ["token_type_ids"])

    def _columns(self, query: str, texts: Sequence[str], instruction: str | None) -> "Columns":
        encodings = self._tokenizer.encode_batch_fast([(query, text) for text in texts])
        columns = {"input_ids": [encoding.ids for encoding in encodings]}
        if self._has_types:
            columns["token_type_ids"] = [encoding.type_ids for encoding in encodings]
        return columns
