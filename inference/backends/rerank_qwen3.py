"""Qwen3-Reranker: a language model that answers yes or no for each text."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from inference.interfaces import BackendUnavailable
from inference.local.reranker import LocalReranker
from inference.tokens import Window, load_tokenizer

if TYPE_CHECKING:
    from inference.local.torch_models import YesNoScorer

# To the letter as in the model card, https://huggingface.co/Qwen/Qwen3-Reranker-0.6B: the model
# was trained on these words and spaces.
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and"
    ' the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
BODY = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {text}"
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"


class Qwen3Reranker(LocalReranker["YesNoScorer"]):
    """The probability of yes against no as the next token after query and text.

    A text that is too long is truncated. Nothing is downloaded unless `allow_download`.
    """

    def __init__(
        self,
        model: str = "Qwen/Qwen3-Reranker-0.6B",
        *,
        name: str | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
        max_length: int | None = None,
        instruction: str = INSTRUCTION,
        allow_download: bool = False,
    ) -> None:
        """`model`: a folder or a hub name. `instruction` says what makes a text relevant.

        `max_length` counts all tokens of one judgement, by default 8192 or what the model reads
        if that is less. `device`, `dtype` and `batch_tokens`, the tokens of one forward pass, are
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
        self._instruction = instruction

    @cached_property
    def _prompt(self) -> "Prompt":
        checkpoint = self._checkpoint
        tokenizer = load_tokenizer(checkpoint.path, lowercase=checkpoint.lowercase)
        return Prompt(tokenizer, max_length=checkpoint.max_length)

    def _columns(
        self, query: str, texts: Sequence[str], instruction: str | None
    ) -> Mapping[str, Sequence[Window]]:
        instruction = instruction or self._instruction
        bodies = [BODY.format(instruction=instruction, query=query, text=text) for text in texts]
        return {"input_ids": self._prompt.windows(bodies)}

    def _load(self) -> "YesNoScorer":
        from inference.local.torch_models import YesNoScorer  # noqa: PLC0415  (imports torch)

        prompt = self._prompt
        return YesNoScorer(
            self._checkpoint, self._placement, no_id=prompt.no_id, yes_id=prompt.yes_id
        )


class Prompt:
    """Bodies between prefix and suffix, as token ids."""

    def __init__(self, tokenizer: Tokenizer, *, max_length: int) -> None:
        self.no_id = _word_id(tokenizer, "no")
        self.yes_id = _word_id(tokenizer, "yes")
        self._prefix = tokenizer.encode(PREFIX, add_special_tokens=False).ids
        self._suffix = tokenizer.encode(SUFFIX, add_special_tokens=False).ids
        self._room = max_length - len(self._prefix) - len(self._suffix)
        if self._room < 1:
            raise BackendUnavailable(
                f"max_length {max_length} leaves no room beside the prompt of"
                f" {max_length - self._room} tokens: raise it."
            )
        # From here on a text that spells <|im_end|> is read as these letters. Otherwise a document
        # could close its turn and answer in the model's place.
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def windows(self, bodies: Sequence[str]) -> list[Window]:
        encodings = self._tokenizer.encode_batch_fast(list(bodies), add_special_tokens=False)
        return [self._prefix + encoding.ids[: self._room] + self._suffix for encoding in encodings]


def _word_id(tokenizer: Tokenizer, word: str) -> int:
    number: int | None = tokenizer.token_to_id(word)
    if number is None:
        raise BackendUnavailable(
            f"the tokenizer has no token {word!r}, so its model cannot answer yes or no: name a"
            " Qwen3-Reranker, or use the cross-encoder backend."
        )
    return number
