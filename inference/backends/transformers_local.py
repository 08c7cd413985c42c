"""Any encoder or decoder embedding model, run in this process by torch."""

from functools import cached_property
from typing import TYPE_CHECKING

from inference.local.embedder import LocalEmbedder
from inference.local.model_folder import ModelFolder, Pooling, read_model_folder

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    from inference.local.packed_model import PackedModel
    from inference.local.torch_models import Encoder
    from inference.tokens import TextWindows


class TransformersEmbedder(LocalEmbedder["Encoder"]):
    """Runs a model folder in the sentence-transformers layout as its configuration says."""

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
        """`model`: a folder, a hub name, or `multilingual-e5-small`, which is bundled like
        all-MiniLM-L6-v2, the model for None.

        `name` is what the vectors are filed under, by default the model's own. `max_length`, in
        tokens, and `pooling` override the folder; a window of more than 8192 tokens is used only
        where `max_length` asks for it. `dimensions` keeps that many leading ones, for
        Matryoshka models. `device`, `dtype` and `batch_tokens`, the tokens of one forward pass, are
        chosen for this machine where None; `threads` is torch's, for the whole process.
        """
        super().__init__(
            model,
            name=name,
            device=device,
            dtype=dtype,
            batch_tokens=batch_tokens,
            threads=threads,
            max_length=max_length,
            allow_download=allow_download,
        )
        self._dimensions = dimensions
        self._pooling = pooling

    @cached_property
    def _packed(self) -> "PackedModel | None":
        """The bundled multilingual model, where it is that."""
        path = self._located[0]
        if path.is_dir():
            return None
        from inference.local.packed_model import PackedModel  # noqa: PLC0415

        return PackedModel(path)

    @cached_property
    def _folder(self) -> ModelFolder:
        if self._packed is not None:
            return self._packed.folder(max_length=self._max_length)
        return read_model_folder(
            self._located[0], pooling=self._pooling, max_length=self._max_length
        )

    @cached_property
    def _tokenizer(self) -> "TextWindows":
        from inference.tokens import WindowTokenizer, load_tokenizer  # noqa: PLC0415

        folder = self._folder
        if self._packed is not None:
            return self._packed.tokenizer(max_length=folder.max_length)
        tokenizer = load_tokenizer(folder.path, lowercase=folder.lowercase)
        return WindowTokenizer(tokenizer, max_length=folder.max_length)

    def _load(self) -> "Encoder":
        from inference.local.torch_models import Encoder  # noqa: PLC0415  (imports torch)

        return Encoder(self._folder, self._placement, packed=self._packed)
