"""`POST /v1/chat/completions`: answered by a chat model directly, or from documents.
Begin with `CompletionsView`.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Event as Flag
from time import perf_counter, time
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.http.response import HttpResponseBase
from django.utils.translation import gettext

from accounts.api import operation
from common import features
from common.errors import InvalidInput, RagsiteError
from common.sql import release_connection
from common.sse import format_event
from inference.interfaces import ChatMessage, ChatModel, ToolCall
from model_servers.token_limits import require_tokens
from rag.answer_stream import answer_response
from rag.context import RagContext, context_of_view
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    InjectedMemory,
    Metadata,
    ReasoningToken,
    Tables,
    Token,
    answer_text,
    reasoning_text,
)
from rag.openai.chat_schema import (
    OpenAIChatCompletionSerializer,
    OpenAIChatRequestSerializer,
    ToolSchema,
    document_question,
    model_options,
    read_messages,
    read_tool_choice,
    read_tools,
)
from rag.openai.models import PIPELINE_PREFIX, get_chat_model, get_pipeline_id
from rag.openai.protocol import OpenAIView, error_data
from rag.services.answers import guarded_events
from rag.services.chat import SEARCH_OPTIONS, chat
from rag.services.questions import Question
from rag.services.user_memory import inject_memory, remember_turn

END = b"data: [DONE]\n\n"
_FINISH = {"refused": "stop"}


class AnswerFormat:
    """What the formats of an answer share. Sources are in the field `citations`, which clients of
    other services pass on like any unknown field; `ragsite` says how the answer was made."""

    def __init__(self, model: str) -> None:
        """`model` is what the request names."""
        self._model = model
        self._citations: list[dict[str, Any]] = []
        self._beginning: Metadata | None = None
        self._tables: Tables | None = None

    def _note(self, event: Event) -> None:
        """Keep what is said at the end of an answer."""
        if isinstance(event, Metadata):
            self._beginning = event
            if not event.pipeline:  # a pipeline keeps the name in the request
                self._model = event.model or self._model
        if isinstance(event, Tables):
            self._tables = event
        if isinstance(event, Citation):
            self._citations.append(event.data())
        if isinstance(event, ReasoningToken) and (start := event.withdrawn_from) is not None:
            self._citations = [each for each in self._citations if each["at"] < start]

    def _sources(self) -> dict[str, Any]:
        """An answer from documents has `citations`, even if empty."""
        from_documents = self._beginning and self._beginning.question
        return {"citations": self._citations} if from_documents else {}

    def _ragsite_fields(self, done: Done) -> dict[str, Any]:
        beginning = self._beginning
        remembered = beginning.memory if beginning else None
        return {
            "generator": beginning.generator if beginning else "model",
            "pipeline": beginning.pipeline if beginning else None,
            "memory": remembered.data() if remembered else None,
            "verdict": done.verdict.data(),
            "tables": self._tables.data() if self._tables else None,
            "trace": done.trace,
        }


class Completion(AnswerFormat):
    """Converts one answer to OpenAI's format, streamed or as one object."""

    def __init__(
        self,
        *,
        model: str,
        tool_calls: Sequence[ToolCall] = (),
        with_usage: bool = False,
    ) -> None:
        """`tool_calls` are looked at when the answer is complete."""
        super().__init__(model)
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(time())
        self._tool_calls = tool_calls
        self._with_usage = with_usage

    def encode(self, event: Event) -> bytes:
        """An event as a chunk of the stream; empty for events that OpenAI does not have."""
        self._note(event)
        if isinstance(event, Metadata):
            return self._chunk({"role": "assistant", "content": ""})
        if isinstance(event, Token):
            return self._chunk({"content": event.text})
        if isinstance(event, ReasoningToken):  # what was sent before cannot be withdrawn here
            return self._chunk({"reasoning_content": event.text})
        if isinstance(event, Done):
            chunks = [
                self._chunk({"tool_calls": [{"index": at, **_tool_call_data(call)}]})
                for at, call in enumerate(self._tool_calls)
            ]
            fields = self._ragsite_fields(event)
            chunks.append(self._chunk(self._sources(), finish=_finish(event), ragsite=fields))
            if self._with_usage:
                usage = {"choices": [], "usage": _usage(event)}
                chunks.append(format_event("", {**self._head("chat.completion.chunk"), **usage}))
            return b"".join([*chunks, END])
        if isinstance(event, Failed):
            return format_event("", error_data(event.detail, event.code, event.status))
        return b""

    def to_object(self, events: Sequence[Event]) -> dict[str, Any]:
        """The completion object for all events of an answer."""
        for event in events:
            self._note(event)
        done = events[-1]
        assert isinstance(done, Done)
        calls = [_tool_call_data(each) for each in self._tool_calls]
        message = {
            "role": "assistant",
            "content": answer_text(events) or (None if calls else ""),
            "refusal": None,
            **({"reasoning_content": thought} if (thought := reasoning_text(events)) else {}),
            **({"tool_calls": calls} if calls else {}),
            **self._sources(),
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish(done),
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(done),
            "ragsite": self._ragsite_fields(done),
        }

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._with_usage else {}
        head = self._head("chat.completion.chunk")
        return format_event("", {**head, "choices": [choice], **usage, **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "system_fingerprint": None,
        }


def hold_until_first_token(events: Iterator[Event]) -> Iterator[Event]:
    """Delay all events until the first token or piece of reasoning, so that an earlier failure is
    an error response and not a broken stream."""
    with closing(events):  # type: ignore[type-var]  # they are generators
        delayed: list[Event] = []
        for event in events:
            if isinstance(event, Failed):
                yield event
                return
            delayed.append(event)
            if isinstance(event, Token | ReasoningToken | Done):
                break
        yield from delayed
        yield from events


def _finish(done: Done) -> str:
    return _FINISH.get(done.finish_reason, done.finish_reason)


def _usage(done: Done) -> dict[str, int]:
    return {
        "prompt_tokens": done.input_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": done.input_tokens + done.output_tokens,
    }


def _tool_call_data(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


logger = logging.getLogger(__name__)


def direct_events(
    messages: Sequence[ChatMessage],
    *,
    model: ChatModel,
    context: RagContext,
    options: Mapping[str, Any],
    tools: Sequence[ToolSchema],
    tool_choice: str | None,
    memory: bool,
    tool_calls: list[ToolCall],
) -> Iterator[Event]:
    """The answer of a chat model to a conversation as it is, without documents; the last event is
    Done, before which `tool_calls` are filled in. None is emitted before the model has begun, so
    that a failing model is an error response and not an answer."""
    began = perf_counter()
    context.require("chat")
    last = messages[-1]
    remembered: InjectedMemory | None = None
    if memory:
        given = [{"role": each.role, "content": each.content} for each in messages]
        contents, remembered = inject_memory(given, context=context)
        messages = [
            replace(each, content=content) for each, content in zip(messages, contents, strict=True)
        ]
    release_connection()
    has_begun = False
    first_ms: float | None = None
    text_parts: list[str] = []
    beginning = Metadata(question="", model=model.model_name, generator="model", memory=remembered)
    stream = model.stream(
        messages,
        tools=tools,
        tool_choice=tool_choice,
        **options,
        timeout=settings.RAG_ANSWER_SECONDS,
    )
    with closing(stream) as pieces:
        while True:
            context.check()
            try:
                piece = next(pieces)
            except StopIteration as end:
                message: ChatMessage = end.value
                break
            if not has_begun:
                has_begun = True
                yield beginning
            if not isinstance(piece, str):
                if piece.withdraws:
                    text_parts.clear()
                yield ReasoningToken(piece.text, withdrawn_from=0 if piece.withdraws else None)
                continue
            if first_ms is None:
                first_ms = _milliseconds_since(began)
            text_parts.append(piece)
            yield Token(piece)
    if not has_begun:
        yield beginning
    tool_calls += message.tool_calls
    if memory and last.role == "user" and not tool_calls:
        remember_turn(last.content, "".join(text_parts), context=context)
    yield Done(
        elapsed_ms=_milliseconds_since(began),
        first_token_ms=first_ms,
        input_tokens=message.usage.input_tokens if message.usage else 0,
        output_tokens=message.usage.output_tokens if message.usage else 0,
        finish_reason=message.finish_reason,
    )


def _milliseconds_since(began: float) -> float:
    return round((perf_counter() - began) * 1000, 1)


class CompletionsView(OpenAIView):
    """`POST /v1/chat/completions`, answered by a model or from documents."""

    asks_model = True

    @operation(
        takes=OpenAIChatRequestSerializer,
        gives=OpenAIChatCompletionSerializer,
        operation_id="openai_chat_completions",
    )
    def post(self, **body: Any) -> HttpResponseBase:
        """Complete a chat as OpenAI does.

        With `collections`, and wherever no chat model is connected, the answer is made out of
        documents and its message has `citations`. Streamed, each event is a chunk of OpenAI's and
        the last `[DONE]`; an answer that breaks off ends with an object `error`. Fields that are
        not listed are passed over.
        """
        answer = answer_chat(body, read_messages(body["messages"]), view=self)
        completion = Completion(
            model=answer.model,
            tool_calls=answer.tool_calls,
            with_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        )
        return answer_response(
            answer.events,
            request=self.request,
            cancelled=answer.cancelled,
            streams=body["stream"],
            make_body=completion.to_object,
            encode=completion.encode,
        )


def _memory(body: dict[str, Any], context: RagContext) -> bool | None:
    """Whether the request wants memory; None means the site's setting. OpenAI's clients send any
    `user` as a label: one whose memory the caller may not use gets none, unless it is asked for."""
    wanted: bool | None = (body.get("ragsite") or {}).get("memory")
    if wanted:
        features.require("memory")
    if wanted is None and context.memory_user is not None:
        try:
            _ = context.memory_scope
        except RagsiteError:
            return False
    return wanted


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """An answer that is about to be made. `model` is the name of who answers, `tool_calls` are
    filled in before the last event."""

    events: Iterator[Event]
    model: str
    cancelled: Flag
    tool_calls: Sequence[ToolCall] = ()


def answer_chat(
    body: dict[str, Any], messages: list[ChatMessage], *, view: OpenAIView
) -> ChatAnswer:
    """Answer `messages`, from documents or directly, as the fields of an OpenAI request say.
    Raises RagsiteError."""
    extras = body.get("ragsite") or {}
    collections = [*(body.get("collections") or ()), *(extras.get("collections") or ())]
    context = context_of_view(
        view,
        collections=tuple(dict.fromkeys(collections)),
        filter=extras.get("filter"),
        memory_user=body.get("user") or None,
    )
    name = body["model"]
    if slug := extras.get("pipeline"):
        name = f"{PIPELINE_PREFIX}{slug}"
    if name.startswith(PIPELINE_PREFIX):
        slug = get_pipeline_id(name, context=context)
        events = _from_documents(body, messages, context, pipeline=slug)
        return ChatAnswer(events, name, context.cancelled)
    model = get_chat_model(name, context=context)
    from_documents = extras.get("filter") or extras.get("whole") or _search_options(body)
    if model is None or context.collections or from_documents:
        events = _from_documents(body, messages, context, model=name)
        return ChatAnswer(events, name, context.cancelled)
    require_tokens(workspace_id=context.workspace.pk, user_id=context.user_id)
    tools = read_tools(body.get("tools") or [])
    memory = _memory(body, context)
    if memory is None:
        memory = settings.MEMORY_INJECTION and context.allows("memory")
    tool_calls: list[ToolCall] = []
    events = direct_events(
        messages,
        model=model,
        context=context,
        options=model_options(body),
        tools=tools,
        tool_choice=read_tool_choice(body.get("tool_choice"), tools),
        memory=memory,
        tool_calls=tool_calls,
    )
    return ChatAnswer(guarded_events(events), model.model_name, context.cancelled, tool_calls)


def _search_options(body: dict[str, Any]) -> dict[str, Any]:
    extras = body.get("ragsite") or {}
    return {name: extras[name] for name in SEARCH_OPTIONS if extras.get(name) is not None}


def _from_documents(
    body: dict[str, Any],
    messages: list[ChatMessage],
    context: RagContext,
    *,
    model: str = "",
    pipeline: str = "",
) -> Iterator[Event]:
    if body.get("tools") and body.get("tool_choice") != "none":
        raise InvalidInput(
            gettext(
                "Answers from documents, by quotation or by a pipeline do not call your"
                " tools. Leave `tools` out, or ask a chat model without `collections`."
            ),
            field="tools",
        )
    message, history, instructions = document_question(messages)
    question = Question(
        message=message,
        history=history,
        pipeline=pipeline,
        model=model,
        memory=_memory(body, context),
        whole=(body.get("ragsite") or {}).get("whole"),
        search_options=_search_options(body),
        model_options=model_options(body),
        instructions=instructions,
    )
    return hold_until_first_token(chat(question, context=context, keep=False))
