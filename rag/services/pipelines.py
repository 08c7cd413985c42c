"""Pipelines of a workspace and the templates of the site: list, validate, create, update, delete,
run. Begin with `get_pipeline` and `run_pipeline`."""

from collections.abc import Iterator, Sequence
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.audit import Action, Kind, record_change
from accounts.services import require_editor
from common.errors import Conflict, NotFound
from inference.chat_models import chat_model
from inference.interfaces import ChatMessage, InferenceError
from rag.context import RagContext
from rag.events import Event
from rag.models import Pipeline
from rag.pipelines.definition import (
    MAX_QUESTION_CHARACTERS,
    Definition,
    Fault,
    PipelineError,
    reachable,
    structure_of,
)
from rag.pipelines.runtime import RunResources
from rag.pipelines.validation import SiteCapabilities, parse_definition, templates
from rag.services.answers import checked_language, validate_question
from rag.services.pipeline_runs import PipelineRun, node_model, run_events
from rag.tools import TOOLS

MAX_PIPELINES = 1_000
#: Ids that are paths of the API.
RESERVED_IDS = frozenset({"check"})


class PipelineChanged(Conflict):
    """The pipeline was changed by someone else in the meantime."""

    code = "changed"


def this_site() -> SiteCapabilities:
    """The tools and models that a definition may name on this site."""

    def model_fault(name: str) -> str:
        try:
            chat_model(name)
        except InferenceError as error:
            return str(error)
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
    raise NotFound(f"There is no pipeline “{id[:80]}”. There are: {known}.")


def validate_pipeline(*, definition: Any) -> Definition:
    """Parse a definition for this site. Raises PipelineError with every fault."""
    return parse_definition(definition, site=this_site())


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
        pipeline, version = validate_pipeline(definition=row.definition), row.version
    if context.collections or context.filter:
        context.search_scope()  # an unknown collection is an error now, and not only in a tool call
    # Ids of the nodes that follow one with tools.
    targets = {
        id: [pipeline.edges[at].target for at in edges]
        for id, edges in structure_of(pipeline).outgoing.items()
    }
    after_tools: set[str] = set()
    for node in pipeline.nodes:
        workers = node.options.get("workers", ())
        if node.tools or node.type == "sql" or any(worker.tools for worker in workers):
            after_tools |= reachable(node.id, targets) - {node.id}
    grounded = frozenset(after_tools)
    resources = RunResources(
        context=context,
        chats={node.id: node_model(node, pipeline, model, grounded) for node in pipeline.nodes},
        history=tuple(history),
        grounded=grounded,
        budget_tokens=settings.RAG_CONTEXT_TOKENS,
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
    checked = validate_pipeline(definition=definition)
    if checked.id in RESERVED_IDS:
        raise PipelineError([Fault("id", f"“{checked.id}” is taken by the site. Choose another.")])
    if _rows(context).count() >= MAX_PIPELINES:
        raise Conflict(f"The workspace has {MAX_PIPELINES:,} pipelines. Delete some first.")
    try:
        with transaction.atomic():
            row = Pipeline.objects.create(
                workspace=context.workspace, changed_by=context.user, **_columns(checked)
            )
            _audit(Action.MADE, row)
    except IntegrityError as error:
        raise Conflict(
            f"There is a pipeline “{checked.id}” here. Change that one, or take another id."
        ) from error
    return row


def update_pipeline(
    *, context: RagContext, id: str, definition: Any, version: int | None = None
) -> Pipeline:
    """Replace a pipeline's definition; its id cannot change. `version` is the one the change is
    based on; if it is no longer current, PipelineChanged is raised. An unchanged definition keeps
    its version. Raises Forbidden, NotFound and PipelineError."""
    _require_editor(context)
    checked = validate_pipeline(definition=definition)
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
            raise Conflict(f"“{id}” is a template, which stays. Keep one of this id of your own.")
        raise NotFound(f"There is no pipeline “{id[:80]}” here.")
    if version is not None and version != row.version:
        raise PipelineChanged(
            f"“{id}” is at version {row.version} by now, not {version}. Read it again, and make"
            " your change to that."
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
