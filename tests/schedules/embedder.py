"""An embedder that can be made slow, or taken away, while it runs, and that tells what it did."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import numpy as np
from numpy.typing import NDArray

from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable

SLOW_SECONDS = 0.3


def state_file() -> Path:
    """Holds “slow” or “down”; without it all is well."""
    return Path(os.environ["RAGSITE_VAR_DIR"]) / "embedder"


def calls_file(state: Path) -> Path:
    """Where the embedder with this state appends a line of JSON a call: the texts it was asked
    for. Nothing is written where it is missing."""
    return state.with_suffix(".calls")


class FaultyEmbedder(HashingEmbedder):
    """The hashing embedder, as well as the file says."""

    def __init__(self, dimensions: int = 384, *, state: str = "") -> None:
        super().__init__(dimensions)
        self._state = Path(state) if state else state_file()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        state = self._state.read_text() if self._state.exists() else ""
        if (calls := calls_file(self._state)).exists():
            with calls.open("a") as file:
                file.write(json.dumps(list(texts)) + "\n")
        if state == "slow":
            Event().wait(SLOW_SECONDS)
        if state == "down":
            raise BackendUnavailable("the embedder was taken away for a test.")
        return super().embed_documents(texts)
