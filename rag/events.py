"""Events of an answer in the order a client receives them, and the passages they carry.
Begin with `Event`. Without Django.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

from reading.location import location
from reading.sections import heading_line


@dataclass(frozen=True, slots=True)
class Passage:
    """A search hit as an answer cites it: `[number]`. `text` is the document's text from `start` to
    `end`, offsets in characters. `url` is the page that shows it in context. Scores are those of
    the hit, each None if no retrieval arm gave one. `relevance` is how well it suits an answer
    (`rag.answering.passage_ranking`), None where that was not compared; so is `coverage`, the share
    (0..1) of the question's terms that it holds, and `answer_score`, what its sentences share."""

    number: int
    chunk_id: int
    document_id: int
    document_key: str
    version: int
    collection_slug: str
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    text: str
    start: int
    end: int
    url: str
    language: str
    rank: int
    similarity: float | None
    lexical: float | None
    fused: float
    rerank: float | None
    media_type: str = ""
    page_label: str = ""
    relevance: float | None = None
    coverage: float | None = None
    answer_score: float = 0.0

    def location(self, start: int | None = None) -> str:
        """Where the passage is, or the character at `start`, an offset in the document's text:
        `page 3`, `12:34` of a recording, `Prices!A12`."""
        return location(
            self.media_type,
            self.page,
            heading_path=self.heading_path,
            text=self.text,
            at=max(start - self.start, 0) if start is not None else 0,
            label=self.page_label,
        )

    def is_foreign_to(self, language: str) -> bool:
        """Whether it is in another language than this one, if both are known."""
        return bool(language and self.language) and language != self.language[:2].lower()

    @property
    def heading(self) -> str:
        """Title and headings on one line."""
        return heading_line(self.title, self.heading_path)


GeneratorKind = Literal["extractive", "computed", "model", "pipeline"]
FinishReason = Literal["stop", "length", "refused", "tool_calls"]
#: How sure it is that the documents answer: `high` is quoted as the answer, `low` with the remark
#: that it may be none, `none` is refused.
Confidence = Literal["high", "low", "none"]


@dataclass(frozen=True, slots=True)
class InjectedMemory:
    """The user's memory that was used: facts as (key, value), context as (day, user message)."""

    facts: tuple[tuple[str, str], ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    tokens: int = 0

    def data(self) -> dict[str, Any]:
        return {
            "facts": [{"key": key, "value": value} for key, value in self.facts],
            "context": [{"said_on": day, "user_message": text} for day, text in self.context],
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The first event: who answers. `memory` is None if none was requested."""

    name: ClassVar[str] = "metadata"

    conversation: int | None = None
    message: int | None = None
    question: str
    model: str
    generator: GeneratorKind
    pipeline: str | None = None
    collections: tuple[str, ...] = ()
    memory: InjectedMemory | None = None
    trace: int | None = None

    def data(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "collections": list(self.collections),
            "memory": self.memory.data() if self.memory else None,
        }


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages found for `query`, which may be a rewritten question. `confidence` says how sure it
    is that they answer it, `missing` which names and numbers of it none of them mentions.
    `degraded` names parts of the search that failed."""

    name: ClassVar[str] = "retrieval"

    query: str
    passages: tuple[Passage, ...]
    elapsed_ms: float
    degraded: tuple[str, ...] = ()
    confidence: Confidence = "high"
    missing: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return self.confidence == "none"

    def data(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "passages": [passage_data(passage) for passage in self.passages],
            "degraded": list(self.degraded),
            "confidence": self.confidence,
            "refused": self.refused,
            "missing": list(self.missing),
            "elapsed_ms": self.elapsed_ms,
        }


@dataclass(frozen=True, slots=True)
class Tables:
    """What the tables in documents have to do with the question: `computed` is the answer itself,
    as `rag.services.table_answers` makes it. Where it is not sure what is asked, `readings` are at
    most two ways to read it, each with its `text` and a `reading` to send back, and `unknown` the
    words that were not understood; `text` says both. `documents` are ids of all whose text is in
    it."""

    name: ClassVar[str] = "tables"

    computed: Mapping[str, Any] | None = None
    readings: tuple[Mapping[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    text: str = ""
    documents: tuple[int, ...] = ()

    def data(self) -> dict[str, Any]:
        return {
            "computed": self.computed,
            "readings": list(self.readings),
            "unknown": list(self.unknown),
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class NodeProgress:
    """A node of a pipeline started, ended or failed."""

    name: ClassVar[str] = "node"

    id: str
    type: str
    state: Literal["started", "ended", "failed"]
    iteration: int = 1
    elapsed_ms: float | None = None

    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the answer's text; all of them concatenated are the answer."""

    name: ClassVar[str] = "token"

    text: str

    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ReasoningToken:
    """A piece of what the model thinks before it answers, which is no part of the answer. With
    `withdrawn_from` the answer's text from this offset on, with its citations, was reasoning too;
    `text` repeats it."""

    name: ClassVar[str] = "reasoning"

    text: str
    withdrawn_from: int | None = None

    def data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Citation:
    """`[number]` is in the answer at offset `at`. `start` and `end` are offsets in the document's
    text: of `quote`, or of the whole passage if the answer paraphrases it."""

    name: ClassVar[str] = "citation"

    passage: Passage
    at: int
    start: int
    end: int
    quote: str

    def data(self) -> dict[str, Any]:
        return {
            **_passage_location(self.passage),
            "location": self.passage.location(self.start),
            "start": self.start,
            "end": self.end,
            "quote": self.quote,
            "at": self.at,
        }


@dataclass(frozen=True, slots=True)
class SearchedScope:
    """What was searched before a refusal: `collections` by slug, with their names, and how many
    `documents` they have. `is_filtered` and `is_limited`: a filter or a choice of collections
    narrowed the search."""

    collections: Mapping[str, str]
    documents: int
    is_filtered: bool = False
    is_limited: bool = False

    def data(self) -> dict[str, Any]:
        return {
            "collections": list(self.collections),
            "documents": self.documents,
            "filtered": self.is_filtered,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of checking the answer: how sure it is (`none` is a refusal), sentences without
    support (`text`, with its offsets `start` and `end` in the answer), how many citations of
    unknown passages were removed, and what was searched, where nothing was found that answers."""

    confidence: Confidence = "high"
    unsupported: tuple[Mapping[str, Any], ...] = ()
    dropped_citations: int = 0
    searched: SearchedScope | None = None

    @property
    def refused(self) -> bool:
        return self.confidence == "none"

    def data(self) -> dict[str, Any]:
        return {
            "confidence": self.confidence,
            "refused": self.refused,
            "unsupported": list(self.unsupported),
            "dropped_citations": self.dropped_citations,
            "searched": self.searched.data() if self.searched else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The answer is complete. Token counts are the model server's, 0 if it does not count."""

    name: ClassVar[str] = "done"

    input_tokens: int = 0
    output_tokens: int = 0
    elapsed_ms: float
    first_token_ms: float | None = None
    finish_reason: FinishReason = "stop"
    verdict: Verdict = field(default_factory=Verdict)
    trace: int | None = None
    message: int | None = None

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict.data()}


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer failed: what was sent so far is not an answer. `status` is the HTTP status.
    `attempt` is of that what is to be read beside the error."""

    name: ClassVar[str] = "error"

    code: str
    detail: str
    status: int = 500
    trace: int | None = None
    attempt: str = ""

    def data(self) -> dict[str, Any]:
        return {"code": self.code, "detail": self.detail}


Event = (
    Metadata | Retrieval | Tables | NodeProgress | Token | ReasoningToken | Citation | Done | Failed
)


def passage_data(passage: Passage) -> dict[str, Any]:
    return {
        **_passage_location(passage),
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "similarity": passage.similarity,
        "lexical": passage.lexical,
        "fused": passage.fused,
        "rerank": passage.rerank,
    }


def _passage_location(passage: Passage) -> dict[str, Any]:
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
        "location": passage.location(),
        "url": str(passage.url),  # may be lazy
    }


def without_withdrawn(events: Iterable[Event]) -> list[Event]:
    """The events without the text and the citations that later ones withdraw."""
    kept: list[Event] = []
    length = 0
    for event in events:
        if isinstance(event, ReasoningToken) and (start := event.withdrawn_from) is not None:
            earlier, kept, length = kept, [], 0
            for each in earlier:
                if isinstance(each, Token):
                    each = Token(each.text[: max(start - length, 0)])  # noqa: PLW2901
                    length += len(each.text)
                if not (isinstance(each, Citation) and each.at >= start):
                    kept.append(each)
        if isinstance(event, Token):
            length += len(event.text)
        kept.append(event)
    return kept


def answer_text(events: Sequence[Event]) -> str:
    """The answer's text in these events, none of which is withdrawn."""
    return "".join(event.text for event in events if isinstance(event, Token))


def reasoning_text(events: Sequence[Event]) -> str:
    """What the model thought."""
    return "".join(event.text for event in events if isinstance(event, ReasoningToken))


def event_json(event: Event) -> Mapping[str, Any]:
    """An event with its name, for logs and tests."""
    return {"event": event.name, **event.data()}
