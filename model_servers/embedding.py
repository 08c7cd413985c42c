"""Connected embedders and the collections whose vectors come from them. Begin with
`use_for_documents`."""

from typing import Any

from django.db.models import Q
from django.utils.text import get_text_list
from django.utils.translation import gettext

from accounts.audit import Action
from common.errors import Conflict, InvalidInput
from common.rls import bypass_rls
from common.shards import each_shard
from documents.fitting_models import space_name
from documents.models import Collection, EmbeddingSpace, Reembedding
from documents.services import add_space, queue_reembedding, set_default_space
from documents.services.audit import record
from inference.interfaces import BackendUnavailable
from inference.model_registry import alias_of, embedders
from model_servers import registry
from model_servers.models import ModelConnection

_NAMED_COLLECTIONS = 10


def spaces_of(connection: ModelConnection) -> list[EmbeddingSpace]:
    """The spaces whose vectors this embedder makes."""
    return [
        space
        for space in EmbeddingSpace.objects.filter(
            Q(embedder=connection.alias) | Q(model_name=connection.model)
        )
        if alias_of(space.embedder, space.model_name) == connection.alias
    ]


def default_embedder() -> str:
    """The alias of the embedder of new collections."""
    space = EmbeddingSpace.objects.filter(is_default=True).first()
    return alias_of(space.embedder, space.model_name) if space else ""


def is_default(connection: ModelConnection) -> bool:
    """Whether it answers, reranks, or embeds new collections, where nothing else is chosen."""
    if connection.purpose == ModelConnection.Purpose.EMBEDDER:
        return default_embedder() == connection.alias
    return connection.is_default


def moves_to(connection: ModelConnection) -> list[Reembedding]:
    """The moves of collections to this embedder, the newest first; those that ended with them."""
    with bypass_rls():
        rows = Reembedding.objects.filter(target__in=spaces_of(connection))
        return list(rows.select_related("collection", "target").order_by("-pk")[:10])


def use_for_documents(
    *,
    connection: ModelConnection,
    collection: Collection | None = None,
    everything: bool = False,
    user: Any = None,
) -> EmbeddingSpace:
    """Have the embedder serve new collections; or with `collection` that one alone; or with
    `everything` new and old ones. The workers move what is there while people search. Returns its
    space. Raises InvalidInput where the environment names the embedder of new collections,
    Conflict where a move is running, and InferenceError where the model does not fit."""
    if connection.purpose != ModelConnection.Purpose.EMBEDDER:
        raise InvalidInput(gettext("“{model}” is no embedder.").format(model=connection))
    if collection is None and embedders.is_set():
        raise InvalidInput(
            gettext(
                "The environment of the site names the embedder of new collections"
                " (EMBEDDER_BACKEND). Move single collections to this one, or take that out."
            )
        )
    space = _space_for(connection)
    if collection is not None:
        queue_reembedding(target=space, collection=collection, user=user)
        record(Action.CHANGED, collection, fields=["space"])
        return space
    with bypass_rls():
        if not everything:
            set_default_space(space=space)
        for _ in each_shard() if everything else ():
            queue_reembedding(target=space, user=user)
    return space


def _space_for(connection: ModelConnection) -> EmbeddingSpace:
    """The space of the model as it is now, made if there is none."""
    if connection.dimensions is None:
        raise BackendUnavailable(
            gettext("“{model}” was not tried yet. Try it first: that measures its vectors.").format(
                model=connection
            )
        )
    registry.forget()  # it may have been connected just now
    for space in spaces_of(connection):
        if (space.model_name, space.dimensions) == (connection.model, connection.dimensions):
            return space
    embedder = embedders[connection.alias]
    name = space_name(embedder)
    if EmbeddingSpace.objects.filter(name=name).exists():
        name = f"{name[:40]}-{connection.pk}"
    with bypass_rls():  # the history of the site belongs to no workspace
        return add_space(name=name, embedder=connection.alias)[0]


def require_unused(connection: ModelConnection) -> None:
    """Raise Conflict where collections need this embedder or reranker; else retire its spaces."""
    is_embedder = connection.purpose == ModelConnection.Purpose.EMBEDDER
    if connection.purpose == ModelConnection.Purpose.CHAT:
        return
    spaces = [space.pk for space in spaces_of(connection)] if is_embedder else []
    users: list[str] = []
    with bypass_rls():
        found = (
            Q(space__in=spaces) | Q(former_spaces__overlap=spaces)
            if is_embedder
            else Q(reranker=connection.alias)
        )
        for _ in each_shard():
            rows = Collection.objects.filter(found).select_related("workspace").order_by("name")
            users += [f"“{row}” ({row.workspace})" for row in rows[:_NAMED_COLLECTIONS]]
    if is_embedder and is_default(connection):
        users.append(gettext("new collections"))
    if not users:
        EmbeddingSpace.objects.filter(pk__in=spaces).update(state=EmbeddingSpace.State.RETIRED)
        return
    told = (
        gettext(
            "“{model}” is the embedder of {users}. Have another one serve them first: by “Use for"
            " documents” on its page, or by `manage.py reembed --to SPACE`."
        )
        if is_embedder
        else gettext("“{model}” is the reranker of {users}. Choose another one on their pages.")
    )
    names = get_text_list(users, gettext("and"))
    raise Conflict(told.format(model=connection, users=names))
