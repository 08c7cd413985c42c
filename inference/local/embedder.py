"""Base of embedders that run a model in this process: prompts, windows of long texts, vectors."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

from inference.interfaces import InferenceError, check_texts
from inference.local.model_folder import LazyModel, LocalModel, ModelFolder, Pooling

if TYPE_CHECKING:  # settings are checked at each start, and need none of these
    import numpy as np
    from numpy.typing import NDArray

    from inference.local.packed_model import PackedModel
    from inference.local.unigram import UnigramTokenizer
    from inference.tokens import TextWindows, Window


class EncoderProtocol(Protocol):
    """A model in memory, of torch or of onnxruntime."""

    def encode(self, windows: "Sequence[Window]") -> "NDArray[np.float32]":
        """Shape (len(windows), hidden size), in the order given, not normalised."""

    def compare(
        self,
        query: "Window",
        windows: "Sequence[Window]",
        *,
        dimensions: int,
        query_frame: tuple[int, int],
        frame: tuple[int, int],
    ) -> "NDArray[np.float32]":
        """Shape (len(windows), 2): the cosine of pooled vectors, of their first `dimensions`, and
        MaxSim: the mean, over the query's tokens, of the best cosine with a token of the window.

        The frames say how many tokens before and after are no part of the text: prompt and special
        tokens.
        """


E = TypeVar("E", bound=EncoderProtocol)


class LocalEmbedder(LocalModel[E]):
    """Embeds with a model of this machine, as its folder or its card says.

    A text longer than the model's window is not truncated. It is embedded in consecutive windows of
    `max_tokens`, and its vector is their mean, weighted by tokens and normalised again.
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
        """`name` is what the vectors are filed under, by default the model's own. `max_length`, in
        tokens, and `pooling` override the folder; a window of more than 8192 tokens is used only
        where `max_length` asks for it. `dimensions` keeps that many leading ones, for
        Matryoshka models. `device`, `dtype` and `batch_tokens`, the tokens of one forward pass, are
        chosen for this machine where None; `threads` of torch are those of the whole process.
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

    @property
    @abstractmethod
    def _packed(self) -> "PackedModel | None":
        """The bundled multilingual model, where it is that."""

    @property
    @abstractmethod
    def _folder(self) -> ModelFolder: ...

    @cached_property
    def _tokenizer(self) -> "TextWindows":
        from inference.tokens import WindowTokenizer, load_tokenizer  # noqa: PLC0415

        folder = self._folder
        if self._packed is not None:
            return self._packed.tokenizer(max_length=folder.max_length)
        tokenizer = load_tokenizer(folder.path, lowercase=folder.lowercase)
        return WindowTokenizer(tokenizer, max_length=folder.max_length)

    def release_idle(self, seconds: float) -> bool:
        released = super().release_idle(seconds)
        tokenizer = vars(self).get("_tokenizer")  # which is not made for this
        vocabulary: LazyModel[UnigramTokenizer] | None = getattr(tokenizer, "unigram", None)
        if vocabulary is not None and vocabulary.release_idle(seconds):
            released = True
        if released and self._packed is not None:
            self._packed.release()
        return released

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
    def max_tokens(self) -> int:
        return self._tokenizer.max_tokens

    def token_counter(self) -> "TextWindows":
        return self._tokenizer

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        return self._embed(self._folder.prompts.document, texts)

    def embed_query(self, text: str, instruction: str | None = None) -> "NDArray[np.float32]":
        """Shape (dimensions,). `instruction` takes the place of the folder's own."""
        vector: NDArray[np.float32] = self.embed_queries([text], instruction)[0]
        return vector

    def embed_queries(
        self, texts: Sequence[str], instruction: str | None = None
    ) -> "NDArray[np.float32]":
        """Shape (len(texts), dimensions): several queries under one instruction, in one pass."""
        return self._embed(self._folder.prompts.for_query(instruction), texts)

    @property
    def compares_tokens(self) -> bool:
        """Whether `compare` can be asked: the states of single tokens lie in the space of the whole
        text's vector where that is their mean."""
        return self._folder.pooling == "mean"

    def compare(
        self, query: str, texts: Sequence[str], instruction: str | None = None
    ) -> "NDArray[np.float32]":
        """Shape (len(texts), 2): the cosine of each text's vector with the query's, and their late
        interaction: the mean, over the query's tokens, of the best cosine with a token of the text
        (MaxSim, https://arxiv.org/abs/2004.12832). Of a text that is longer than the model's window
        the beginning is compared. Raises InferenceError."""
        if not self.compares_tokens:
            raise InferenceError(f"{self.model_name} does not compare texts token by token.")
        check_texts([query, *texts])
        prompts = self._folder.prompts.for_query(instruction), self._folder.prompts.document
        [[asked, *_]] = self._tokenizer.windows([prompts[0] + query])
        windows = [first for first, *_ in self._tokenizer.windows([prompts[1] + t for t in texts])]
        before, after = self._tokenizer.special_tokens
        frames = [(before + self._tokenizer.count(prompt.rstrip()), after) for prompt in prompts]
        return self._loaded().compare(
            asked, windows, dimensions=self.dimensions, query_frame=frames[0], frame=frames[1]
        )

    def _embed(self, prompt: str, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np  # noqa: PLC0415

        from inference.vectors import check_vectors, normalized, weighted_means  # noqa: PLC0415

        check_texts(texts)
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        windows = self._tokenizer.windows([prompt + text for text in texts])
        flat = [window for of_text in windows for window in of_text]
        vectors = normalized(self._loaded().encode(flat)[:, : self.dimensions])
        if len(flat) > len(texts):
            weights = [self._tokenizer.content_tokens(window) for window in flat]
            vectors = weighted_means(vectors, weights, [len(of_text) for of_text in windows])
        return check_vectors(vectors, dimensions=self.dimensions)
