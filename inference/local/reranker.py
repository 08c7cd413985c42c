"""What rerankers that run a model in this process have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inference.local.checkpoint import Checkpoint, read_checkpoint
from inference.local.locate import locate
from inference.local.log_odds import probabilities
from inference.local.once import LoadOnce
from inference.local.placement import Placement
from inference.local.tokens import Window
from inference.texts import check_texts

if TYPE_CHECKING:
    from inference.local.judge import Judge


class LocalReranker(ABC):
    """Reads a folder's JSON files when first asked, and its weights with the first texts."""

    def __init__(
        self,
        model: str,
        *,
        name: str | None,
        placement: Placement,
        max_length: int | None,
        allow_download: bool,
    ) -> None:
        self._source = model
        self._name = name
        self._placement = placement
        self._max_length = max_length
        self._allow_download = allow_download
        self._loaded = LoadOnce(self._load)

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in the memory of this process."""
        return self._loaded.is_loaded

    @property
    def model_name(self) -> str:
        return self._name or self._located[1]

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
        return probabilities(self._loaded().log_odds(columns)) if texts else []

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return locate(self._source, allow_download=self._allow_download)

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        return read_checkpoint(self._located[0], max_length=self._max_length)

    @abstractmethod
    def _columns(
        self, query: str, texts: Sequence[str], instruction: str | None
    ) -> Mapping[str, Sequence[Window]]:
        """What the model reads for each text, by the names of its arguments."""

    @abstractmethod
    def _load(self) -> "Judge": ...
