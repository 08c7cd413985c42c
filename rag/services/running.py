"""A pipeline run: from the question to the last event, with a trace of what it did."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

from django.conf import settings

from common.connections import give_back
from common.errors import InvalidInput
from inference.base import ChatMessage, ChatModel, InferenceError
from inference.cancelling import Cancelled
from inference.routing import chat_model
from rag.answering.citations import CitationScanner
from rag.answering.support import unsupported
from rag.answering.wording import is_refusal
from rag.context import RagContext
from rag.events import Cited, Done, Event, Failed, Metadata, Retrieved, Step, Token, Verdict
from rag.failures import NoChatModel
from rag.passage import Passage
from rag.pipelines import engine
from rag.pipelines.definition import Definition, Node
from rag.pipelines.kit import Kit
from rag.pipelines.limits import MAX_QUESTION_CHARACTERS
from rag.pipelines.nodes import NODES
from rag.pipelines.nodes.working import searches
from rag.pipelines.pieces import Verbatim
from rag.pipelines.structure import Structure, reach, structure_of
from rag.services.asked import checked_language, checked_question
from rag.services.traces import Tracing
from rag.tools import TOOLS


def run_definition(
    definition: Definition,
    question: str,
    *,
    context: RagContext,
    version: int | None = None,
    history: Sequence[ChatMessage] = (),
    model: str = "",
    system_prompt: str = "",
    language: str = "",
    earlier_documents: Sequence[int] = (),
) -> Iterator[Event]:
    """The events of a run: see `rag.services.pipelines.run_pipeline`."""
    context.require("chat")
    if context.collections or context.filter:
        context.search_scope()  # what is not there is said now, not by a tool to a model
    grounded = _grounded(definition, structure_of(definition))
    kit = Kit(
        context=context,
        chats={node.id: _chat(node, definition, model, grounded) for node in definition.nodes},
        history=tuple(history),
        grounded=grounded,
        budget_tokens=settings.RAG_CONTEXT_TOKENS,
        system_prompt=system_prompt,
        language=checked_language(language),
    )
    return _told(
        _Run(
            definition,
            version,
            checked_question(question, most=MAX_QUESTION_CHARACTERS, field="question"),
            kit,
            tuple(earlier_documents),
        )
    )


@dataclass(slots=True)
class _Run:
    """A run, and what of its answer was told so far."""

    definition: Definition
    version: int | None
    question: str
    kit: Kit
    earlier_documents: tuple[int, ...]
    began: float = field(default_factory=monotonic)
    text: list[str] = field(default_factory=list)
    length: int = 0
    first_token_ms: float | None = None
    told: set[int] = field(default_factory=set)
    dropped: int = 0
    scanner: CitationScanner | None = None

    @property
    def elapsed_ms(self) -> float:
        return round((monotonic() - self.began) * 1000, 1)


def _told(run: _Run) -> Iterator[Event]:
    context = run.kit.context
    tracing = Tracing.begin(
        context=context,
        definition=run.definition,
        version=run.version,
        question=run.question,
        documents=run.earlier_documents,
    )
    give_back()
    happenings = engine.run(
        run.definition,
        question=run.question,
        runner=partial(_work, kit=run.kit),
        is_cancelled=lambda: context.cancelled.is_set() or tracing.is_cancelled(),
        timeout=settings.RAG_ANSWER_SECONDS,
    )
    try:
        yield _metadata(run, tracing.id)
        with closing(happenings):
            for happening in happenings:
                tracing.take(happening)
                if not isinstance(happening, engine.Finished):
                    yield from _events(run, happening)
                    continue
                yield from _pieces(run, _rest(run))
                tracing.finish(happening, answer="".join(run.text))
                give_back()
                yield _last(run, happening, tracing)
    finally:
        # The client has gone, or something unforeseen: what was done is kept all the same.
        tracing.abandon(answer="".join(run.text))
        give_back()


def _work(call: engine.NodeCall, *, kit: Kit) -> engine.NodeResult:
    try:
        return NODES[call.node.type](call, kit)
    finally:
        give_back()


def _metadata(run: _Run, trace: int) -> Metadata:
    chats = {chat.model_name for chat in run.kit.chats.values() if chat is not None}
    return Metadata(
        question=run.question,
        model=", ".join(sorted(chats)) or "extractive",
        generator="pipeline",
        pipeline=run.definition.id,
        collections=run.kit.context.collections,
        trace=trace,
    )


def _events(run: _Run, happening: engine.Happening) -> Iterator[Event]:
    match happening:
        case engine.Started(call=call):
            yield Step(call.node.id, call.node.type, "started", call.iteration)
        case engine.Ended(call=call):
            elapsed = round((happening.at - happening.started) * 1000, 1)
            if happening.result is not None:
                yield from _retrieved(run, happening.result, elapsed)
            yield Step(
                call.node.id,
                call.node.type,
                "ended" if happening.state == "done" else "failed",
                call.iteration,
                elapsed,
            )
        case engine.Piece(item=item):
            yield from _pieces(run, _scanned(run, item))
        case _:
            pass


def _retrieved(run: _Run, result: engine.NodeResult, elapsed: float) -> Iterator[Event]:
    """Passages that a node was the first to find."""
    known = run.kit.context.found.by_number
    new = sorted(number for number in result.sources if number not in run.told and number in known)
    if new:
        run.told.update(new)
        yield Retrieved(run.question, tuple(known[number] for number in new), elapsed)


def _scanned(run: _Run, item: object) -> Iterator[str | Cited]:
    """A piece as text and citations. What was found may be more by now than when the last came."""
    if isinstance(item, Cited):
        yield item
    elif isinstance(item, Verbatim):
        yield from _rest(run)
        yield str(item)
    elif isinstance(item, str):
        if run.scanner is None:
            run.scanner = CitationScanner(_Known(run.kit.context))
        yield from run.scanner.feed(item)


def _rest(run: _Run) -> Iterator[str | Cited]:
    if run.scanner is not None:
        yield from run.scanner.finish()
        run.dropped += run.scanner.dropped
        run.scanner = None


def _pieces(run: _Run, pieces: Iterator[str | Cited]) -> Iterator[Event]:
    for piece in pieces:
        if isinstance(piece, Cited):
            # It stands right behind its number in the text.
            yield replace(piece, at=run.length - len(f"[{piece.passage.number}]"))
        elif piece:
            if run.first_token_ms is None:
                run.first_token_ms = run.elapsed_ms
            run.text.append(piece)
            run.length += len(piece)
            yield Token(piece)


def _last(run: _Run, finished: engine.Finished, tracing: Tracing) -> Event:
    if finished.state != "done":
        if run.kit.context.cancelled.is_set():
            raise Cancelled
        return Failed(finished.code, finished.detail, finished.status, tracing.id)
    text = "".join(run.text)
    refused = is_refusal(text)
    passages = run.kit.context.found.passages
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


class _Known(Mapping[int, Passage]):
    """The passages of a run by number: as many as there are when it is asked."""

    def __init__(self, context: RagContext) -> None:
        self._found = context.found

    def __getitem__(self, number: int) -> Passage:
        return self._found.by_number[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._found.by_number)

    def __len__(self) -> int:
        return len(self._found.by_number)


def _grounded(definition: Definition, structure: Structure) -> frozenset[str]:
    """Nodes behind one that looks things up."""
    after = {
        id: [definition.edges[at].target for at in edges]
        for id, edges in structure.outgoing.items()
    }
    found: set[str] = set()
    for node in definition.nodes:
        workers = node.options.get("workers", ())
        if node.tools or node.type == "sql" or any(worker.tools for worker in workers):
            found |= reach(node.id, after) - {node.id}
    return frozenset(found)


def _chat(
    node: Node, definition: Definition, model: str, grounded: frozenset[str]
) -> ChatModel | None:
    """The node's chat model; None where it does without. Raises NoChatModel and InvalidInput."""
    if node.kind.asks == "never":
        return None
    try:
        chat = chat_model(node.model.name or model)
    except InferenceError as error:
        raise InvalidInput(str(error), field="model") from error
    if chat is not None:
        return chat
    tools = [TOOLS[name] for name in node.tools if name in TOOLS]
    finds = node.type == "worker" and searches(tools)
    quotes = node.type in ("llm", "synthesizer") and node.id in grounded
    if node.kind.asks == "always" or not (finds or quotes):
        raise NoChatModel(f"The step “{node.id}” of the pipeline “{definition.id}”")
    return None
