"""What happens while an answer is made, in the order in which a client is told."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from rag.passage import Passage

Generator = Literal["extractive", "model", "pipeline"]
Finish = Literal["stop", "length", "refused", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What of the user's memory was put before the model: facts as (key, value), context as (day,
    what the user said)."""

    facts: tuple[tuple[str, str], ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    tokens: int = 0

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "facts": [{"key": key, "value": value} for key, value in self.facts],
            "context": [{"said_on": day, "user_message": said} for day, said in self.context],
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True)
class Metadata:
    """The first event: what answers. `memory` is None where none was asked for."""

    name: ClassVar[str] = "metadata"

    question: str
    model: str
    generator: Generator
    pipeline: str | None = None
    collections: tuple[str, ...] = ()
    memory: Remembered | None = None
    conversation: int | None = None
    message: int | None = None
    trace: int | None = None

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "conversation": self.conversation,
            "message": self.message,
            "question": self.question,
            "model": self.model,
            "generator": self.generator,
            "pipeline": self.pipeline,
            "collections": list(self.collections),
            "memory": self.memory.data() if self.memory else None,
            "trace": self.trace,
        }


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Passages that were found for `query`, which may be the question in other words.

    `refused` says that none of them answers it. `degraded` names what of the search did not work.
    """

    name: ClassVar[str] = "retrieval"

    query: str
    passages: tuple[Passage, ...]
    elapsed_ms: float
    degraded: tuple[str, ...] = ()
    refused: bool = False

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "query": self.query,
            "passages": [passage_data(passage) for passage in self.passages],
            "degraded": list(self.degraded),
            "refused": self.refused,
            "elapsed_ms": self.elapsed_ms,
        }


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a pipeline began or came to its end."""

    name: ClassVar[str] = "node"

    id: str
    type: str
    state: Literal["started", "ended", "failed"]
    iteration: int = 1
    elapsed_ms: float | None = None

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer's text. All of them, one behind the other, are the answer."""

    name: ClassVar[str] = "token"

    text: str

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"text": self.text}


@dataclass(frozen=True, slots=True)
class Cited:
    """`[number]` stands in the answer at `at`, an offset in its text.

    `start` and `end` are offsets in the document's text: of `quote`, which is what was quoted, or
    the passage where the answer says it in words of its own.
    """

    name: ClassVar[str] = "citation"

    passage: Passage
    at: int
    start: int
    end: int
    quote: str

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            **_place(self.passage),
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A sentence of the answer, by offsets in its text, for which nothing in the sources speaks."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the validator found: whether the answer says that the sources do not hold one, sentences
    without support, and how many citations of nothing were taken out."""

    refused: bool = False
    unsupported: tuple[Unsupported, ...] = ()
    dropped_citations: int = 0

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "refused": self.refused,
            "unsupported": [asdict(sentence) for sentence in self.unsupported],
            "dropped_citations": self.dropped_citations,
        }


@dataclass(frozen=True, slots=True)
class Done:
    """The answer is complete. Tokens are as the model's server counts them, 0 where it does not."""

    name: ClassVar[str] = "done"

    elapsed_ms: float
    first_token_ms: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: Finish = "stop"
    verdict: Verdict = field(default_factory=Verdict)
    trace: int | None = None
    message: int | None = None

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "elapsed_ms": self.elapsed_ms,
            "first_token_ms": self.first_token_ms,
            "finish_reason": self.finish_reason,
            "verdict": self.verdict.data(),
            "trace": self.trace,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Failed:
    """It came to no end: what was sent so far is no answer. `status` is what HTTP calls it."""

    name: ClassVar[str] = "error"

    code: str
    detail: str
    status: int = 500
    trace: int | None = None

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"code": self.code, "detail": self.detail}


Event = Metadata | Retrieved | Step | Token | Cited | Done | Failed


def passage_data(passage: Passage) -> dict[str, Any]:
    """A passage as JSON."""
    return {
        **_place(passage),
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "similarity": passage.similarity,
        "lexical": passage.lexical,
        "fused": passage.fused,
        "rerank": passage.rerank,
    }


def _place(passage: Passage) -> dict[str, Any]:
    return {
        "number": passage.number,
        "chunk": passage.chunk_id,
        "document": passage.document_id,
        "document_key": passage.document_key,
        "version": passage.version,
        "collection": passage.collection_slug,
        "title": passage.title,
        "heading_path": list(passage.heading_path),
        "page": passage.page,
        "url": str(passage.url),  # may be lazy
    }


def text_of(events: Sequence[Event]) -> str:
    """The answer that these events tell."""
    return "".join(event.text for event in events if isinstance(event, Token))


def as_json(event: Event) -> Mapping[str, Any]:
    """An event with its name, for logs and tests."""
    return {"event": event.name, **event.data()}
