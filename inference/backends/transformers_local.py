"""Any encoder or decoder embedding model, run in this process by torch."""

import os
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inference.base import BackendUnavailable, InferenceError
from inference.local.folder import ModelFolder, Pooling, read_model_folder
from inference.local.locate import locate
from inference.local.tokens import WindowTokenizer, load_tokenizer
from inference.texts import check_texts
from inference.vectors import check_vectors

if TYPE_CHECKING:
    from inference.local.encoder import Encoder


class TransformersEmbedder:
    """Runs a model folder in the sentence-transformers layout as that folder says.

    Nothing is loaded until it is needed: dimensions and token counts read JSON files only, torch
    and the weights come with the first text. Nothing is fetched unless `allow_download` is set.

    A text longer than the model's window is never cut short. It is embedded in consecutive windows
    of `max_tokens`, and its vector is the mean of theirs, weighted by tokens and normalised again.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        name: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
        max_length: int | None = None,
        dimensions: int | None = None,
        pooling: Pooling | None = None,
        allow_download: bool = False,
    ) -> None:
        """`model`: a folder or a hub name; None is the bundled all-MiniLM-L6-v2.

        `name` is what the vectors are filed under, by default the model's own. `max_length`, in
        tokens, and `pooling` override the folder. `dimensions` keeps that many leading ones, for
        Matryoshka models. `device`, `dtype` and `batch_tokens`, the tokens of one forward pass, are
        chosen for this machine where None; `threads` is torch's, for the whole process.
        """
        self._source = model
        self._name = name
        self._max_length = max_length
        self._dimensions = dimensions
        self._pooling = pooling
        self._allow_download = allow_download
        self._device = device
        self._dtype = dtype
        self._batch_tokens = batch_tokens
        self._threads = threads
        self._loading = threading.Lock()
        self._encoder: Encoder | None = None

    @property
    def dimensions(self) -> int:
        whole = self._folder.hidden_size
        kept = self._dimensions or whole
        if kept > whole:
            raise InferenceError(
                f"{self.model_name} has {whole} dimensions: OPTIONS['dimensions'] cannot be {kept}."
            )
        return kept

    @property
    def model_name(self) -> str:
        return self._name or self._located[1]

    @property
    def max_tokens(self) -> int:
        return self._tokenizer.max_tokens

    def token_counter(self) -> WindowTokenizer:
        return self._tokenizer

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        return self._embed(self._folder.prompts.document, texts)

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        """Shape (dimensions,). `instruction` takes the place of the folder's own."""
        prompt = self._folder.prompts.for_query(instruction)
        vector: NDArray[np.float32] = self._embed(prompt, [text])[0]
        return vector

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return locate(self._source, allow_download=self._allow_download)

    @cached_property
    def _folder(self) -> ModelFolder:
        return read_model_folder(
            self._located[0], pooling=self._pooling, max_length=self._max_length
        )

    @cached_property
    def _tokenizer(self) -> WindowTokenizer:
        folder = self._folder
        return WindowTokenizer(
            load_tokenizer(folder.path, lowercase=folder.lowercase),
            max_length=folder.max_length,
        )

    def _embed(self, prompt: str, texts: Sequence[str]) -> NDArray[np.float32]:
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        windows = self._tokenizer.windows([prompt + text for text in texts])
        flat = [window for of_text in windows for window in of_text]
        vectors = _normalised(self._loaded().encode(flat)[:, : self.dimensions])
        if len(flat) > len(texts):
            weights = [self._tokenizer.content_tokens(window) for window in flat]
            vectors = _averaged(vectors, weights, [len(of_text) for of_text in windows])
        return check_vectors(vectors, dimensions=self.dimensions)

    def _loaded(self) -> "Encoder":
        with self._loading:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def _load(self) -> "Encoder":
        # Read when torch is loaded. Threads that spin while they wait take the cores from each
        # other: a query beside a busy worker took 820 ms on two cores, without spinning 32 ms.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            # Torch and transformers take seconds to import, so only whoever embeds pays for them.
            from inference.local.encoder import Encoder  # noqa: PLC0415
        except ImportError as error:
            raise BackendUnavailable(
                f"local models need torch and transformers ({error}): `pip install torch"
                " transformers`, or configure a remote embedder."
            ) from error
        return Encoder(
            self._folder,
            device=self._device,
            dtype=self._dtype,
            batch_tokens=self._batch_tokens,
            threads=self._threads,
        )


def _averaged(
    vectors: NDArray[np.float32], weights: Sequence[int], windows_of_text: Sequence[int]
) -> NDArray[np.float32]:
    """One unit vector a text, of the weighted window vectors that stand in a row for it."""
    weighted = vectors * np.array(weights, dtype=np.float32)[:, None]
    starts = np.cumsum([0, *windows_of_text[:-1]])
    return _normalised(np.add.reduceat(weighted, starts, axis=0))


def _normalised(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A zero vector stays zero, to be refused as such and not as the NaN of a division by zero.
    normalised: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return normalised
