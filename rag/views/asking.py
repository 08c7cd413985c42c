"""What the chat page offers beside the question box, and how it asks without JavaScript."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from accounts.choosing import workspace_of
from documents.models import Collection
from inference.routing import chat_model, chat_models
from rag.context import RagContext
from rag.events import Metadata
from rag.models import Conversation, Message
from rag.services.chatting import Question, chat
from rag.services.pipelines import list_pipelines
from rag.views.turns import DEGRADED, FAILURES

#: What the scripts of both pages import, to be fetched at once and not one after the other.
MODULES = [f"js/chat/{name}.js" for name in ("composer", "live", "sources", "stream", "turn")]


def context_of(request: HttpRequest, *, collections: Sequence[str] = ()) -> RagContext:
    """Whoever is logged in, in their workspace."""
    workspace = workspace_of(request)
    return RagContext(user=request.user, workspace=workspace, collections=tuple(collections))


def collection_names(context: RagContext) -> dict[str, str]:
    """Names by slug of those that the user sees."""
    rows = Collection.objects.visible_to(context.user).filter(workspace=context.workspace)
    return dict(rows.order_by("name").values_list("slug", "name"))


def chosen_collections(params: QueryDict, names: Mapping[str, str]) -> list[str]:
    """Those that the request ticked, as far as they are there."""
    return [slug for slug in dict.fromkeys(params.getlist("collection")) if slug in names]


def choices(request: HttpRequest, conversation: Conversation | None) -> dict[str, Any]:
    """What may be chosen, and what is: by the request, else as it was asked last."""
    context = context_of(request)
    names = collection_names(context)
    given = request.POST if request.method == "POST" else request.GET
    chosen = chosen_collections(given, names)
    if conversation and not chosen and request.method != "POST":
        chosen = [slug for slug in conversation.collections if slug in names]
    if len(chosen) == len(names):
        chosen = []
    last = _last_answer(conversation)
    return {
        "names": json.dumps(names),
        "degraded": json.dumps(DEGRADED),
        "failures": json.dumps(FAILURES),
        "modules": [*MODULES, "js/chat/copying.js"],
        "collections": [{"slug": slug, "name": name} for slug, name in names.items()],
        "chosen": chosen,
        "chosen_label": _label([names[slug] for slug in chosen]),
        "pipelines": list_pipelines(context=context),
        "pipeline_chosen": given.get("pipeline") or (conversation.pipeline if conversation else ""),
        "models": chat_models(),
        "model_chosen": given.get("model") or (last.model if last else ""),
        "uses_memory": _uses_memory(request, last),
        "is_extractive": chat_model() is None,
        "connect_url": reverse("chat_connect"),
        "api_url": reverse("api:chat"),
    }


def _last_answer(conversation: Conversation | None) -> Message | None:
    if conversation is None:
        return None
    return conversation.messages.filter(role=Message.Role.ASSISTANT).order_by("-pk").first()


def _uses_memory(request: HttpRequest, last: Message | None) -> bool:
    if request.method == "POST":
        return request.POST.get("memory") == "1"
    return settings.MEMORY_INJECTION if last is None else last.memory is not None


def _label(names: Sequence[str]) -> str:
    if not names:
        return "All collections"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def answered(
    values: Mapping[str, Any],
    *,
    context: RagContext,
    conversation: Conversation | None,
    replaces: int | None = None,
) -> Message:
    """Ask, and wait for the end; the answer, which may be that it failed. It takes the place of
    `replaces`.

    Raises RagsiteError where it could not be asked at all.
    """
    if conversation and not context.collections:
        # Named one by one: else it goes on with those that it was asked of last.
        context = replace(context, collections=tuple(collection_names(context)))
    pipeline = values["pipeline"]
    question = Question(
        message=values["question"],
        pipeline=pipeline,
        model="" if pipeline else values["model"],
        memory=None if pipeline else values["memory"],
    )
    events = chat(
        question,
        context=context,
        conversation=conversation.pk if conversation else None,
        replaces=replaces,
    )
    told = [event for event in events if isinstance(event, Metadata)]
    return Message.objects.visible_to(context.user).get(pk=told[0].message or 0)
