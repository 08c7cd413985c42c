"""Protocols of embedders, rerankers, token encoders and chat models, their messages and errors."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict, Unpack

from common.errors import ExplainedError
from inference.reasoning import Part

if TYPE_CHECKING:  # settings are checked at each start, and need neither
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


class InferenceError(ExplainedError):
    """Base of all errors of this package."""


class DimensionMismatch(InferenceError):
    """The vectors have another length than the stored ones."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            f"Expected {expected} dimensions, got {actual}. Use the embedder that made the stored"
            " vectors, or re-embed them into a space of the new size."
        )
        self.expected = expected
        self.actual = actual


class EmptyText(InferenceError):
    """A text without content to embed."""

    def __init__(self, index: int) -> None:
        super().__init__(f"Text {index} is empty or only white space. Leave it out.")
        self.index = index


class InvalidVector(InferenceError):
    """A zero, NaN or infinite vector: its cosine is NaN, and NaN sorts first in PostgreSQL."""


class InvalidScore(InferenceError):
    """A reranker's score that is NaN or infinite, by which nothing can be sorted."""


class BackendUnavailable(InferenceError):
    """A configured backend that cannot be imported, loaded or reached."""


class MalformedAnswer(InferenceError):
    """A server's answer is not in the expected form."""


class EmptyAnswer(InferenceError):
    """A chat model ended without any text."""


class AnswerRefused(InferenceError):
    """A chat model, or a filter before it, declined to answer."""


class TokenCounter(Protocol):
    """Counts tokens as the model does; chunkers measure with it."""

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
        """Shape (dimensions,). `instruction` says what to look for, for models that support one."""

    # `embed_queries(texts, instruction=None)`, shape (len(texts), dimensions), may be there too:
    # a worker then embeds the queries that wait for it together. So may `compare(query, texts,
    # instruction=None)`, shape (len(texts), 2), for models that `compares_tokens`: the cosine of
    # each text's vector with the query's, and how well the query's tokens find tokens in it.

    def token_counter(self) -> TokenCounter: ...


class Reranker(Protocol):
    """Scores how well each text answers a query. The caller sorts; nothing is dropped."""

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """One score in 0..1 for each text, in the order of `texts`; higher is better.

        Equal scores mean no preference: a stable sort keeps the order given. `stored` holds the
        score each text came with, for rerankers that use that instead of the text. `instruction`
        says what makes a text relevant, for models that support one. Raises InferenceError.
        """


@dataclass(frozen=True, slots=True)
class TokenStates:
    """A text's tokens as a model reads them, special ones left out, one bit a dimension: 1 where
    the token's hidden state is positive.

    `bits` uint8 (tokens, dimensions / 8), as `numpy.packbits` packs them; `starts` and `ends` int32
    (tokens,), offsets of characters in the text.
    """

    bits: "NDArray[np.uint8]"
    starts: "NDArray[np.int32]"
    ends: "NDArray[np.int32]"


class TokenEncoder(Protocol):
    """Hidden states of single tokens, for late interaction (https://arxiv.org/abs/2004.12832)."""

    @property
    def model_name(self) -> str: ...

    @property
    def dimensions(self) -> int:
        """A multiple of 8."""

    def encode_documents(self, texts: Sequence[str]) -> list[TokenStates]:
        """The tokens of each text, in order. Of a text longer than the model's window its
        beginning, of one without tokens none. Raises InferenceError."""

    def encode_query(self, text: str) -> "NDArray[np.float32]":
        """Shape (tokens, dimensions), each row of length 1. Raises InferenceError, EmptyText for a
        text without tokens."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call requested by the model, with an `id` unique within its message.

    `arguments` is the model's raw text: mostly a JSON object.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of an answer, as the server counted them."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation.

    `tool_calls` are requested by an assistant; `tool_call_id` says which of them a message of role
    `tool` answers. Of a model's own message, `truncated` says that `max_tokens` cut off its end,
    `usage` holds the token counts where the server sends them, and `reasoning` what the model
    thought before `content`: it is shown to people, and sent to no model.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    truncated: bool = False
    usage: Usage | None = None
    reasoning: str = ""

    @property
    def finish_reason(self) -> Literal["stop", "length", "tool_calls"]:
        """Why a model's own message ends. Tool calls of a truncated one may be incomplete."""
        if self.truncated:
            return "length"
        return "tool_calls" if self.tool_calls else "stop"


class ChatOptions(TypedDict, total=False):
    """Optional parameters of a call.

    `tools` describe functions: {"name", "description", "parameters"}, the last a JSON schema.
    `tool_choice` is "auto", "none", "required" (any one) or the name of the tool that must be
    called; it is ignored without tools. `max_tokens` limits the answer; `temperature` and `top_p`
    control sampling; None leaves each to the configuration. `stop` are texts before which the
    answer ends. `timeout` is in seconds for everything, tries and waits included, to the last
    token.
    """

    tools: Sequence[Mapping[str, object]]
    tool_choice: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: Sequence[str]
    timeout: float | None


class ChatModel(Protocol):
    """Answers a conversation, in full or as a stream. Within `inference.cancellation.cancellation`
    a call can end earlier.
    """

    @property
    def model_name(self) -> str: ...

    # `context_tokens` may be there too: tokens of conversation and answer that fit, None where they
    # are unknown. So may `input_price` and `output_price`, of a million tokens read and written.

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        """The assistant's next message: text that is not blank, or tool calls, or both.

        Raises InferenceError; EmptyAnswer and AnswerRefused are caused by the model itself.
        """

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[Part, None, ChatMessage]:
        """The same answer as pieces of text, and of reasoning where the model shows it; returns the
        whole message with its tool calls.

        The server is asked when the first piece is requested. Closing the generator ends the
        answer. Raises as `complete` does, also after some pieces, which are then no valid answer.
        """


def check_texts(texts: Sequence[str]) -> None:
    """Raise EmptyText or InferenceError naming the index of the first text that cannot be
    embedded.
    """
    for index, text in enumerate(texts):
        if not text or text.isspace():
            raise EmptyText(index)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InferenceError(
                f"Text {index} has an unpaired surrogate at {error.start}. Decode its source with"
                " the right encoding."
            ) from error


def replace_surrogates(text: str) -> str:
    """`text` with a question mark for each unpaired surrogate, which cannot be encoded."""
    return text.encode(errors="replace").decode()
