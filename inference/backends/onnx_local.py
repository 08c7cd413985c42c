"""Embedders and cross-encoders as ONNX, run in this process by onnxruntime on the CPU. No torch."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from inference.backends.rerank_cross_encoder import PairReranker
from inference.local.bundled import (
    BGE_SMALL_EN,
    BUNDLED,
    MS_MARCO_MINILM,
    BundledModel,
    bundled_folder,
    check_files,
    run_as,
)
from inference.local.embedder import LocalEmbedder
from inference.local.model_folder import ModelFolder, Pooling, read_checkpoint, read_model_folder

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    from inference.local.onnx_models import OnnxCrossEncoder, OnnxEncoder
    from inference.tokens import WindowTokenizer


def _locate(model: str) -> tuple[Path, str, BundledModel | None]:
    """Folder, name and, where it is one, the bundled model. Raises BackendUnavailable."""
    if bundled := BUNDLED.get(model):
        return bundled_folder(bundled), bundled.name, bundled
    return Path(model), Path(model).resolve().name, None


class OnnxEmbedder(LocalEmbedder["OnnxEncoder"]):
    """Runs a folder's `model.onnx` or `onnx/model.onnx`, whose first output is hidden states."""

    def __init__(
        self,
        model: str = BGE_SMALL_EN.name,
        *,
        name: str | None = None,
        threads: int | None = None,
        batch_tokens: int | None = None,
        max_length: int | None = None,
        dimensions: int | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        """`model`: a bundled model's name, or a folder in the layout of sentence-transformers.

        `name`, `max_length`, `dimensions` and `pooling` as of `TransformersEmbedder`; `threads` of
        one forward pass, by default as many as there are cores.
        """
        super().__init__(
            model, name=name, batch_tokens=batch_tokens, threads=threads, max_length=max_length
        )
        self._dimensions = dimensions
        self._pooling = pooling

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return _locate(str(self._source))[:2]

    @cached_property
    def _folder(self) -> ModelFolder:
        path, _, bundled = _locate(str(self._source))
        if bundled is None:
            return read_model_folder(path, pooling=self._pooling, max_length=self._max_length)
        return run_as(bundled, path, max_length=self._max_length)

    @cached_property
    def _tokenizer(self) -> "WindowTokenizer":
        from inference.tokens import WindowTokenizer, load_tokenizer  # noqa: PLC0415

        folder = self._folder
        tokenizer = load_tokenizer(folder.path, lowercase=folder.lowercase)
        return WindowTokenizer(tokenizer, max_length=folder.max_length)

    def _load(self) -> "OnnxEncoder":
        from inference.local.onnx_models import OnnxEncoder  # noqa: PLC0415

        path, _, bundled = _locate(str(self._source))
        if bundled is not None:
            check_files(bundled, path)
        return OnnxEncoder(self._folder, self._placement)


class OnnxReranker(PairReranker["OnnxCrossEncoder"]):
    """A cross-encoder with one output, or with two: not relevant and relevant."""

    def __init__(
        self,
        model: str = MS_MARCO_MINILM.name,
        *,
        name: str | None = None,
        threads: int | None = None,
        batch_tokens: int | None = None,
        max_length: int | None = None,
    ) -> None:
        """`model`: a bundled model's name, or a folder with `model.onnx` and `tokenizer.json`."""
        super().__init__(
            model, name=name, batch_tokens=batch_tokens, threads=threads, max_length=max_length
        )

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return _locate(str(self._source))[:2]

    @cached_property
    def _checkpoint(self) -> ModelFolder:
        path, _, bundled = _locate(str(self._source))
        if bundled is None:
            return read_checkpoint(path, max_length=self._max_length)
        return run_as(bundled, path, max_length=self._max_length)

    def _load(self) -> "OnnxCrossEncoder":
        from inference.local.onnx_models import OnnxCrossEncoder  # noqa: PLC0415

        path, _, bundled = _locate(str(self._source))
        if bundled is not None:
            check_files(bundled, path)
        return OnnxCrossEncoder(self._checkpoint, self._placement)
