"""The embedding space of a collection by the languages of its documents, decided before they are
embedded: begin with `fit_space`. `add_space` makes a new space."""

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils.text import slugify
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from common.celery import send_or_wait
from common.errors import Conflict, InvalidInput
from common.rls import bypass_rls
from documents.fitting_models import (
    FittingModel,
    counted_languages,
    documents_by_language,
    fitting_model,
)
from documents.ingestion import reembed
from documents.ingestion.concurrency import lock_collection, lock_space_changes
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.spaces import (
    HNSW_DEFAULTS,
    INDEX_TYPES,
    PRECISIONS,
    checked_index,
    resolve_metric,
)
from inference.interfaces import InferenceError
from inference.model_languages import EVERY, is_made_for
from inference.model_registry import embedders

logger = logging.getLogger(__name__)


def fit_space(collection: Collection, languages: Mapping[str, str]) -> bool:
    """Give the collection a space whose model was made for its documents and for these ones, whose
    texts come next: ISO codes by key, empty where nothing tells. Returns whether it has another
    space now, which is then read into `collection`.

    An empty collection just takes it. One with passages is moved by the workers, while both spaces
    are searched; what comes meanwhile is embedded for the new one. Nothing happens where somebody
    chose the model or stored vectors of it, where no configured one was made for these languages,
    and for so few documents that their language may be a mistake. Of several processes one decides,
    and the others follow.
    """
    made_for = collection.space.languages
    if not collection.has_vectors or not collection.automatic_model:
        return False
    if not made_for or EVERY in made_for:
        return False
    coming = Counter(languages.values())
    foreign = {code for code in coming if not is_made_for(made_for, code)}
    if not foreign or fitting_model(foreign) is None:
        return False
    others = Document.objects.filter(collection=collection).exclude(key__in=list(languages))
    counted = counted_languages(coming + Counter(documents_by_language(others)))
    if foreign.isdisjoint(counted) or (fitting := fitting_model(counted)) is None:
        return False
    if _has_own_vectors(collection):
        Collection.objects.filter(pk=collection.pk).update(automatic_model=False)
        return False
    target = ensure_space(fitting)
    before = collection.space_id
    try:
        with transaction.atomic():
            lock_space_changes()
            lock_collection(collection.pk)  # nobody loads into it meanwhile
            collection.refresh_from_db()
            if collection.space_id == before and collection.automatic_model:
                _change_space(collection, target)
    except (Conflict, InferenceError) as error:
        # It is being moved elsewhere, or the model has just gone: these documents follow later.
        logger.warning("%s keeps its model: %s", collection.slug, error)
        collection.refresh_from_db()
    return collection.space_id != before


# A chunk that came with its vector has the hash of both in place of its text's
# (`documents.ingestion.items.prepare_item`).
_OWN_VECTORS = """
    SELECT EXISTS (
        SELECT FROM documents_chunk WHERE collection_id = %s AND content_sha256 <>
            encode(sha256(convert_to(length(context) || ':' || context || text, 'UTF8')), 'hex')
    )
"""


def _has_own_vectors(collection: Collection) -> bool:
    """Whether programs stored vectors of their own, which nobody can make again. Reads every text,
    as the move to another model would."""
    with connection.cursor() as cursor:
        cursor.execute(_OWN_VECTORS, [collection.pk])
        return bool(cursor.fetchone()[0])


def _change_space(collection: Collection, target: EmbeddingSpace) -> None:
    """Set it to `target`, under the locks of `fit_space`."""
    if collection.former_spaces or Chunk.objects.filter(collection=collection).exists():
        row = reembed.start_reembedding(target=target, collection=collection, by_hand=False)
        token = reembed.take_over(row)
        _send_after_commit("reembed", row.pk, str(token), *reembed.FIRST_CURSOR)
    else:
        EmbeddingSpace.objects.filter(pk=target.pk).update(state=EmbeddingSpace.State.LIVE)
        Collection.objects.filter(pk=collection.pk).update(space=target, updated_at=Now())
        if target.index_type != EmbeddingSpace.IndexType.NONE:
            # Without it searches compare with every vector, as `manage.py validate` would report.
            _send_after_commit("build_space_index", target.pk)
    record_change(
        action=Action.CHANGED,
        kind=Kind.COLLECTION,
        workspace_id=collection.workspace_id,
        object_id=[collection.pk],
        collection_id=collection.pk,
        fields=["space"],
    )
    collection.refresh_from_db()


def _send_after_commit(task: str, *arguments: object) -> None:
    """Have a worker do it. Without a broker the row waits for the recovery of re-embeddings."""
    # By its name, because tasks are of a layer above this one.
    transaction.on_commit(partial(send_or_wait, f"documents.tasks.{task}", *arguments))


def ensure_space(fitting: FittingModel) -> EmbeddingSpace:
    """The space of this model, made if there is none."""
    if fitting.space is not None:
        return fitting.space
    with bypass_rls():  # the history of the site belongs to no workspace
        try:
            return add_space(name=fitting.space_name, embedder=fitting.alias)[0]
        except Conflict:  # of somebody else who was faster
            return EmbeddingSpace.objects.get(name=fitting.space_name)


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
    """A new, empty space for an embedder's vectors, and remarks on automatic choices.

    `precision` None means half, or binary for more than 4,000 dimensions. The index is built when
    chunks come. Raises InvalidInput, Conflict, and InferenceError if the embedder does not answer.
    """
    if not name or name != slugify(name) or len(name) > 63:
        raise InvalidInput(
            gettext("A space's name has lower-case letters, digits and hyphens, at most 63."),
            field="name",
        )
    metric = resolve_metric(metric)
    for field, value, known in (
        ("index", index_type, INDEX_TYPES),
        ("precision", precision, (None, *PRECISIONS)),
    ):
        if value not in known:
            names = ", ".join(filter(None, known))
            raise InvalidInput(
                gettext("There is no {field} “{value}”. Use {names}.").format(
                    field=field, value=value, names=names
                ),
                field=field,
            )
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
            record_change(
                action=Action.MADE, kind=Kind.SPACE, workspace_id=None, object_id=[space.pk]
            )
    except IntegrityError as error:
        raise Conflict(
            gettext("There is a space “{name}” already. Choose another name.").format(name=name)
        ) from error
    return space, remarks
