"""A model that embeds, in memory: windows of token ids in, pooled vectors out."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from inference.local.folder import ModelFolder
from inference.local.loading import load_model
from inference.local.placement import Placement
from inference.local.pooling import pool
from inference.local.runner import Batch, Runner
from inference.local.tokens import Window

# Checkpoints trained for other tasks come without it; vectors are pooled from the hidden states.
POOLER = r"pooler\."


class Encoder:
    """Loads on construction; may be called from several threads at once."""

    def __init__(self, folder: ModelFolder, placement: Placement) -> None:
        """Raises BackendUnavailable."""
        self.folder = folder
        self._runner = Runner(placement, pad_id=folder.pad_id, exact=folder.pooling == "lasttoken")
        self._model = load_model(
            AutoModel,
            folder.path,
            device=self._runner.device,
            dtype=self._runner.dtype,
            unread=POOLER,
        )

    def encode(self, windows: Sequence[Window]) -> NDArray[np.float32]:
        """Shape (len(windows), hidden size), in the order given, not normalised."""
        return self._runner.run({"input_ids": windows}, self._pooled, width=self.folder.hidden_size)

    def _pooled(self, batch: Batch) -> torch.Tensor:
        hidden = self._model(**batch).last_hidden_state
        return pool(hidden, batch["attention_mask"], self.folder.pooling)
