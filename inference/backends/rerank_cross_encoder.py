"""Any cross-encoder: a classifier that reads query and text together."""

from typing import TYPE_CHECKING

from inference.local.reranker import PairReranker

if TYPE_CHECKING:
    from inference.local.torch_models import CrossEncoder


class CrossEncoderReranker(PairReranker["CrossEncoder"]):
    """A sequence classifier with one label, or with two: not relevant and relevant."""

    def _load(self) -> "CrossEncoder":
        from inference.local.torch_models import CrossEncoder  # noqa: PLC0415  (imports torch)

        return CrossEncoder(self._checkpoint, self._placement)
