"""Any encoder or decoder embedding model, run in this process by torch."""

from functools import cached_property
from typing import TYPE_CHECKING

from inference.local.embedder import LocalEmbedder
from inference.local.model_folder import ModelFolder, read_model_folder

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    from inference.local.packed_model import PackedModel
    from inference.local.torch_models import Encoder


class TransformersEmbedder(LocalEmbedder["Encoder"]):
    """Runs a model in the sentence-transformers layout as its configuration says.

    `model`: a folder, a hub name, or `multilingual-e5-small`, which is bundled like
    all-MiniLM-L6-v2, the model for None.
    """

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

    def _load(self) -> "Encoder":
        from inference.local.torch_models import Encoder  # noqa: PLC0415  (imports torch)

        return Encoder(self._folder, self._placement, packed=self._packed)
