"""Embedding spaces: made, indexed, measured, left, removed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import PROTECT, ForeignObjectRel
from django.utils.text import slugify

from accounts.history import Action, Kind, note_change
from common.errors import Conflict, InvalidInput, NotFound
from documents.ingestion import reembedding
from documents.ingestion.indexes import IndexState, build_index, drop_index, index_states
from documents.models import Chunk, Collection, EmbeddingSpace, Reembedding
from documents.spaces import (
    HNSW_DEFAULTS,
    INDEX_TYPES,
    PRECISIONS,
    check_options,
    checked_index,
    metric_named,
)
from inference.base import Embedder, InferenceError
from inference.handler import embedders


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """A space as it is in the database. `index` is None where none is built."""

    space: EmbeddingSpace
    chunks: int
    collections: int
    index: IndexState | None


def get_space(name: str) -> EmbeddingSpace:
    """The space; raises NotFound that names those there are."""
    space = EmbeddingSpace.objects.filter(name=name).first()
    if space is None:
        names = ", ".join(EmbeddingSpace.objects.values_list("name", flat=True)) or "none yet"
        raise NotFound(f"There is no embedding space “{name}”. There are: {names}.")
    return space


def live_embedders() -> list[str]:
    """Aliases of the embedders that searches ask now."""
    live = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE)
    used = {*live.filter(is_default=True), *live.filter(collections__isnull=False)}
    return sorted({space.embedder for space in used})


def default_space() -> EmbeddingSpace:
    """The space that new collections use.

    On a site without a single chunk it follows the configured default embedder: who configures
    another model before the first document need not know of spaces.
    """
    space = EmbeddingSpace.objects.filter(is_default=True).first()
    if space is None:
        raise NotFound("There is no default embedding space. Run `manage.py migrate`.")
    if Chunk.objects.exists():
        return space
    try:
        embedder = embedders[space.embedder]
        fits = (embedder.dimensions, embedder.model_name) == (space.dimensions, space.model_name)
    except InferenceError:
        return space  # whoever embeds will be told
    return space if fits else _replace_empty(space, embedder)


@transaction.atomic
def _replace_empty(space: EmbeddingSpace, embedder: Embedder) -> EmbeddingSpace:
    is_still = EmbeddingSpace.objects.select_for_update().filter(pk=space.pk, is_default=True)
    if not is_still.exists():  # somebody was faster
        return EmbeddingSpace.objects.get(is_default=True)
    EmbeddingSpace.objects.filter(pk=space.pk).update(
        is_default=False, state=EmbeddingSpace.State.RETIRED
    )
    name = slugify(f"{embedder.model_name.rpartition('/')[2]}-{embedder.dimensions}")[-60:]
    taken = EmbeddingSpace.objects.filter(name=name).exists()
    new, _ = add_space(name=f"{name}-2" if taken else name, embedder=space.embedder)
    EmbeddingSpace.objects.filter(pk=new.pk).update(is_default=True)
    Collection.objects.filter(space=space).update(space=new)
    with connection.cursor() as cursor:  # without a chunk both take no time
        cursor.execute(space.sql.drop_index())
        if new.index_type == EmbeddingSpace.IndexType.HNSW:
            cursor.execute(new.sql.create_index())
    new.is_default = True
    return new


def add_space(
    *,
    name: str,
    embedder: str = "default",
    metric: str = "cosine",
    index_type: str = "hnsw",
    precision: str | None = None,
    options: Mapping[str, int] | None = None,
    query_instruction: str = "",
) -> tuple[EmbeddingSpace, list[str]]:
    """A new, empty space for an embedder's vectors, and remarks on what was chosen for it.

    `precision` None takes the finest that can be indexed. The index is built when chunks come.
    Raises InvalidInput, Conflict, and InferenceError where the embedder cannot be asked.
    """
    if not name or name != slugify(name) or len(name) > 63:
        raise InvalidInput(
            "A space's name has lower-case letters, digits and hyphens, at most 63.", field="name"
        )
    metric = metric_named(metric)
    _one_of("index", index_type, INDEX_TYPES)
    if precision is not None:
        _one_of("precision", precision, PRECISIONS)
    model = embedders[embedder]
    index_type, chosen, remarks = checked_index(
        dimensions=model.dimensions,
        index_type=index_type,
        precision=precision,
        options=options or {},
    )
    defaults = HNSW_DEFAULTS if index_type == "hnsw" else {}
    try:
        with transaction.atomic():
            space = EmbeddingSpace.objects.create(
                name=name,
                embedder=embedder,
                model_name=model.model_name,
                dimensions=model.dimensions,
                metric=metric,
                query_instruction=query_instruction,
                index_type=index_type,
                index_options={**defaults, **(options or {})},
                precision=chosen,
            )
            note_change(action=Action.MADE, kind=Kind.SPACE, workspace_id=None, thing=space.pk)
    except IntegrityError as error:
        raise Conflict(f"There is a space “{name}” already. Choose another name.") from error
    return space, remarks


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidInput(f"There is no {what} “{value}”. Use {', '.join(known)}.", field=what)


def space_reports(*, name: str = "", count: bool = True) -> list[SpaceReport]:
    """All spaces, or the named one, with what they hold. `count` reads every chunk's entry."""
    spaces = [get_space(name)] if name else list(EmbeddingSpace.objects.all())
    states = index_states(spaces)
    return [
        SpaceReport(
            space=space,
            chunks=Chunk.objects.filter(space=space).count() if count else 0,
            collections=Collection.objects.filter(space=space).count(),
            index=states.get(space.pk),
        )
        for space in spaces
    ]


def build_space_index(*, space: EmbeddingSpace, rebuild: bool = False) -> bool:
    """Build the index without locking anybody out; False where there was nothing to do."""
    _refuse_unindexed(space)
    return build_index(space, rebuild=rebuild)


def build_space_index_in_queue(*, space: EmbeddingSpace) -> None:
    """The same by a worker; returns at once."""
    _refuse_unindexed(space)
    from documents import tasks  # noqa: PLC0415 (loads Celery)

    tasks.build_space_index.delay(space.pk)


def _refuse_unindexed(space: EmbeddingSpace) -> None:
    if space.index_type == EmbeddingSpace.IndexType.NONE:
        raise InvalidInput(f"Space {space.name} is searched exactly: it has no index to build.")


def change_instruction(*, space: EmbeddingSpace, instruction: str) -> None:
    """What queries tell the model to find. Documents are embedded without it, so nothing moves."""
    if instruction == space.query_instruction:
        return
    with transaction.atomic():
        EmbeddingSpace.objects.filter(pk=space.pk).update(query_instruction=instruction)
        note_change(
            action=Action.CHANGED,
            kind=Kind.SPACE,
            workspace_id=None,
            thing=space.pk,
            fields=["query_instruction"],
        )


@transaction.atomic
def change_search_options(*, space: EmbeddingSpace, **options: int | None) -> EmbeddingSpace:
    """How much of its index searches look at: `ef_search` of HNSW, `probes` of IVFFlat; None leaves
    it to the size of the index. The next search heeds it, and nothing is built anew.

    Raises InvalidInput for an option of another index type, and for one out of bounds.
    """
    row = EmbeddingSpace.objects.select_for_update().get(pk=space.pk)
    given = {name: value for name, value in options.items() if value is not None}
    check_options(row.index_type, {**dict.fromkeys(options, 1), **given})
    kept = {name: value for name, value in row.index_options.items() if name not in options}
    if row.index_options != {**kept, **given}:
        row.index_options = {**kept, **given}
        row.save(update_fields=["index_options", "updated_at"])
        note_change(
            action=Action.CHANGED,
            kind=Kind.SPACE,
            workspace_id=None,
            thing=row.pk,
            fields=["index_options"],
        )
    return row


def drop_space(*, space: EmbeddingSpace) -> None:
    """Remove a space that nobody uses, with its index. Raises Conflict where it is in use."""
    if reembedding.in_use(space):
        raise Conflict(
            f"Space {space.name} is in use. Re-embed into another one first:"
            " `manage.py reembed --to NAME`."
        )
    if held := _held_by_other_apps(space):
        raise Conflict(
            f"Space {space.name} still holds vectors of {', '.join(held)}. They move to the default"
            " space by themselves within minutes, while a worker and the scheduler run."
            " `manage.py memory embed` moves memories now."
        )
    drop_index(space)
    note_change(action=Action.DELETED, kind=Kind.SPACE, workspace_id=None, thing=space.pk)
    space.delete()


def _held_by_other_apps(space: EmbeddingSpace) -> list[str]:
    """Kinds of rows that protect the space; apps above this one, which it must not know, have
    some."""
    protecting = [
        relation
        for relation in space._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is PROTECT
    ]
    return sorted(
        str(relation.related_model._meta.verbose_name_plural)
        for relation in protecting
        if relation.related_model._base_manager.filter(**{relation.field.name: space}).exists()
    )


# --- re-embedding --------------------------------------------------------------------------------


def reembed_here(
    *,
    target: EmbeddingSpace,
    collection: Collection | None = None,
    on_progress: Callable[[Reembedding], Any] = lambda row: None,
) -> Reembedding:
    """Move a collection, or all, into `target`, in this process; or finish what was begun.

    Ends early where somebody stops it or goes on with it. Raises Conflict and InferenceError.
    """
    row = reembedding.start(target=target, collection=collection)
    token = reembedding.take(row)
    if reembedding.builds_index_first(row):
        reembedding.index(row, token=token)
    cursor: reembedding.Cursor | None = reembedding.Cursor()
    try:
        while cursor is not None:
            on_progress(row)
            cursor = reembedding.advance(row, token=token, cursor=cursor)
            row.refresh_from_db()
    except reembedding.TakenOver:
        row.refresh_from_db()
    except InferenceError as error:
        reembedding.stop(row, error=str(error))
        raise
    except KeyboardInterrupt:
        reembedding.stop(row)
        raise
    on_progress(row)
    return row


def reembed_in_queue(
    *, target: EmbeddingSpace, collection: Collection | None = None, user: Any = None
) -> Reembedding:
    """The same on the `embed` queue; returns at once."""
    row = reembedding.start(target=target, collection=collection, user=user)
    from documents.tasks import enqueue_reembedding  # noqa: PLC0415 (loads Celery)

    enqueue_reembedding(row, reembedding.take(row))
    return row


def cancel_reembedding(*, target: EmbeddingSpace | None = None) -> list[Reembedding]:
    """Stop what is running, into `target` or at all, after its batch; returns what was stopped.

    What has moved stays where it is and both spaces are searched, until somebody goes on or goes
    back.
    """
    running = Reembedding.objects.filter(state=Reembedding.State.RUNNING)
    if target is not None:
        running = running.filter(target=target)
    return [row for row in running.select_related("target") if reembedding.stop(row)]
