"""Events of an answer as OpenAI's chat completions: piece by piece, or whole."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from time import time
from typing import Any
from uuid import uuid4

from inference.base import ToolCall
from rag.events import Cited, Done, Event, Failed, Metadata, Token, text_of
from rag.openai.errors import failure

END = b"data: [DONE]\n\n"
_FINISH = {"refused": "stop"}


class Completion:
    """One answer. Sources stand in the field `citations` of its message, which OpenAI's clients
    hand on as they do any field that they do not know; `ragsite` says how it came about."""

    def __init__(
        self,
        *,
        model: str,
        tool_calls: Callable[[], Sequence[ToolCall]] = tuple,
        with_usage: bool = False,
    ) -> None:
        """`tool_calls` are asked for when the answer is done."""
        self._id = f"chatcmpl-{uuid4().hex}"
        self._created = int(time())
        self._model = model
        self._tool_calls = tool_calls
        self._with_usage = with_usage
        self._citations: list[dict[str, Any]] = []
        self._beginning: Metadata | None = None

    def encoded(self, event: Event) -> bytes:
        """What of a stream the event is; nothing for those that OpenAI does not know."""
        if isinstance(event, Metadata):
            self._begin(event)
            return self._chunk({"role": "assistant", "content": ""})
        if isinstance(event, Token):
            return self._chunk({"content": event.text})
        if isinstance(event, Cited):
            self._citations.append(event.data())
        if isinstance(event, Done):
            return b"".join(self._end(event))
        if isinstance(event, Failed):
            return _line(failure(event))
        return b""

    def whole(self, events: Sequence[Event]) -> dict[str, Any]:
        """The completion that all events of an answer make."""
        for event in events:
            if isinstance(event, Metadata):
                self._begin(event)
            if isinstance(event, Cited):
                self._citations.append(event.data())
        done = events[-1]
        assert isinstance(done, Done)
        calls = [_call(each) for each in self._tool_calls()]
        message = {
            "role": "assistant",
            "content": text_of(events) or (None if calls else ""),
            "refusal": None,
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
            "ragsite": self._about(done),
        }

    def _begin(self, event: Metadata) -> None:
        self._beginning = event
        if not event.pipeline:  # which is called as it was asked for
            self._model = event.model or self._model

    def _end(self, done: Done) -> Iterator[bytes]:
        for at, call in enumerate(self._tool_calls()):
            yield self._chunk({"tool_calls": [{"index": at, **_call(call)}]})
        yield self._chunk(self._sources(), finish=_finish(done), ragsite=self._about(done))
        if self._with_usage:
            fields = {"choices": [], "usage": _usage(done)}
            yield _line({**self._head("chat.completion.chunk"), **fields})
        yield END

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self._with_usage else {}
        head = self._head("chat.completion.chunk")
        return _line({**head, "choices": [choice], **usage, **more})

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "system_fingerprint": None,
        }

    def _sources(self) -> dict[str, Any]:
        """An answer out of documents has citations, if only none."""
        from_documents = self._beginning and self._beginning.question
        return {"citations": self._citations} if from_documents else {}

    def _about(self, done: Done) -> dict[str, Any]:
        beginning = self._beginning
        remembered = beginning.memory if beginning else None
        return {
            "generator": beginning.generator if beginning else "model",
            "pipeline": beginning.pipeline if beginning else None,
            "memory": remembered.data() if remembered else None,
            "verdict": done.verdict.data(),
            "trace": done.trace,
        }


def when_it_speaks(events: Iterator[Event]) -> Iterator[Event]:
    """The same events, none of them before the first word: what fails until then is an error rather
    than an answer that breaks off."""
    with closing(events):  # type: ignore[type-var]  # they are generators
        held: list[Event] = []
        for event in events:
            if isinstance(event, Failed):
                yield event
                return
            held.append(event)
            if isinstance(event, Token | Done):
                break
        yield from held
        yield from events


def _finish(done: Done) -> str:
    return _FINISH.get(done.finish_reason, done.finish_reason)


def _usage(done: Done) -> dict[str, int]:
    return {
        "prompt_tokens": done.input_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": done.input_tokens + done.output_tokens,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _line(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
