"""`POST /v1/messages`: Anthropic's Messages API, answered as `/v1/chat/completions` is.
Begin with `MessagesView`.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.http.response import HttpResponseBase

from accounts.api import operation
from common.sse import format_event
from memory.injection import estimated_tokens
from rag.answer_stream import answer_response
from rag.anthropic.messages_schema import (
    AnthropicConversationSerializer,
    AnthropicMessageRequestSerializer,
    AnthropicMessageSerializer,
    AnthropicTokensSerializer,
    read_conversation,
)
from rag.anthropic.protocol import AnthropicView, error_data
from rag.context import context_of_view
from rag.events import (
    Citation,
    Done,
    Event,
    Failed,
    Metadata,
    ReasoningToken,
    Token,
    answer_text,
    reasoning_text,
)
from rag.openai.chat import AnswerFormat, answer_chat
from rag.openai.models import PIPELINE_PREFIX, get_chat_model, get_pipeline_id

PING = format_event("ping", {"type": "ping"})
_STOP_REASONS = {"length": "max_tokens"}


class Message(AnswerFormat):
    """Converts one answer to Anthropic's format, streamed or as one object: a block of what the
    model thought, if it did, and a block of text, whose citations are Anthropic's."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._id = f"msg_{uuid4().hex}"
        self._blocks = 0
        self._open = ""  # the type of the block that is being sent

    def encode(self, event: Event) -> bytes:
        """An event as events of Anthropic's; empty for those that it does not have."""
        self._note(event)
        match event:
            case Metadata():
                encoded = self._event("message_start", message=self._head()) + PING
            case Token():
                encoded = self._delta("text", type="text_delta", text=event.text)
            case ReasoningToken():  # what was sent before cannot be withdrawn here
                encoded = self._delta("thinking", type="thinking_delta", thinking=event.text)
            case Citation():
                encoded = self._delta("text", type="citations_delta", citation=_citation(event))
            case Done():
                delta = {"stop_reason": _stop_reason(event), "stop_sequence": None}
                fields = {"delta": delta, "usage": _usage(event), **self._own_fields(event)}
                encoded = self._close_block() + self._event("message_delta", **fields)
                encoded += self._event("message_stop")
            case Failed():
                error = error_data(event.detail, event.code, event.status)
                encoded = format_event("error", error)
            case _:
                encoded = b""
        return encoded

    def to_object(self, events: Sequence[Event]) -> dict[str, Any]:
        """The message for all events of an answer."""
        for event in events:
            self._note(event)
        done = events[-1]
        assert isinstance(done, Done)
        blocks: list[dict[str, Any]] = []
        if thought := reasoning_text(events):
            blocks.append({"type": "thinking", "thinking": thought, "signature": ""})
        if text := answer_text(events):
            cited = [_citation(event) for event in events if isinstance(event, Citation)]
            blocks.append({"type": "text", "text": text, **({"citations": cited} if cited else {})})
        return {
            **self._head(),
            "content": blocks,
            "stop_reason": _stop_reason(done),
            "usage": _usage(done),
            **self._own_fields(done),
        }

    def _head(self) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def _own_fields(self, done: Done) -> dict[str, Any]:
        return {**self._sources(), "ragsite": self._ragsite_fields(done)}

    def _delta(self, kind: str, **delta: Any) -> bytes:
        """A piece of a block of this type, which is begun unless it is being sent."""
        begun = b""
        if self._open != kind:
            begun = self._close_block()
            self._open = kind
            signature = {"signature": ""} if kind == "thinking" else {}
            block = {"type": kind, kind: "", **signature}
            begun += self._event("content_block_start", index=self._blocks, content_block=block)
        return begun + self._event("content_block_delta", index=self._blocks, delta=delta)

    def _close_block(self) -> bytes:
        if not self._open:
            return b""
        ended = self._event("content_block_stop", index=self._blocks)
        self._open = ""
        self._blocks += 1
        return ended

    @staticmethod
    def _event(name: str, **fields: Any) -> bytes:
        return format_event(name, {"type": name, **fields})


def _stop_reason(done: Done) -> str:
    return _STOP_REASONS.get(done.finish_reason, "end_turn")


def _usage(done: Done) -> dict[str, int]:
    return {"input_tokens": done.input_tokens, "output_tokens": done.output_tokens}


def _citation(event: Citation) -> dict[str, Any]:
    """A source as Anthropic has those of search results: each passage is one of a single block."""
    return {
        "type": "search_result_location",
        "cited_text": event.quote,
        "source": str(event.passage.url),
        "title": event.passage.title,
        "search_result_index": event.passage.number - 1,
        "start_block_index": 0,
        "end_block_index": 1,
    }


class MessagesView(AnthropicView):
    """`POST /v1/messages`, answered by a model or from documents."""

    asks_model = True

    @operation(
        takes=AnthropicMessageRequestSerializer,
        gives=AnthropicMessageSerializer,
        operation_id="anthropic_messages",
    )
    def post(self, **body: Any) -> HttpResponseBase:
        """Continue a conversation as Anthropic does.

        With `collections`, and wherever no chat model is connected, the answer is made out of
        documents and its text has `citations`. Streamed, the events are Anthropic's; an answer that
        breaks off ends with the event `error`. Fields that are not listed are passed over, except
        `tools` and others that would change the answer.
        """
        answer = answer_chat(body, read_conversation(body), view=self)
        message = Message(answer.model)
        return answer_response(
            answer.events,
            request=self.request,
            cancelled=answer.cancelled,
            streams=body["stream"],
            make_body=message.to_object,
            encode=message.encode,
            heartbeat=PING,
        )


class CountTokensView(AnthropicView):
    """`POST /v1/messages/count_tokens`: the length of a conversation."""

    @operation(
        takes=AnthropicConversationSerializer,
        gives=AnthropicTokensSerializer,
        operation_id="anthropic_count_tokens",
    )
    def post(self, **body: Any) -> dict[str, int]:
        """Estimate the tokens of a conversation.

        No model is asked. Passages that an answer from documents reads are not counted.
        """
        context, name = context_of_view(self), body["model"]
        if name.startswith(PIPELINE_PREFIX):
            get_pipeline_id(name, context=context)
        else:
            get_chat_model(name, context=context)
        tokens = sum(estimated_tokens(each.content) for each in read_conversation(body))
        return {"input_tokens": tokens}
