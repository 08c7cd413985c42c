"""Any cross-encoder: a classifier that reads query and text together."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import read_json
from inference.local.reranker import LocalReranker, S

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    from tokenizers import Tokenizer

    from inference.local.batches import Columns
    from inference.local.torch_models import CrossEncoder


class PairReranker(LocalReranker[S]):
    """Reads query and text as one pair. A pair that is too long loses the end of the longer text.
    Instructions are ignored.
    """

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from inference.tokens import load_tokenizer  # noqa: PLC0415

        checkpoint = self._checkpoint
        tokenizer = load_tokenizer(checkpoint.path, lowercase=checkpoint.lowercase)
        special = tokenizer.num_special_tokens_to_add(is_pair=True)
        if checkpoint.max_length < special + 2:
            raise BackendUnavailable(
                f"max_length {checkpoint.max_length} leaves no room for a query and a text beside"
                f" {special} special tokens: raise it."
            )
        tokenizer.enable_truncation(checkpoint.max_length, strategy="longest_first")
        return tokenizer

    @cached_property
    def _has_types(self) -> bool:
        """False where the folder says that the tokenizer does not return token types."""
        config = read_json(self._checkpoint.path / "tokenizer_config.json")
        return "token_type_ids" in config.get("model_input_names", ["token_type_ids"])

    def _columns(self, query: str, texts: Sequence[str], instruction: str | None) -> "Columns":
        encodings = self._tokenizer.encode_batch_fast([(query, text) for text in texts])
        columns = {"input_ids": [encoding.ids for encoding in encodings]}
        if self._has_types:
            columns["token_type_ids"] = [encoding.type_ids for encoding in encodings]
        return columns


class CrossEncoderReranker(PairReranker["CrossEncoder"]):
    """A sequence classifier with one label, or with two: not relevant and relevant."""

    def _load(self) -> "CrossEncoder":
        from inference.local.torch_models import CrossEncoder  # noqa: PLC0415  (imports torch)

        return CrossEncoder(self._checkpoint, self._placement)
