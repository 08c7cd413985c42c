"""The models of the site under the names that requests give; `GET /v1/models` lists them."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from rest_framework import serializers

from accounts.api import operation
from inference.backends.rerank_basic import NoReranker, ScoreReranker
from inference.chat_models import DEFAULT, UnknownModel, chat_models
from inference.embedding_models import routed_embedder
from inference.interfaces import ChatModel, Embedder, InferenceError, Reranker
from inference.model_registry import ModelRegistry, embedders, rerankers
from model_servers.usage import Purpose, metered_chat
from rag.context import RagContext, context_of_view
from rag.errors import ModelFailed
from rag.openai.protocol import ModelNotFound, OpenAIView
from rag.services.pipelines import list_pipelines

T = TypeVar("T")
ModelKind = Literal["chat", "pipeline", "embedding", "rerank"]

PIPELINE_PREFIX = "pipeline/"
#: The reranker that always exists: cosine similarity of query and document.
EMBEDDING_SIMILARITY = "embedding-similarity"


def list_models(context: RagContext) -> list[dict[str, Any]]:
    """All names that a request may give as its model, each once, in OpenAI's format with the fields
    of Anthropic's: chat models first, the default before the others. `created` is a Unix time, 0
    if unknown."""
    found: list[tuple[str, ModelKind, str, int]] = [
        (each.name, "chat", each.owner, 0)
        for each in chat_models(workspace_id=context.workspace.pk)
    ]
    for pipeline in list_pipelines(context=context):
        made = int(pipeline.updated_at.timestamp()) if pipeline.updated_at else 0
        name = f"{PIPELINE_PREFIX}{pipeline.slug}"
        found.append((name, "pipeline", context.workspace.slug, made))
    found += [(name, "embedding", "ragsite", 0) for name, *_ in _iter_embedders()]
    found += [(name, "rerank", "ragsite", 0) for name in (*_iter_rerankers(), EMBEDDING_SIMILARITY)]
    listed: dict[str, dict[str, Any]] = {}
    for name, kind, owner, created in found:
        model = {"id": name, "object": "model", "created": created, "owned_by": owner, "kind": kind}
        made_at = datetime.fromtimestamp(created, UTC)
        model |= {"type": "model", "display_name": name, "created_at": made_at.isoformat()}
        listed.setdefault(name, model)
    return list(listed.values())


def get_chat_model(name: str, *, context: RagContext) -> ChatModel | None:
    """The chat model; None for extractive answers. Raises ModelNotFound, and ModelFailed if it
    cannot be loaded."""
    workspace_id = context.workspace.pk
    try:
        return metered_chat(
            name, workspace_id=workspace_id, user_id=context.user_id, purpose=Purpose.CHAT
        )
    except UnknownModel as error:
        raise ModelNotFound(
            name, (each.name for each in chat_models(workspace_id=workspace_id))
        ) from error
    except InferenceError as error:
        raise ModelFailed(error) from error


def get_pipeline_id(name: str, *, context: RagContext) -> str:
    """The pipeline's id. Raises ModelNotFound."""
    slug = name.removeprefix(PIPELINE_PREFIX)
    known = [each.slug for each in list_pipelines(context=context)]
    if slug not in known:
        raise ModelNotFound(name, (f"{PIPELINE_PREFIX}{each}" for each in known))
    return slug


def get_embedder(name: str) -> tuple[str, Embedder]:
    """An embedder by its alias or model name, with the name it is listed under; the default without
    a name. Other names are asked of their makers, as those of chat models are. Raises
    ModelNotFound, and ModelFailed."""
    known = list(_iter_embedders())
    for listed, alias, embedder in known:
        if name in (listed, alias) or (not name and alias == DEFAULT):
            return listed, embedder
    if name in ("", *embedders):
        _load(embedders, name or DEFAULT)
    asked = name.casefold()
    for listed, _, embedder in known:
        model = embedder.model_name.casefold()
        if asked == model or asked.rpartition("/")[2] == model or asked == model.rpartition("/")[2]:
            return listed, embedder
    try:
        if routed := routed_embedder(name):
            return name, routed
    except InferenceError as error:
        raise ModelFailed(error) from error
    raise ModelNotFound(name, (listed for listed, *_ in known))


def get_reranker(name: str) -> tuple[str, Reranker | None]:
    """A reranker by its alias, with that alias; None for EMBEDDING_SIMILARITY, which is also the
    default if no reranker is configured. Raises ModelNotFound, and ModelFailed."""
    if name == EMBEDDING_SIMILARITY:
        return name, None
    configured = list(_iter_rerankers())
    if not name:
        name = DEFAULT if DEFAULT in configured else EMBEDDING_SIMILARITY
        return get_reranker(name)
    if name not in configured:
        raise ModelNotFound(name, [*configured, EMBEDDING_SIMILARITY])
    return name, _load(rerankers, name)


def _iter_embedders() -> Iterator[tuple[str, str, Embedder]]:
    """Name, alias and embedder of those that load. The default is listed under its model's name."""
    for alias in embedders:
        with suppress(InferenceError):
            embedder = embedders[alias]
            yield embedder.model_name if alias == DEFAULT else alias, alias, embedder


def _iter_rerankers() -> Iterator[str]:
    """Aliases of the rerankers that are models."""
    for alias in rerankers:
        with suppress(InferenceError):
            if not isinstance(rerankers[alias], NoReranker | ScoreReranker):
                yield alias


def _load(handler: ModelRegistry[T], alias: str) -> T:
    try:
        return handler[alias]
    except InferenceError as error:
        raise ModelFailed(error) from error


class OpenAIModelSerializer(serializers.Serializer[Any]):
    """A model in OpenAI's format and in Anthropic's, plus its `kind`."""

    id = serializers.CharField(help_text="What `model` of a request may say.")
    object = serializers.CharField(help_text="`model`.")
    created = serializers.IntegerField(help_text="Seconds since 1970; 0 where nobody knows.")
    owned_by = serializers.CharField(help_text="Its maker, or `ragsite`.")
    kind = serializers.CharField(help_text="`chat`, `pipeline`, `embedding` or `rerank`.")
    type = serializers.CharField(help_text="As Anthropic has it: `model`.")
    display_name = serializers.CharField(help_text="As Anthropic has it: the same as `id`.")
    created_at = serializers.DateTimeField(help_text="As Anthropic has it: `created`.")


class OpenAIModelsSerializer(serializers.Serializer[Any]):
    """All models that a request may name."""

    object = serializers.CharField(help_text="`list`.")
    data = OpenAIModelSerializer(many=True)  # type: ignore[assignment]  # DRF's metaclass takes it out
    has_more = serializers.BooleanField(help_text="As Anthropic has it: `false`.")


class ModelsView(OpenAIView):
    """`GET /v1/models`: all models of the site."""

    @operation(gives=OpenAIModelsSerializer, operation_id="openai_models_list")
    def get(self) -> dict[str, Any]:
        """List models as OpenAI and Anthropic do.

        Chat models, `extractive`, pipelines as `pipeline/ID`, embedders, rerankers.
        """
        models = list_models(context_of_view(self))
        return {"object": "list", "data": models, "has_more": False}


class ModelView(OpenAIView):
    """`GET /v1/models/{model}`: one model of the site."""

    @operation(gives=OpenAIModelSerializer, operation_id="openai_models_retrieve")
    def get(self, *, model: str) -> dict[str, Any]:
        """Read a model as OpenAI shows it."""
        listed = {each["id"]: each for each in list_models(context_of_view(self))}
        if model not in listed:
            raise ModelNotFound(model, listed)
        return listed[model]
