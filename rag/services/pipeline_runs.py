"""Run a pipeline: from the question to the last event, with a trace of what it did."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic

from django.conf import settings

from common.errors import InvalidInput
from common.sql import release_connection
from inference.cancellation import Cancelled
from inference.chat_models import chat_model
from inference.interfaces import ChatModel, InferenceError
from rag.answering.citations import CitationScanner
from rag.answering.groundedness import unsupported
from rag.answering.phrases import is_refusal
from rag.context import RagContext
from rag.errors import NoChatModel
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    Metadata,
    NodeProgress,
    Passage,
    Retrieval,
    Token,
    Verdict,
)
from rag.pipelines.definition import Definition, Node
from rag.pipelines.engine import executor
from rag.pipelines.engine.scheduler import (
    EngineEvent,
    NodeCall,
    NodeEnded,
    NodeResult,
    NodeStarted,
    OutputPiece,
    RunFinished,
)
from rag.pipelines.nodes import NODES, search_tools
from rag.pipelines.runtime import RunResources, Verbatim
from rag.services.traces import TraceRecorder
from rag.tools import TOOLS


@dataclass(slots=True)
class PipelineRun:
    """A run, and the state of its answer."""

    definition: Definition
    version: int | None
    question: str
    resources: RunResources
    earlier_documents: tuple[int, ...]
    began: float = field(default_factory=monotonic)
    text: list[str] = field(default_factory=list)
    length: int = 0
    first_token_ms: float | None = None
    reported: set[int] = field(default_factory=set)
    dropped: int = 0
    scanner: CitationScanner | None = None

    @property
    def elapsed_ms(self) -> float:
        return round((monotonic() - self.began) * 1000, 1)


def run_events(run: PipelineRun) -> Iterator[Event]:
    """The events of the run: Metadata, then progress and tokens, and last Done or Failed."""
    context = run.resources.context
    tracing = TraceRecorder.begin(
        context=context,
        definition=run.definition,
        version=run.version,
        question=run.question,
        documents=run.earlier_documents,
    )
    release_connection()

    def run_node(call: NodeCall) -> NodeResult:
        try:
            return NODES[call.node.type](call, run.resources)
        finally:
            release_connection()

    engine_events = executor.run(
        run.definition,
        question=run.question,
        runner=run_node,
        is_cancelled=lambda: context.cancelled.is_set() or tracing.is_cancelled(),
        timeout=settings.RAG_ANSWER_SECONDS,
    )
    try:
        chats = {chat.model_name for chat in run.resources.chats.values() if chat is not None}
        yield Metadata(
            question=run.question,
            model=", ".join(sorted(chats)) or "extractive",
            generator="pipeline",
            pipeline=run.definition.id,
            collections=run.resources.context.collections,
            trace=tracing.id,
        )
        with closing(engine_events):
            for engine_event in engine_events:
                tracing.take(engine_event)
                if not isinstance(engine_event, RunFinished):
                    yield from _progress_events(run, engine_event)
                    continue
                yield from _text_events(run, _flush_scanner(run))
                tracing.finish(engine_event, answer="".join(run.text))
                release_connection()
                yield _final_event(run, engine_event, tracing)
    finally:
        # If the client has gone or an unexpected error occurred, save what was done.
        tracing.abandon(answer="".join(run.text))
        release_connection()


def _progress_events(run: PipelineRun, engine_event: EngineEvent) -> Iterator[Event]:
    match engine_event:
        case NodeStarted(call=call):
            yield NodeProgress(call.node.id, call.node.type, "started", call.iteration)
        case NodeEnded(call=call):
            elapsed = round((engine_event.at - engine_event.started) * 1000, 1)
            if engine_event.result is not None:
                # Passages that this node found first.
                known = run.resources.context.found.by_number
                new = sorted(
                    number
                    for number in engine_event.result.sources
                    if number not in run.reported and number in known
                )
                if new:
                    run.reported.update(new)
                    yield Retrieval(run.question, tuple(known[number] for number in new), elapsed)
            yield NodeProgress(
                call.node.id,
                call.node.type,
                "ended" if engine_event.state == "done" else "failed",
                call.iteration,
                elapsed,
            )
        case OutputPiece(item=item):
            pieces: Iterable[str | Citation] = ()
            if isinstance(item, Verbatim):
                pieces = [*_flush_scanner(run), str(item)]
            elif isinstance(item, str):
                # Passages may have been added since the last piece.
                if run.scanner is None:
                    run.scanner = CitationScanner(_RunPassages(run.resources.context))
                pieces = run.scanner.feed(item)
            elif isinstance(item, Citation):
                pieces = [item]
            yield from _text_events(run, pieces)
        case _:
            pass


def _flush_scanner(run: PipelineRun) -> Iterator[str | Citation]:
    if run.scanner is not None:
        yield from run.scanner.finish()
        run.dropped += run.scanner.dropped
        run.scanner = None


def _text_events(run: PipelineRun, pieces: Iterable[str | Citation]) -> Iterator[Event]:
    for piece in pieces:
        if isinstance(piece, Citation):
            # A citation comes right after its number in the text.
            yield replace(piece, at=run.length - len(f"[{piece.passage.number}]"))
        elif piece:
            if run.first_token_ms is None:
                run.first_token_ms = run.elapsed_ms
            run.text.append(piece)
            run.length += len(piece)
            yield Token(piece)


def _final_event(run: PipelineRun, finished: RunFinished, tracing: TraceRecorder) -> Event:
    if finished.state != "done":
        if run.resources.context.cancelled.is_set():
            raise Cancelled
        return Failed(finished.code, finished.detail, finished.status, tracing.id)
    text = "".join(run.text)
    refused = is_refusal(text)
    passages = run.resources.context.found.passages
    return Done(
        elapsed_ms=run.elapsed_ms,
        first_token_ms=run.first_token_ms,
        input_tokens=tracing.input_tokens,
        output_tokens=tracing.output_tokens,
        finish_reason="refused" if refused else "stop",
        verdict=Verdict(
            refused=refused,
            unsupported=() if refused or not passages else tuple(unsupported(text, passages)),
            dropped_citations=run.dropped,
        ),
        trace=tracing.id,
    )


class _RunPassages(Mapping[int, Passage]):
    """The passages of a run by number; new ones appear as they are found."""

    def __init__(self, context: RagContext) -> None:
        self._found = context.found

    def __getitem__(self, number: int) -> Passage:
        return self._found.by_number[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._found.by_number)

    def __len__(self) -> int:
        return len(self._found.by_number)


def node_model(
    node: Node, definition: Definition, model: str, grounded: frozenset[str]
) -> ChatModel | None:
    """The node's chat model; None if it needs none. Raises NoChatModel and InvalidInput."""
    if node.kind.needs_model == "never":
        return None
    try:
        chat = chat_model(node.model.name or model)
    except InferenceError as error:
        raise InvalidInput(str(error), field="model") from error
    if chat is not None:
        return chat
    tools = [TOOLS[name] for name in node.tools if name in TOOLS]
    finds = node.type == "worker" and search_tools(tools)
    quotes = node.type in ("llm", "synthesizer") and node.id in grounded
    if node.kind.needs_model == "always" or not (finds or quotes):
        raise NoChatModel(f"The step “{node.id}” of the pipeline “{definition.id}”")
    return None
