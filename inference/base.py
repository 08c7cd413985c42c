"""What every embedder, reranker and chat model promises, and how each of them fails."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:  # settings are checked at each start, and need neither
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


class InferenceError(Exception):
    """Base of everything that goes wrong in this package."""


class DimensionMismatch(InferenceError):
    """Vectors of one length where another is stored."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            f"expected {expected}, got {actual} dimensions: use the embedder that made the stored"
            " vectors, or re-embed them into a space of the new size."
        )
        self.expected = expected
        self.actual = actual


class EmptyText(InferenceError):
    """A text in which there is nothing to embed."""

    def __init__(self, index: int) -> None:
        super().__init__(f"text {index} is empty or only white space: leave it out.")
        self.index = index


class InvalidVector(InferenceError):
    """A zero, NaN or infinite vector: its cosine is NaN, and NaN sorts first in PostgreSQL."""


class InvalidScore(InferenceError):
    """A reranker's score that is NaN or infinite, by which nothing can be sorted."""


class BackendUnavailable(InferenceError):
    """A configured backend that cannot be imported, loaded or reached."""


class MalformedAnswer(InferenceError):
    """A server that answered something else than it was asked for."""


class EmptyAnswer(InferenceError):
    """A chat model that came to its end without a word."""


class AnswerRefused(InferenceError):
    """A chat model, or the filter before it, that declines to answer."""


class TokenCounter(Protocol):
    """Counts text the way its model will read it; chunkers measure with it."""

    @property
    def max_tokens(self) -> int: ...

    @property
    def tokenizer(self) -> "Tokenizer | None":
        """The tokenizer itself where there is one, without padding or truncation."""

    def count(self, text: str) -> int:
        """Content tokens of `text`; special tokens are not counted."""


class Embedder(Protocol):
    """Turns text into L2-normalised float32 vectors."""

    @property
    def dimensions(self) -> int: ...

    @property
    def model_name(self) -> str: ...

    @property
    def max_tokens(self) -> int:
        """Content tokens (special ones not counted) that fit in one forward pass."""

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Shape (len(texts), dimensions), in the order of `texts`. Raises InferenceError."""

    def embed_query(self, text: str, instruction: str | None = None) -> "NDArray[np.float32]":
        """Shape (dimensions,). `instruction` says what to look for, to models that heed one."""

    # `embed_queries(texts, instruction=None)`, shape (len(texts), dimensions), may be there too:
    # a worker then embeds the queries that wait for it together.

    def token_counter(self) -> TokenCounter: ...


class Reranker(Protocol):
    """Judges how well each text answers a query. It scores; the caller sorts and drops nothing."""

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """One score in 0..1 for each text, in the order of `texts`; higher is better.

        Equal scores mean no opinion: a stable sort keeps the order given. `stored` holds the
        score each text came with, for rerankers that read that instead of the text. `instruction`
        says what makes a text relevant, to models that heed one. Raises InferenceError.
        """


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants called, by an `id` that no other call of its message has.

    `arguments` is what the model wrote, unread: mostly a JSON object.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that an answer took, as the server counted them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation.

    `tool_calls` are an assistant's wishes; `tool_call_id` says which of them a message of the role
    `tool` answers. Of a model's own message, `truncated` says that its end is missing because
    `max_tokens` were used up, and `usage` what it took where the server says so.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    truncated: bool = False
    usage: Usage | None = None

    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"]:
        """Why a model's own message ends. Calls of one that is truncated may be incomplete."""
        if self.truncated:
            return "length"
        return "tool_calls" if self.tool_calls else "stop"


class ChatModel(Protocol):
    """Answers a conversation, whole or piece by piece.

    `tools` describe functions: {"name", "description", "parameters"}, the last a JSON schema.
    `tool_choice` is "auto", "none", "required" (any one) or the name of the tool that must be
    called; it means nothing without tools. `max_tokens` is the longest answer; `temperature`, how
    freely words are chosen, 0 not at all, and `top_p`, among how much of what is probable, 1 all.
    None leaves each to the configuration. `stop` are texts before which the answer ends. `timeout`
    is in seconds and for everything, tries and waits together, to the last word. Within
    `inference.cancelling.cancellation` a call ends before that.
    """

    @property
    def model_name(self) -> str: ...

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        tool_choice: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        timeout: float | None = None,
    ) -> ChatMessage:
        """The assistant's next message: text that is not blank, or tool calls, or both.

        Raises InferenceError, of which EmptyAnswer and AnswerRefused are the model's own doing.
        """

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        tool_choice: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        timeout: float | None = None,
    ) -> Generator[str, None, ChatMessage]:
        """The same answer as pieces of text, as they come; what it returns is the whole message,
        its tool calls too.

        The server is asked when the first piece is. Closing the generator ends the answer. Raises
        as `complete` does, also after some pieces: these are then no answer.
        """
