"""The models of the site under the names that requests give."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeVar

from inference.backends.rerank_basic import NoReranker, ScoreReranker
from inference.base import ChatModel, Embedder, InferenceError, Reranker
from inference.handler import InferenceHandler, embedders, rerankers
from inference.routing import DEFAULT, UnknownModel, chat_model, chat_models
from rag.context import RagContext
from rag.failures import ModelFailed
from rag.openai.errors import ModelNotFound
from rag.services.pipelines import get_pipeline, list_pipelines

T = TypeVar("T")
Kind = Literal["chat", "pipeline", "embedding", "rerank"]

PIPELINE = "pipeline/"
#: The reranker that there always is: how alike the vectors of query and document are.
SIMILARITY = "embedding-similarity"


@dataclass(frozen=True, slots=True)
class Model:
    """A name that a request may give as its model. `created` is in seconds since 1970, 0 where
    nobody knows."""

    id: str
    kind: Kind
    owner: str
    created: int = 0


def models(context: RagContext) -> list[Model]:
    """All of them, each name once: those of chats first, the default before the others."""
    listed: dict[str, Model] = {}
    for model in _models(context):
        listed.setdefault(model.id, model)
    return list(listed.values())


def model_named(name: str, *, context: RagContext) -> Model:
    """The model that is listed under `name`. Raises ModelNotFound."""
    listed = models(context)
    found = next((model for model in listed if model.id == name), None)
    if found is None:
        raise ModelNotFound(name, (model.id for model in listed))
    return found


def chat_named(name: str) -> ChatModel | None:
    """None for quoting. Raises ModelNotFound, and ModelFailed for one that cannot be made."""
    try:
        return chat_model(name)
    except UnknownModel as error:
        raise ModelNotFound(name, (each.name for each in chat_models())) from error
    except InferenceError as error:
        raise ModelFailed(error) from error


def pipeline_named(name: str, *, context: RagContext) -> str:
    """The pipeline's id. Raises ModelNotFound."""
    slug = name.removeprefix(PIPELINE)
    known = [each.id for each in list_pipelines(context=context)]
    if slug not in known:
        raise ModelNotFound(name, (f"{PIPELINE}{each}" for each in known))
    return get_pipeline(context=context, id=slug).id


def embedder_named(name: str) -> tuple[str, Embedder]:
    """An embedder by its alias, or by its model's name in any case, with or without the maker's
    before it (`sentence-transformers/all-MiniLM-L6-v2`), with the name it is listed under.

    Without a name it is the default. Raises ModelNotFound, and ModelFailed.
    """
    known = list(_embedders())
    for listed, alias, embedder in known:
        if name in (listed, alias) or (not name and alias == DEFAULT):
            return listed, embedder
    if name in ("", *embedders):
        _made(embedders, name or DEFAULT)
    asked = name.casefold()
    for listed, _, embedder in known:
        model = embedder.model_name.casefold()
        if asked == model or asked.rpartition("/")[2] == model or asked == model.rpartition("/")[2]:
            return listed, embedder
    raise ModelNotFound(name, (listed for listed, *_ in known))


def reranker_named(name: str) -> tuple[str, Reranker | None]:
    """A reranker by its alias, with that; None for SIMILARITY, which is also what there is without
    a name where none is set up. Raises ModelNotFound, and ModelFailed."""
    if name == SIMILARITY:
        return name, None
    configured = list(_rerankers())
    if not name:
        name = DEFAULT if DEFAULT in configured else SIMILARITY
        return reranker_named(name)
    if name not in configured:
        raise ModelNotFound(name, [*configured, SIMILARITY])
    return name, _made(rerankers, name)


def _models(context: RagContext) -> Iterator[Model]:
    for each in chat_models():
        yield Model(each.name, "chat", each.owner)
    for kept in list_pipelines(context=context):
        made = int(kept.updated_at.timestamp()) if kept.updated_at else 0
        yield Model(f"{PIPELINE}{kept.id}", "pipeline", context.workspace.slug, made)
    for name, *_ in _embedders():
        yield Model(name, "embedding", "ragsite")
    for alias in (*_rerankers(), SIMILARITY):
        yield Model(alias, "rerank", "ragsite")


def _embedders() -> Iterator[tuple[str, str, Embedder]]:
    """Name, alias and embedder of those that can be made. “default” says little: the default is
    called what its model is."""
    for alias in embedders:
        with suppress(InferenceError):
            embedder = embedders[alias]
            yield embedder.model_name if alias == DEFAULT else alias, alias, embedder


def _rerankers() -> Iterator[str]:
    """Aliases of those that read texts."""
    for alias in rerankers:
        with suppress(InferenceError):
            if not isinstance(rerankers[alias], NoReranker | ScoreReranker):
                yield alias


def _made(handler: InferenceHandler[T], alias: str) -> T:
    try:
        return handler[alias]
    except InferenceError as error:
        raise ModelFailed(error) from error
