"""Pipelines that a workspace keeps, and templates, which every workspace has."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.history import Action, Kind, note_change
from accounts.services import require_editor
from common.errors import Conflict, NotFound
from inference.base import ChatMessage, InferenceError
from inference.routing import chat_model
from rag.context import RagContext
from rag.events import Event
from rag.models import Pipeline
from rag.pipelines.definition import Definition
from rag.pipelines.faults import Fault, PipelineError
from rag.pipelines.parsing import Site, parse
from rag.pipelines.shipped import templates
from rag.services.running import run_definition
from rag.tools import TOOLS

__all__ = [
    "Changed",
    "Kept",
    "create_pipeline",
    "delete_pipeline",
    "get_pipeline",
    "list_pipelines",
    "run_pipeline",
    "template_pipelines",
    "update_pipeline",
    "validate_pipeline",
]

MAX_PIPELINES = 1_000
#: Ids that are addresses of the API already.
RESERVED = frozenset({"check"})


class Changed(Conflict):
    """Somebody else changed it in the meantime."""

    code = "changed"


@dataclass(frozen=True, slots=True)
class Kept:
    """A pipeline as it is listed. A template has no version, and nobody changed it."""

    id: str
    name: str
    description: str
    definition: Mapping[str, Any]
    is_template: bool
    version: int | None = None
    updated_at: datetime | None = None

    @property
    def checked(self) -> Definition:
        """What it does. Raises PipelineError for one that can be run no more."""
        return parse(self.definition, site=site())


def site() -> Site:
    """What a definition may name here."""
    return Site(tools=tuple(TOOLS), model_fault=_model_fault)


def list_pipelines(*, context: RagContext) -> list[Kept]:
    """All of the workspace's by id, then the templates that none of them stands before."""
    own = [_kept(row) for row in _rows(context)]
    taken = {each.id for each in own}
    return [*own, *(each for each in template_pipelines() if each.id not in taken)]


def template_pipelines() -> list[Kept]:
    """Those that come with the site."""
    return [_template(each) for each in templates().values()]


def get_pipeline(*, context: RagContext, id: str) -> Kept:
    """The workspace's pipeline of this id, else the template. Raises NotFound."""
    row = _rows(context).filter(slug=id).first() if "\0" not in id else None
    if row is not None:
        return _kept(row)
    if id in templates():
        return _template(templates()[id])
    known = ", ".join(each.id for each in list_pipelines(context=context)[:20])
    raise NotFound(f"There is no pipeline “{id[:80]}”. There are: {known}.")


def validate_pipeline(*, definition: Any) -> Definition:
    """What a definition says, checked against this site. Raises PipelineError with every fault."""
    return parse(definition, site=site())


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
    """Answer `question` by a pipeline: Metadata, then what happens, and last Done or Failed.

    `pipeline` is the id of one of the workspace's or of a template, or a definition that was
    checked. `model` is for nodes that name none. `system_prompt` and `language` (`German`, `de`; of
    code `Python`) are put behind the prompts of the nodes that write or judge the answer.
    `earlier_documents` are those whose text `history` may hold: with them goes what is kept of the
    run.

    What cannot be is raised at once: InvalidInput, NotFound, Forbidden, PipelineError, and
    NoChatModel where a node cannot do without one. Iterating raises Cancelled once the context is
    cancelled.
    """
    context.require("chat")
    version = None
    if isinstance(pipeline, str):
        kept = get_pipeline(context=context, id=pipeline)
        pipeline, version = kept.checked, kept.version
    return run_definition(
        pipeline,
        question,
        context=context,
        version=version,
        history=history,
        model=model,
        system_prompt=system_prompt,
        language=language,
        earlier_documents=earlier_documents,
    )


def create_pipeline(*, context: RagContext, definition: Any) -> Kept:
    """Keep a new pipeline under its own id, which may be a template's.

    Raises Forbidden, PipelineError, and Conflict where the workspace has one of this id.
    """
    _require_editor(context)
    checked = validate_pipeline(definition=definition)
    if checked.id in RESERVED:
        raise PipelineError([Fault("id", f"“{checked.id}” is taken by the site. Choose another.")])
    if _rows(context).count() >= MAX_PIPELINES:
        raise Conflict(f"The workspace has {MAX_PIPELINES:,} pipelines. Delete some first.")
    try:
        with transaction.atomic():
            row = Pipeline.objects.create(
                workspace=context.workspace, changed_by=context.user, **_columns(checked)
            )
            _note(Action.MADE, row)
    except IntegrityError as error:
        raise Conflict(
            f"There is a pipeline “{checked.id}” here. Change that one, or take another id."
        ) from error
    return _kept(row)


def update_pipeline(
    *, context: RagContext, id: str, definition: Any, version: int | None = None
) -> Kept:
    """Put a definition in the place of the one kept under this id, which stays.

    `version` is the one that the change was made from; where it is not the current one any more,
    Changed is raised. What is the same stays the same version. Raises Forbidden, NotFound and
    PipelineError.
    """
    _require_editor(context)
    checked = validate_pipeline(definition=definition)
    if checked.id != id:
        message = f"The id stays “{id}”. Make a new pipeline for another one."
        raise PipelineError([Fault("id", message)])
    with transaction.atomic():
        row = _locked(context, id, version)
        columns = _columns(checked)
        if any(getattr(row, name) != value for name, value in columns.items()):
            for name, value in columns.items():
                setattr(row, name, value)
            row.version += 1
            row.changed_by = context.user
            row.save()
            _note(Action.CHANGED, row, version=row.version)
    return _kept(row)


def delete_pipeline(*, context: RagContext, id: str, version: int | None = None) -> None:
    """Remove a pipeline; its traces stay. Raises Forbidden, NotFound and Changed."""
    _require_editor(context)
    with transaction.atomic():
        row = _locked(context, id, version)
        _note(Action.DELETED, row)
        row.delete()


def _note(action: Action, row: Pipeline, **values: int) -> None:
    note_change(
        action=action,
        kind=Kind.PIPELINE,
        workspace_id=row.workspace_id,
        thing=row.pk,
        values=values,
    )


def _locked(context: RagContext, id: str, version: int | None) -> Pipeline:
    row: Pipeline | None = None
    if "\0" not in id:
        row = _rows(context).select_for_update(of=("self",)).filter(slug=id).first()
    if row is None:
        if id in templates():
            raise Conflict(f"“{id}” is a template, which stays. Keep one of this id of your own.")
        raise NotFound(f"There is no pipeline “{id[:80]}” here.")
    if version is not None and version != row.version:
        raise Changed(
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


def _kept(row: Pipeline) -> Kept:
    return Kept(
        id=row.slug,
        name=row.name,
        description=row.description,
        definition=row.definition,
        is_template=False,
        version=row.version,
        updated_at=row.updated_at,
    )


def _template(definition: Definition) -> Kept:
    return Kept(
        id=definition.id,
        name=definition.name,
        description=definition.description,
        definition=definition.to_json(),
        is_template=True,
    )


def _model_fault(name: str) -> str:
    try:
        chat_model(name)
    except InferenceError as error:
        return str(error)
    return ""
