"""Models that judge a text, in memory: windows of token ids in, log-odds of relevance out."""

import inspect
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from inference.base import BackendUnavailable
from inference.local.checkpoint import Checkpoint
from inference.local.loading import load_model
from inference.local.placement import Placement
from inference.local.pooling import pool
from inference.local.runner import Batch, Columns, Runner


class Judge(ABC):
    """Loads on construction; may be called from several threads at once."""

    auto_class: Any

    def __init__(self, checkpoint: Checkpoint, placement: Placement) -> None:
        """Raises BackendUnavailable."""
        self._runner = Runner(placement, pad_id=checkpoint.pad_id, exact=True)
        self._model = load_model(
            self.auto_class,
            checkpoint.path,
            device=self._runner.device,
            dtype=self._runner.dtype,
        )

    def log_odds(self, columns: Columns) -> NDArray[np.float32]:
        """Shape (texts,), in the order given."""
        column: NDArray[np.float32] = self._runner.run(columns, self._judged, width=1)[:, 0]
        return column

    @abstractmethod
    def _judged(self, batch: Batch) -> torch.Tensor:
        """Shape (rows, 1)."""


class YesNoJudge(Judge):
    """A causal language model: how much more likely its next word is yes than no."""

    auto_class = AutoModelForCausalLM

    def __init__(
        self, checkpoint: Checkpoint, placement: Placement, *, no_id: int, yes_id: int
    ) -> None:
        super().__init__(checkpoint, placement)
        # The softmax over two logits depends on their difference alone, and that is one product
        # with one vector, instead of 150,000 logits for every token of every text.
        head = self._model.get_output_embeddings()
        no, yes = head.weight[[no_id, yes_id]].detach().float()
        self._direction: torch.Tensor = (yes - no).unsqueeze(1)
        self._model = self._model.base_model

    def _judged(self, batch: Batch) -> torch.Tensor:
        hidden = self._model(**batch).last_hidden_state
        last = pool(hidden, batch["attention_mask"], "lasttoken")
        return last @ self._direction


class PairJudge(Judge):
    """A sequence classifier that reads query and text as a pair."""

    auto_class = AutoModelForSequenceClassification

    def __init__(self, checkpoint: Checkpoint, placement: Placement) -> None:
        super().__init__(checkpoint, placement)
        config = self._model.config
        if config.num_labels > 2:
            raise BackendUnavailable(
                f"{checkpoint.path} sorts texts into {config.num_labels} classes, which is no"
                " score: name a cross-encoder with one label, or with two."
            )
        if config.pad_token_id is None:  # by which decoders find the end of a padded text
            raise BackendUnavailable(
                f"{checkpoint.path}/config.json names no pad_token_id: write its tokenizer's there."
            )
        arguments = inspect.signature(self._model.forward).parameters
        types = "token_type_ids" in arguments and getattr(config, "type_vocab_size", 0) > 1
        self._unread = set() if types else {"token_type_ids"}

    def _judged(self, batch: Batch) -> torch.Tensor:
        read = {name: tensor for name, tensor in batch.items() if name not in self._unread}
        logits: torch.Tensor = self._model(**read).logits.float()
        # Two labels are (not relevant, relevant): the odds of the second are all there is to them.
        return logits[:, -1:] - logits[:, :1] if logits.shape[1] == 2 else logits
