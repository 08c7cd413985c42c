"""Embedding spaces: created, indexed, measured, re-embedded, deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import PROTECT, ForeignObjectRel, Q
from django.utils.translation import gettext

from accounts.audit import Action
from accounts.models import Workspace
from common import features
from common.errors import Conflict, InvalidInput, NotFound
from common.shards import MAIN, all_shards, current_shard, each_shard, on_shard
from documents.embedders import embedder_for
from documents.fitting_models import space_name
from documents.ingestion import reembed
from documents.ingestion.concurrency import lock_space_changes
from documents.ingestion.space_choice import add_space
from documents.ingestion.vector_indexes import IndexState, build_index, drop_index, index_states
from documents.models import Chunk, Collection, EmbeddingSpace, Reembedding
from documents.services.audit import record
from documents.spaces import check_options
from inference.interfaces import InferenceError
from inference.model_registry import alias_of, embedders


@dataclass(frozen=True, slots=True)
class SpaceReport:
    """A space with its contents in the database. `index` is None if none is built."""

    space: EmbeddingSpace
    chunks: int
    collections: int
    index: IndexState | None


def get_space(name: str) -> EmbeddingSpace:
    """The space; raises NotFound that lists the existing ones."""
    space = EmbeddingSpace.objects.filter(name=name).first()
    if space is None:
        names = ", ".join(EmbeddingSpace.objects.values_list("name", flat=True)) or "none yet"
        raise NotFound(
            gettext("There is no embedding space “{name}”. There are: {names}.").format(
                name=name, names=names
            )
        )
    return space


def live_embedders() -> list[str]:
    """Aliases of the embedders that searches use."""
    if not features.is_on("vectors"):
        return []
    used: set[str] = set()
    for _ in each_shard():
        live = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE)
        spaces = live.filter(Q(is_default=True) | Q(collections__isnull=False))
        used.update(alias_of(*each) for each in spaces.values_list("embedder", "model_name"))
    return sorted(used)


def default_space() -> EmbeddingSpace:
    """The space of new collections.

    It follows the configured default embedder where that loses nothing: on a site without chunks,
    so that whoever configures another model before the first document need not know about spaces,
    and where the former model is still configured under another alias, as that of the release
    before is: then its space stays for what is in it. An embedder that the environment names goes
    before a connected one. On shards spaces are the same everywhere, and nothing follows by itself.
    """
    space = EmbeddingSpace.objects.filter(is_default=True).first()
    if space is None:
        raise NotFound(gettext("There is no default embedding space. Run `manage.py migrate`."))
    is_spread = current_shard() or Workspace.objects.exclude(shard=MAIN).exists()
    if is_spread:
        return space
    alias = space.embedder
    if embedders.is_set() and embedders.find_connected(alias):
        alias = "default"
    try:
        embedder = embedders[alias]
        fits = (embedder.dimensions, embedder.model_name) == (space.dimensions, space.model_name)
    except InferenceError:
        return space  # embedding will report the error
    is_used = not fits and Chunk.objects.exists()
    if fits or (is_used and alias_of(space.embedder, space.model_name) == alias):
        return space
    with transaction.atomic():
        is_still = EmbeddingSpace.objects.select_for_update().filter(pk=space.pk, is_default=True)
        if not is_still.exists():  # changed concurrently
            return EmbeddingSpace.objects.get(is_default=True)
        EmbeddingSpace.objects.filter(pk=space.pk).update(
            is_default=False, state=space.state if is_used else EmbeddingSpace.State.RETIRED
        )
        name = space_name(embedder)
        taken = EmbeddingSpace.objects.filter(name=name).exists()
        new, _ = add_space(name=f"{name}-2" if taken else name, embedder=alias)
        EmbeddingSpace.objects.filter(pk=new.pk).update(is_default=True)
        new.is_default = True
        if is_used:
            transaction.on_commit(partial(queue_space_index, space=new), robust=True)
            return new
        Collection.objects.filter(space=space).update(space=new)
        with connection.cursor() as cursor:  # without a chunk both take no time
            cursor.execute(space.sql.drop_index())
            if new.index_type == EmbeddingSpace.IndexType.HNSW:
                cursor.execute(new.sql.create_index())
        return new


def set_default_space(*, space: EmbeddingSpace) -> None:
    """Have new collections use this space; what is in others stays there. Raises InferenceError
    where its embedder does not fit."""
    embedder_for(space)
    with transaction.atomic():
        lock_space_changes()
        EmbeddingSpace.objects.filter(is_default=True).update(is_default=False)
        live = EmbeddingSpace.State.LIVE
        EmbeddingSpace.objects.filter(pk=space.pk).update(is_default=True, state=live)
        record(Action.CHANGED, space, fields=["is_default"])
    if space.index_type != EmbeddingSpace.IndexType.NONE:
        # Without it searches compare with every vector, which `manage.py validate` would report.
        transaction.on_commit(partial(queue_space_index, space=space), robust=True)


def space_reports(*, name: str = "", count: bool = True) -> list[SpaceReport]:
    """Reports on all spaces, or the named one. `count` reads every chunk's index entry."""
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
    """Build the index without blocking anyone; False if there was nothing to do."""
    _refuse_unindexed(space)
    return build_index(space, rebuild=rebuild)


def queue_space_index(*, space: EmbeddingSpace) -> None:
    """Have a worker build the index; returns at once."""
    _refuse_unindexed(space)
    from documents import tasks  # noqa: PLC0415 (loads Celery)

    tasks.build_space_index.delay(space.pk)


def _refuse_unindexed(space: EmbeddingSpace) -> None:
    if space.index_type == EmbeddingSpace.IndexType.NONE:
        raise InvalidInput(
            gettext("Space {name} is searched exactly: it has no index to build.").format(
                name=space.name
            )
        )


def change_instruction(*, space: EmbeddingSpace, instruction: str) -> None:
    """Set the instruction put before queries. Documents are embedded without it, so nothing is re-
    embedded."""
    if instruction == space.query_instruction:
        return
    with transaction.atomic():
        EmbeddingSpace.objects.filter(pk=space.pk).update(query_instruction=instruction)
        record(Action.CHANGED, space, fields=["query_instruction"])


@transaction.atomic
def change_search_options(*, space: EmbeddingSpace, **options: int | None) -> EmbeddingSpace:
    """How much of the index searches visit: `ef_search` of HNSW, `probes` of IVFFlat; None: chosen
    by the size of the index. Effective with the next search, without a rebuild.

    Raises InvalidInput for an option of another index type, and for one out of bounds.
    """
    row = EmbeddingSpace.objects.select_for_update().get(pk=space.pk)
    given = {name: value for name, value in options.items() if value is not None}
    check_options(row.index_type, {**dict.fromkeys(options, 1), **given})
    kept = {name: value for name, value in row.index_options.items() if name not in options}
    if row.index_options != {**kept, **given}:
        row.index_options = {**kept, **given}
        row.save(update_fields=["index_options", "updated_at"])
        record(Action.CHANGED, row, fields=["index_options"])
    return row


def drop_space(*, space: EmbeddingSpace) -> None:
    """Delete a space that nobody uses, with its index. Raises Conflict if it is in use."""
    if reembed.is_space_in_use(space):
        raise Conflict(
            gettext(
                "Space {name} is in use. Re-embed into another one first: `manage.py"
                " reembed --to NAME`."
            ).format(name=space.name)
        )
    # Kinds of rows in other apps that refer to the space; found through the database, because this
    # app must not import them.
    protecting = [
        relation
        for relation in space._meta.get_fields(include_hidden=True)
        if isinstance(relation, ForeignObjectRel) and relation.on_delete is PROTECT
    ]
    kinds_in_other_apps: set[str] = set()
    for shard in all_shards():
        with on_shard(shard):
            kinds_in_other_apps |= {
                str(relation.related_model._meta.verbose_name_plural)
                for relation in protecting
                if relation.related_model._base_manager.filter(
                    **{relation.field.name: space}
                ).exists()
            }
    if held := sorted(kinds_in_other_apps):
        raise Conflict(
            gettext(
                "Space {name} still holds vectors of {names}. They move to the default"
                " space by themselves within minutes, while a worker and the scheduler"
                " run. `manage.py memory embed` moves memories now."
            ).format(name=space.name, names=", ".join(held))
        )
    for shard in all_shards():
        with on_shard(shard):
            drop_index(space)
    record(Action.DELETED, space)
    space.delete()


# --- re-embedding --------------------------------------------------------------------------------


def reembed_inline(
    *,
    target: EmbeddingSpace,
    collection: Collection | None = None,
    by_hand: bool = True,
    on_progress: Callable[[Reembedding], Any] = lambda row: None,
) -> Reembedding:
    """Move a collection, or all, into `target`, in this process; or resume. `by_hand`: somebody
    chose the model, and it stays.

    Returns early if it is stopped or taken over. Raises Conflict and InferenceError.
    """
    row = reembed.start_reembedding(target=target, collection=collection, by_hand=by_hand)
    token = reembed.take_over(row)
    if reembed.builds_index_first(row):
        reembed.build_target_index(row, token=token)
    cursor: reembed.Cursor | None = reembed.FIRST_CURSOR
    try:
        while cursor is not None:
            on_progress(row)
            cursor = reembed.move_batch(row, token=token, cursor=cursor)
            row.refresh_from_db()
    except reembed.TakenOver:
        row.refresh_from_db()
    except InferenceError as error:
        reembed.stop_reembedding(row, error=str(error))
        raise
    except KeyboardInterrupt:
        reembed.stop_reembedding(row)
        raise
    on_progress(row)
    return row


def queue_reembedding(
    *,
    target: EmbeddingSpace,
    collection: Collection | None = None,
    by_hand: bool = True,
    user: Any = None,
) -> Reembedding:
    """The same on the `embed` queue; returns at once."""
    row = reembed.start_reembedding(
        target=target, collection=collection, by_hand=by_hand, user=user
    )
    from documents.tasks import enqueue_reembedding  # noqa: PLC0415 (loads Celery)

    enqueue_reembedding(row, reembed.take_over(row))
    return row


def cancel_reembedding(*, target: EmbeddingSpace | None = None) -> list[Reembedding]:
    """Stop running moves, into `target` or all, after the current batch; returns those stopped.

    Moved chunks stay in their new space and both spaces are searched, until the move is resumed or
    reversed.
    """
    running = Reembedding.objects.filter(state=Reembedding.State.RUNNING)
    if target is not None:
        running = running.filter(target=target)
    return [row for row in running.select_related("target") if reembed.stop_reembedding(row)]
