"""Pipelines of a workspace and the templates of the site: list, validate, create, update, delete,
and run from the question to the last event, with a trace. Begin with `get_pipeline` and
`run_pipeline`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.formats import number_format
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.services import require_editor
from common.errors import Conflict, InvalidInput, NotFound
from common.sql import release_connection
from common.stored_messages import translated_message
from inference.cancellation import Cancelled
from inference.chat_models import chat_model
from inference.interfaces import ChatMessage, ChatModel, InferenceError
from inference.reasoning import Reasoning
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat
from rag.answering.citations import CitationScanner
from rag.answering.groundedness import unsupported
from rag.answering.model_context import prompt_tokens
from rag.answering.phrases import stated_confidence
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
    ReasoningToken,
    Retrieval,
    Token,
    Verdict,
)
from rag.models import Pipeline
from rag.pipelines import nodes
from rag.pipelines.definition import (
    MAX_QUESTION_CHARACTERS,
    CoordinatorNode,
    Definition,
    Fault,
    Node,
    PipelineError,
    reachable,
    structure_of,
)
from rag.pipelines.engine import executor
from rag.pipelines.engine.scheduler import (
    SINK_SEPARATOR,
    EngineEvent,
    NodeCall,
    NodeEnded,
    NodeResult,
    NodeStarted,
    OutputPiece,
    RunFinished,
)
from rag.pipelines.runtime import RunResources, Verbatim
from rag.pipelines.validation import SiteCapabilities, parse_definition, templates
from rag.services.questions import checked_language, validate_question
from rag.services.tables_node import answer_with_tables
from rag.services.traces import TraceRecorder
from rag.tools import TOOLS


def _sql(call: NodeCall, resources: RunResources) -> NodeResult:
    """A lazy import of `rag.pipelines.sql_node.answer_with_sql`, which loads sqlglot."""
    from rag.pipelines.sql_node import answer_with_sql  # noqa: PLC0415 (sqlglot takes a moment to load)

    return answer_with_sql(call, resources)


#: What each type of node does.
NODES: Mapping[str, Callable[[NodeCall, RunResources], NodeResult]] = {
    "llm": nodes.writer,
    "worker": nodes.worker,
    "router": nodes.router,
    "gate": nodes.gate,
    "aggregator": nodes.aggregator,
    "orchestrator": nodes.orchestrator,
    "evaluator": nodes.evaluator,
    "synthesizer": nodes.writer,
    "coordinator": nodes.coordinator,
    "sql": _sql,
    "tables": answer_with_tables,
}


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
    speaker: str = ""  # the node whose text comes, from offset `spoken_from` of the answer on
    spoken_from: int = 0

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
        case OutputPiece(node=node, item=item):
            if node != run.speaker:
                run.speaker, run.spoken_from = node, run.length
                run.spoken_from += len(SINK_SEPARATOR) if item == SINK_SEPARATOR else 0
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
            elif isinstance(item, Reasoning):
                yield _reasoning_event(run, item)
            yield from _text_events(run, pieces)
        case _:
            pass


def _reasoning_event(run: PipelineRun, piece: Reasoning) -> ReasoningToken:
    """Withdraws what the node that thinks has answered so far, where that was reasoning too."""
    if not piece.withdraws:
        return ReasoningToken(piece.text)
    run.text = ["".join(run.text)[: run.spoken_from]]
    run.length, run.scanner = run.spoken_from, None
    return ReasoningToken(piece.text, withdrawn_from=run.spoken_from)


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
        return Failed(
            finished.code, finished.detail, finished.status, tracing.id, attempt=finished.attempt
        )
    text = "".join(run.text)
    confidence = stated_confidence(text)  # of nodes that quote; a model may refuse as well
    refused = confidence == "none"
    passages = run.resources.context.found.passages
    return Done(
        elapsed_ms=run.elapsed_ms,
        first_token_ms=run.first_token_ms,
        input_tokens=tracing.input_tokens,
        output_tokens=tracing.output_tokens,
        finish_reason="refused" if refused else "stop",
        verdict=Verdict(
            confidence=confidence,
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
    node: Node, definition: Definition, model: str, grounded: frozenset[str], context: RagContext
) -> ChatModel | None:
    """The node's chat model; None if it needs none. Raises NoChatModel and InvalidInput."""
    if node.needs_model == "never":
        return None
    try:
        chat = metered_chat(
            node.model.name or model,
            workspace_id=context.workspace.pk,
            user_id=context.user_id,
            purpose=Purpose.PIPELINE,
        )
    except InferenceError as error:
        raise InvalidInput(translated_message(str(error)), field="model") from error
    if chat is not None:
        return chat
    tools = [TOOLS[name] for name in node.tools if name in TOOLS]
    finds = node.type == "worker" and nodes.search_tools(tools)
    quotes = node.type in ("llm", "synthesizer") and node.id in grounded
    if node.needs_model == "always" or not (finds or quotes):
        raise NoChatModel(
            gettext("The step “{node}” of the pipeline “{pipeline}”").format(
                node=node.id, pipeline=definition.id
            )
        )
    return None


MAX_PIPELINES = 1_000
#: Ids that are paths of the API.
RESERVED_IDS = frozenset({"check"})


class PipelineChanged(Conflict):
    """The pipeline was changed by someone else in the meantime."""

    code = "changed"


def this_site(workspace_id: int | None = None) -> SiteCapabilities:
    """The tools and models that a definition may name on this site, in the workspace."""

    def model_fault(name: str) -> str:
        try:
            chat_model(name, workspace_id=workspace_id)
        except InferenceError as error:
            return translated_message(str(error))
        return ""

    return SiteCapabilities(tools=tuple(TOOLS), model_fault=model_fault)


def list_pipelines(*, context: RagContext) -> list[Pipeline]:
    """All of the workspace by id, then the templates whose id is not taken."""
    own = list(_rows(context))
    taken = {each.slug for each in own}
    return [*own, *(each for each in template_pipelines() if each.slug not in taken)]


def template_pipelines() -> list[Pipeline]:
    """The templates that come with the site."""
    return list(map(_template, templates().values()))


def _template(definition: Definition) -> Pipeline:
    columns = _columns(definition) | {"version": None}
    return Pipeline(**columns)


def get_pipeline(*, context: RagContext, id: str) -> Pipeline:
    """The workspace's pipeline with this id, else the template. Raises NotFound."""
    row: Pipeline | None = _rows(context).filter(slug=id).first() if "\0" not in id else None
    if row is not None:
        return row
    if id in templates():
        return _template(templates()[id])
    known = ", ".join(each.slug for each in list_pipelines(context=context)[:20])
    raise NotFound(
        gettext("The pipeline “{name}” does not exist. Choose from: {known}.").format(
            name=id[:80], known=known
        )
    )


def validate_pipeline(*, definition: Any, workspace_id: int | None = None) -> Definition:
    """Parse a definition for this site and workspace. Raises PipelineError with every fault."""
    return parse_definition(definition, site=this_site(workspace_id))


def _checked(context: RagContext, definition: Any) -> Definition:
    return validate_pipeline(definition=definition, workspace_id=context.workspace.pk)


def run_pipeline(
    pipeline: str | Definition,
    question: str,
    *,
    context: RagContext,
    history: Sequence[ChatMessage] = (),
    model: str = "",
    system_prompt: str = "",
    language: str = "",
    earlier_documents: Sequence[int] = (),
) -> Iterator[Event]:
    """Answer `question` by a pipeline: Metadata, then progress and tokens, and last Done or Failed.
    `pipeline` is the id of one of the workspace's or of a template, or a parsed definition. `model`
    is for nodes that name none. `earlier_documents` are those whose text `history` may contain:
    deleting one clears the trace. Invalid requests raise at once: InvalidInput, NotFound,
    Forbidden, PipelineError, and NoChatModel if a node needs one. Iterating raises Cancelled once
    the context is cancelled."""
    context.require("chat")
    version = None
    if isinstance(pipeline, str):
        row = get_pipeline(context=context, id=pipeline)
        pipeline, version = _checked(context, row.definition), row.version
    if context.collections or context.filter:
        context.search_scope()  # an unknown collection is an error now, and not only in a tool call
    # Ids of the nodes that follow one with tools.
    targets = {
        id: [pipeline.edges[at].target for at in edges]
        for id, edges in structure_of(pipeline).outgoing.items()
    }
    after_tools: set[str] = set()
    for node in pipeline.nodes:
        workers = node.workers if isinstance(node, CoordinatorNode) else ()
        if node.tools or node.type in ("sql", "tables") or any(worker.tools for worker in workers):
            after_tools |= reachable(node.id, targets) - {node.id}
    grounded = frozenset(after_tools)
    chats = {
        node.id: node_model(node, pipeline, model, grounded, context) for node in pipeline.nodes
    }
    if any(chats.values()):
        require_tokens(workspace_id=context.workspace.pk, user_id=context.user_id)
    # A node's prompt has the outputs of others, passages and a conversation, each of a budget.
    shares = [prompt_tokens(chat, most=3 * settings.RAG_CONTEXT_TOKENS) for chat in chats.values()]
    resources = RunResources(
        context=context,
        chats=chats,
        history=tuple(history),
        grounded=grounded,
        budget_tokens=min(shares) // 3,
        system_prompt=system_prompt,
        language=checked_language(language),
    )
    question = validate_question(question, most=MAX_QUESTION_CHARACTERS, field="question")
    documents = tuple(earlier_documents)
    return run_events(PipelineRun(pipeline, version, question, resources, documents))


def create_pipeline(*, context: RagContext, definition: Any) -> Pipeline:
    """Store a new pipeline under its own id, which may be a template's. Raises Forbidden,
    PipelineError, and Conflict if the workspace has one with this id."""
    _require_editor(context)
    checked = _checked(context, definition)
    if checked.id in RESERVED_IDS:
        raise PipelineError([Fault("id", f"“{checked.id}” is taken by the site. Choose another.")])
    if _rows(context).count() >= MAX_PIPELINES:
        raise Conflict(
            gettext("The workspace has {limit} pipelines. Delete some first.").format(
                limit=number_format(MAX_PIPELINES, force_grouping=True)
            )
        )
    try:
        with transaction.atomic():
            row = Pipeline.objects.create(
                workspace=context.workspace, changed_by=context.user, **_columns(checked)
            )
            _audit(Action.MADE, row)
    except IntegrityError as error:
        raise Conflict(
            gettext(
                "A pipeline “{name}” already exists. Change that one, or choose another id."
            ).format(name=checked.id)
        ) from error
    return row


def update_pipeline(
    *, context: RagContext, id: str, definition: Any, version: int | None = None
) -> Pipeline:
    """Replace a pipeline's definition; its id cannot change. `version` is the one the change is
    based on; if it is no longer current, PipelineChanged is raised. An unchanged definition keeps
    its version. Raises Forbidden, NotFound and PipelineError."""
    _require_editor(context)
    checked = _checked(context, definition)
    if checked.id != id:
        message = f"The id stays “{id}”. Make a new pipeline for another one."
        raise PipelineError([Fault("id", message)])
    with transaction.atomic():
        row = _lock_row(context, id, version)
        columns = _columns(checked)
        if any(getattr(row, name) != value for name, value in columns.items()):
            for name, value in columns.items():
                setattr(row, name, value)
            row.version += 1
            row.changed_by = context.user
            row.save()
            _audit(Action.CHANGED, row, version=row.version)
    return row


def delete_pipeline(*, context: RagContext, id: str) -> None:
    """Delete a pipeline; its traces remain. Raises Forbidden and NotFound."""
    _require_editor(context)
    with transaction.atomic():
        row = _lock_row(context, id)
        _audit(Action.DELETED, row)
        row.delete()


def _audit(action: Action, row: Pipeline, **values: int) -> None:
    record_change(
        action=action,
        kind=Kind.PIPELINE,
        workspace_id=row.workspace_id,
        object_id=row.pk,
        values=values,
    )


def _lock_row(context: RagContext, id: str, version: int | None = None) -> Pipeline:
    row: Pipeline | None = None
    if "\0" not in id:
        row = _rows(context).select_for_update(of=("self",)).filter(slug=id).first()
    if row is None:
        if id in templates():
            raise Conflict(
                gettext(
                    "“{name}” is a template and cannot be changed. Save your own"
                    " pipeline with this id."
                ).format(name=id)
            )
        raise NotFound(gettext("There is no pipeline “{name}” here.").format(name=id[:80]))
    if version is not None and version != row.version:
        raise PipelineChanged(
            gettext(
                "“{name}” is now at version {version}, not {expected}. Read it again,"
                " and apply your change to that version."
            ).format(name=id, version=row.version, expected=version)
        )
    return row


def _rows(context: RagContext) -> Any:
    return Pipeline.objects.visible_to(context.user).filter(workspace=context.workspace)


def _require_editor(context: RagContext) -> None:
    context.require("write")
    require_editor(user=context.user, workspace=context.workspace)


def _columns(definition: Definition) -> dict[str, Any]:
    return {
        "slug": definition.id,
        "name": definition.name,
        "description": definition.description,
        "definition": definition.to_json(),
    }
