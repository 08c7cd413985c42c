"""Backend for vectors that callers supply, of a model that this site does not run."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inference.interfaces import BackendUnavailable, TokenCounter
from inference.tokens import EstimatedTokens


class GivenVectors:
    """Describes the supplied vectors (dimensions, name). It embeds nothing."""

    def __init__(self, dimensions: int, name: str = "given", max_tokens: int = 510) -> None:
        self.dimensions = dimensions
        self.model_name = name
        self.max_tokens = max_tokens

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise self._refusal()

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        raise self._refusal()

    def token_counter(self) -> TokenCounter:
        return EstimatedTokens(self.max_tokens)

    def _refusal(self) -> BackendUnavailable:
        return BackendUnavailable(
            f"the vectors of {self.model_name} come from outside: give the vector with each text"
            " and each question, or search by words."
        )
