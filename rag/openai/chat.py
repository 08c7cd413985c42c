"""`POST /v1/chat/completions`: from a model as it is, or out of documents."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from common.errors import InvalidInput, RagsiteError
from inference.base import ChatMessage, ChatModel
from rag.asking import context_of
from rag.context import RagContext
from rag.events import Event
from rag.openai.base import OpenAIView
from rag.openai.catalogue import PIPELINE, chat_named, pipeline_named
from rag.openai.chat_inputs import ASK_DOCUMENTS, CompletionInput, options_of
from rag.openai.chat_serializers import CompletionSerializer
from rag.openai.completions import Completion, when_it_speaks
from rag.openai.direct import Direct
from rag.openai.turns import conversation_of, read_choice, read_messages, read_tools
from rag.services.chatting import SEARCH_OPTIONS, Question, chat
from rag.streaming import answered


@extend_schema(tags=["openai"])
class CompletionsView(OpenAIView):
    """Answers."""

    asks_model = True

    @extend_schema(
        operation_id="openai_chat_completions",
        summary="Complete a chat as OpenAI does",
        description=(
            "With `collections`, and wherever no chat model is connected, the answer is made out of"
            " documents and its message has `citations`. Streamed, each event is a chunk of"
            " OpenAI's and the last `[DONE]`; an answer that breaks off ends with an object"
            " `error`. Fields that are not listed are passed over."
        ),
        request=CompletionInput,
        responses={200: CompletionSerializer},
        examples=[ASK_DOCUMENTS],
    )
    def post(self, request: Request) -> HttpResponseBase:
        asked = self.body(CompletionInput)
        context = _context(self, asked)
        events, completion = _answer(asked, context)
        return answered(
            events,
            request=request,
            cancelled=context.cancelled,
            streams=asked["stream"],
            whole=completion.whole,
            encode=completion.encoded,
        )


def _context(view: OpenAIView, asked: dict[str, Any]) -> RagContext:
    extras = asked.get("ragsite") or {}
    collections = [*(asked.get("collections") or ()), *(extras.get("collections") or ())]
    return context_of(
        view,
        collections=tuple(dict.fromkeys(collections)),
        filter=extras.get("filter"),
        memory_user=asked.get("user") or None,
    )


def _memory(asked: dict[str, Any], context: RagContext) -> bool | None:
    """What the request says of memory; None leaves it to the site. OpenAI's clients send any
    `user` as a label: one whose memory the caller may not use gets none, unless it is asked for."""
    wanted: bool | None = (asked.get("ragsite") or {}).get("memory")
    if wanted is None and context.memory_user is not None:
        try:
            _ = context.memory_scope
        except RagsiteError:
            return False
    return wanted


def _answer(asked: dict[str, Any], context: RagContext) -> tuple[Iterator[Event], Completion]:
    """The events of the answer, and what puts them into OpenAI's shape. Raises RagsiteError."""
    extras = asked.get("ragsite") or {}
    name = asked["model"]
    if slug := extras.get("pipeline"):
        name = f"{PIPELINE}{slug}"
    messages = read_messages(asked["messages"])
    with_usage = bool((asked.get("stream_options") or {}).get("include_usage"))
    if name.startswith(PIPELINE):
        slug = pipeline_named(name, context=context)
        events = _from_documents(asked, messages, context, pipeline=slug)
        return events, Completion(model=name, with_usage=with_usage)
    model = chat_named(name)
    from_documents = extras.get("filter") or extras.get("whole") or _search_options(asked)
    if model is None or context.collections or from_documents:
        events = _from_documents(asked, messages, context, model=name)
        return events, Completion(model=name, with_usage=with_usage)
    direct = _direct(asked, messages, context, model)
    completion = Completion(
        model=model.model_name, tool_calls=lambda: direct.tool_calls, with_usage=with_usage
    )
    return direct.events(), completion


def _search_options(asked: dict[str, Any]) -> dict[str, Any]:
    extras = asked.get("ragsite") or {}
    return {name: extras[name] for name in SEARCH_OPTIONS if extras.get(name) is not None}


def _direct(
    asked: dict[str, Any], messages: list[ChatMessage], context: RagContext, model: ChatModel
) -> Direct:
    tools = read_tools(asked.get("tools") or [])
    memory = _memory(asked, context)
    if memory is None:
        memory = settings.MEMORY_INJECTION and context.allows("memory")
    return Direct(
        model=model,
        messages=messages,
        context=context,
        options=options_of(asked),
        tools=tools,
        tool_choice=read_choice(asked.get("tool_choice"), tools),
        memory=memory,
    )


def _from_documents(
    asked: dict[str, Any],
    messages: list[ChatMessage],
    context: RagContext,
    *,
    model: str = "",
    pipeline: str = "",
) -> Iterator[Event]:
    if asked.get("tools") and asked.get("tool_choice") != "none":
        raise InvalidInput(
            "An answer out of documents, by quoting or by a pipeline calls no tools of yours. Leave"
            " `tools` out, or ask a chat model without `collections`.",
            field="tools",
        )
    talk = conversation_of(messages)
    question = Question(
        message=talk.question,
        history=talk.history,
        pipeline=pipeline,
        model=model,
        memory=_memory(asked, context),
        whole=(asked.get("ragsite") or {}).get("whole"),
        search_options=_search_options(asked),
        options=options_of(asked, instructions=talk.instructions),
    )
    return when_it_speaks(chat(question, context=context, keep=False))
