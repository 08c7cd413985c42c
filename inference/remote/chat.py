"""Chat models behind HTTP: options, deadlines, and putting messages together from what servers
send. A backend adds its wire format: see `RemoteChat`.
"""

import json
import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Unpack
from uuid import uuid4

import httpx2

from inference.interfaces import (
    AnswerRefused,
    BackendUnavailable,
    ChatMessage,
    ChatOptions,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
    ToolCall,
    Usage,
    replace_surrogates,
)
from inference.reasoning import Part, Reasoning, ReasoningSplitter
from inference.remote.client import JsonClient
from inference.remote.retry import RetryableError, ServerRefused, quick_policy, server_text

Fields = Mapping[str, Any]
#: Makes what connects to the server: see JsonClient.
Transport = Callable[[], httpx2.BaseTransport]

END_EVENT = "[DONE]"
NAMELESS_CALL = "The answer's `tool_calls` are not functions with names. Update the server."
TRUNCATED = {"length", "max_tokens", "model_context_window_exceeded"}
REFUSED = {"content_filter", "refusal"}
FAILED = {"error"}  # OpenRouter, for a provider that fails in the middle


class PartialAnswer:
    """A message that is put together from the events of a stream, or from one complete answer."""

    def __init__(
        self, *, is_complete: bool = False, splitter: ReasoningSplitter | None = None
    ) -> None:
        self.is_complete = is_complete
        self.has_ended = is_complete
        self.finish_reason = ""
        self.refusal = ""
        self.counts: dict[str, Any] = {}
        self.usage: Usage | None = None
        self._unread = ""  # what the first event lacks that was passed over
        self._splitter = splitter or ReasoningSplitter()
        self._parts: list[Part] = []  # that `take_parts` has not returned yet
        self._pieces: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._positions: dict[Hashable, int] = {}

    def add_text(self, text: str) -> None:
        """Add text, in which reasoning may be marked by tags."""
        if text:
            self._add(self._splitter.feed(text))

    def add_reasoning(self, text: str) -> None:
        """Add reasoning that the server tells apart itself."""
        if text:
            self._add([Reasoning(text)])

    def take_parts(self) -> list[Part]:
        """The parts since the last call."""
        parts, self._parts = self._parts, []
        return parts

    def end(self) -> None:
        """Nothing comes any more."""
        self._add(self._splitter.finish(truncated=self.finish_reason in TRUNCATED))

    def _add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._parts.append(part)
            if isinstance(part, str):
                self._pieces.append(part)
                continue
            if part.withdraws:
                self._pieces.clear()
            self._thoughts.append(part.text)

    def pass_over(self, lacks: str) -> None:
        """Take an event of a stream that is of another shape, such as a keep-alive or one with
        nothing but the usage; the message is malformed only where all of them are. Raises
        MalformedAnswer, which says what it `lacks`, for a complete answer.
        """
        if self.is_complete:
            raise MalformedAnswer(lacks)
        self._unread = self._unread or lacks

    def add_call(self, key: Hashable, *, id: str = "", name: Any = "", arguments: str = "") -> None:
        """Add a call or a piece of one; `key` identifies the call of a piece. A different id begins
        another call: some servers give all calls index 0.
        """
        if name is not None and not isinstance(name, str):
            raise MalformedAnswer(NAMELESS_CALL)
        at = self._positions.get(key)
        if at is None or (id and self._calls[at].id and id != self._calls[at].id):
            at = self._positions[key] = len(self._calls)
            self._calls.append(ToolCall("", "", ""))
        begun = self._calls[at]
        self._calls[at] = ToolCall(
            begun.id or id, begun.name or name or "", begun.arguments + arguments
        )

    def add_arguments(self, key: Hashable, arguments: str) -> None:
        """Add to the arguments of a call that has begun; other blocks' are left out."""
        if key in self._positions:
            self.add_call(key, arguments=arguments)

    def count_usage(self, counts: Any, read: str, written: str, *cached: str) -> None:
        """Take token counts, by these names; `cached` ones are added to those read. Servers that
        send none, or no numbers, are not asked for them.
        """
        self.counts |= counts if isinstance(counts, dict) else {}
        numbers = {name: count for name, count in self.counts.items() if type(count) is int}
        if read in numbers and written in numbers:
            inputs = sum(numbers.get(name, 0) for name in (read, *cached))
            self.usage = Usage(input_tokens=inputs, output_tokens=numbers[written])

    def message(self) -> ChatMessage:
        """The finished message; each call has a unique id, and {} for empty arguments.

        Raises AnswerRefused, EmptyAnswer, MalformedAnswer for a call without a name, and
        BackendUnavailable for a truncated stream.
        """
        if not all(call.name for call in self._calls):
            raise MalformedAnswer(NAMELESS_CALL)
        has_said = self._pieces or self._thoughts or self._calls or self.finish_reason
        if self._unread and not has_said:
            raise MalformedAnswer(self._unread)
        if self.finish_reason in FAILED:
            raise BackendUnavailable("The server broke off the answer. See its log.")
        if not self.has_ended and not self.finish_reason:
            raise BackendUnavailable(
                "The stream ended before the answer did. Ask again, or see the server's log."
            )
        if self.refusal or self.finish_reason in REFUSED:
            reason = self.refusal or "a filter stopped it"
            raise AnswerRefused(
                f"The model declines to answer: {reason}. Rephrase the question, or choose another"
                " model."
            )
        content, truncated = "".join(self._pieces), self.finish_reason in TRUNCATED
        reasoning = "".join(self._thoughts)
        if not content.strip() and not self._calls:
            raise EmptyAnswer(
                "The model used up its tokens before the first word. Raise max_tokens, or turn off"
                " its thinking."
                if truncated
                else "The model thought and then gave no answer. Ask again, or turn off its"
                " thinking."
                if reasoning
                else "The model gave an empty answer. Rephrase the question, or choose another"
                " model."
            )
        calls: dict[str, ToolCall] = {}
        for call in self._calls:
            id = call.id if call.id and call.id not in calls else f"call_{uuid4().hex[:24]}"
            arguments = call.arguments if call.arguments.strip() else "{}"
            calls[id] = ToolCall(id, call.name, arguments)
        return ChatMessage(
            "assistant",
            content,
            tuple(calls.values()),
            truncated=truncated,
            usage=self.usage,
            reasoning=reasoning,
        )


def text_field(fields: Fields, key: str) -> str:
    """The text; "" where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedAnswer(f"the answer's {key!r} is no text: update the server.")
    return value or ""


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, for protocols that need one; text that is no object becomes a
    field of one.
    """
    text = replace_surrogates(call.arguments)
    with suppress(ValueError, RecursionError):
        if isinstance(arguments := json.loads(text), dict):
            return arguments
    return {"arguments": text}


def without_empty(**fields: object) -> dict[str, object]:
    """The fields that are neither None nor empty."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


TIMEOUT = 120.0
ATTEMPTS = 7  # over about 13 s, in which a server that has just started loads a small model
SAMPLING_FIELDS = {"temperature", "top_p"}
# OpenAI's reasoning models: "Unsupported value: 'temperature' does not support 0.1 with this
# model"; Claude: "`temperature` is deprecated for this model", or "`temperature` and `top_p` cannot
# both be specified". A value out of its range is said otherwise, and is an error.
UNSUPPORTED_SAMPLING = re.compile(
    r"(temperature|top_p).*(support|deprecated|cannot both)|unsupported.*(temperature|top_p)",
    re.IGNORECASE,
)
# OpenAI, vLLM: "This model's maximum context length is 4096 tokens"; llama.cpp: "exceeds the
# available context size (4096 tokens)"; LM Studio: "with context length of only 4096 tokens".
CONTEXT_LENGTH = re.compile(r"context (?:length|size|window)\D{0,60}?(\d{3,8})\b", re.IGNORECASE)
RETRYABLE_ERRORS = ("overloaded_error", "rate_limit_error", "api_error", "timeout_error")
BAD_REQUEST_CURE = (
    "Check the model's name and the OPTIONS. A conversation too long for it must be shortened."
)
LATE_CURE = "Set a longer timeout or smaller max_tokens, or give the server less to do."

logger = logging.getLogger(__name__)


class RemoteChat(ABC):
    """A chat model over HTTP. A subclass builds the request for `path` and reads the answer."""

    path: str
    protocol: str  # whose, for error messages
    last_field: tuple[str, object] | None = None  # of a stream's last event, where it is JSON
    #: Of a million tokens read and written, where they are known.
    input_price: float | None = None
    output_price: float | None = None

    def __init__(
        self,
        client: JsonClient,
        *,
        model: str,
        max_tokens: int | None,
        temperature: float | None,
        send_temperature: bool,
        timeout: float,
        attempts: int,
        context_tokens: int | None = None,
    ) -> None:
        """Raises BackendUnavailable for options that are not above 0."""
        options = {"max_tokens": max_tokens, "timeout": timeout, "attempts": attempts}
        options["context_tokens"] = context_tokens
        for name, value in options.items():
            if value is not None and value <= 0:
                raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")
        self._client = client
        self.model_name = model
        self.context_tokens = context_tokens
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._send_temperature = send_temperature
        self._timeout = timeout
        self._attempts = attempts
        self._begins_inside = False  # whether messages begin with reasoning and mark only its end

    @abstractmethod
    def _payload(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, stream: bool
    ) -> dict[str, object]:
        """The JSON body of the request. All `options` are there, with the configuration's
        defaults.
        """

    @staticmethod
    @abstractmethod
    def read(fields: Fields, answer: PartialAnswer) -> None:
        """Add an event of a stream, or a complete answer, to `answer`. Raises MalformedAnswer."""

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        """The assistant's next message. Raises InferenceError."""
        payload, within = self._request(messages, options, stream=False)
        return self.parse_message(self._answer(payload, **within), self._client.secrets)

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[Part, None, ChatMessage]:
        """The message's pieces, as they come; returns the whole. Raises InferenceError."""
        payload, within = self._request(messages, options, stream=True)
        splitter = ReasoningSplitter(begins_inside=self._begins_inside)
        with closing(self._events(payload, **within)) as events:
            message = yield from self.parse_stream(events, self._client.secrets, splitter)
        self._begins_inside = splitter.is_unopened
        return message

    @classmethod
    def parse_message(cls, fields: Any, secrets: tuple[str, ...] = ()) -> ChatMessage:
        """The message of a complete answer. `secrets` are removed from quotations of the server.

        Raises as `PartialAnswer.message`, and BackendUnavailable for an error with status 200.
        """
        answer = PartialAnswer(is_complete=True)
        cls.read(_checked(fields, secrets), answer)
        answer.end()
        return answer.message()

    @classmethod
    def parse_stream(
        cls,
        events: Iterable[str],
        secrets: tuple[str, ...] = (),
        splitter: ReasoningSplitter | None = None,
    ) -> Generator[Part, None, ChatMessage]:
        """Pieces of text and of reasoning from a stream's events; returns the whole message. Raises
        as for a complete answer.
        """
        answer = PartialAnswer(splitter=splitter)
        for data in events:
            if data.strip() == END_EVENT:
                answer.has_ended = True
                break
            if not data.strip():  # a keep-alive
                continue
            try:
                event = json.loads(data)
            except (ValueError, RecursionError) as error:
                raise MalformedAnswer(
                    f"An event of the stream is not JSON: {server_text(data.encode(), secrets)}."
                    f" Check that base_url is that of a server of {cls.protocol}."
                ) from error
            cls.read(_checked(event, secrets), answer)
            yield from answer.take_parts()
            if answer.has_ended:
                break
        answer.end()
        yield from answer.take_parts()
        return answer.message()

    def _request(
        self, messages: Sequence[ChatMessage], options: ChatOptions, *, stream: bool
    ) -> tuple[dict[str, object], dict[str, Any]]:
        """The body of the request, and the limits of time for the client."""
        if not messages:
            raise InferenceError("The conversation has no message. Pass at least one.")
        tools, choice = options.get("tools", ()), options.get("tool_choice")
        names = [str(tool["name"]) for tool in tools]
        if names and choice not in {None, "auto", "none", "required", *names}:
            raise InferenceError(
                f"tool_choice {choice!r} is none of the tools given: pass auto, none, required or"
                f" one of {', '.join(names)}."
            )
        max_tokens, temperature = options.get("max_tokens"), options.get("temperature")
        temperature = self._temperature if temperature is None else temperature
        complete: ChatOptions = {
            "tools": tools,
            "tool_choice": choice if names else None,  # servers reject a choice among none
            "max_tokens": self._max_tokens if max_tokens is None else max_tokens,
            "temperature": temperature if self._send_temperature else None,
            "top_p": options.get("top_p") if self._send_temperature else None,
            "stop": options.get("stop", ()),
        }
        timeout = options.get("timeout")
        seconds = self._timeout if timeout is None else timeout
        return self._payload(messages, complete, stream=stream), {
            "patience": quick_policy(seconds, attempts=self._attempts),
            "deadline": time.monotonic() + seconds,
        }

    def _answer(self, payload: dict[str, object], **within: Any) -> Any:
        try:
            return self._client.post(self.path, payload, **within)
        except ServerRefused as refused:
            self._learn_context(refused)
            if not (lighter := self._lighter(payload, refused)):
                raise
        return self._answer(lighter, **within)

    def _events(self, payload: dict[str, object], **within: Any) -> Generator[str, None, None]:
        try:
            events = self._client.stream(
                self.path,
                payload,
                last=self._is_last,
                passing=lambda first: retryable_error(first, self._client.secrets),
                **within,
            )
            with closing(events):
                yield from events
                return
        except ServerRefused as refused:  # which none does after its first event
            self._learn_context(refused)
            if not (lighter := self._lighter(payload, refused)):
                raise
        yield from self._events(lighter, **within)

    def _is_last(self, event: str) -> bool:
        """Whether this is the last event of the stream."""
        if self.last_field is None or event.strip() == END_EVENT:
            return event.strip() == END_EVENT
        name, value = self.last_field
        fields = None
        with suppress(ValueError, RecursionError):
            fields = json.loads(event)
        return isinstance(fields, dict) and fields.get(name) == value

    def _learn_context(self, refused: ServerRefused) -> None:
        """Remember the context length that the server names where a conversation is too long."""
        if refused.too_large and (named := CONTEXT_LENGTH.search(refused.said)):
            tokens = int(named[1])
            self.context_tokens = min(self.context_tokens or tokens, tokens)

    def _lighter(
        self, payload: dict[str, object], refused: ServerRefused
    ) -> dict[str, object] | None:
        """`payload` without sampling parameters that the server rejects; None where the refusal has
        another reason.
        """
        if not (payload.keys() & SAMPLING_FIELDS and UNSUPPORTED_SAMPLING.search(refused.said)):
            return None
        logger.warning(
            "%s takes no temperature and top_p: they are left out from now on", self.model_name
        )
        self._send_temperature = False
        return {name: value for name, value in payload.items() if name not in SAMPLING_FIELDS}


def retryable_error(data: str, secrets: tuple[str, ...] = ()) -> RetryableError | None:
    """The retryable error, where an event reports an overload."""
    if any(kind in data for kind in RETRYABLE_ERRORS):
        with suppress(ValueError, RecursionError):
            event = json.loads(data)
            if isinstance(event, dict) and event.get("type") == "error":
                return RetryableError(str(_stream_error(event, secrets)))
    return None


def _checked(fields: Any, secrets: tuple[str, ...]) -> Fields:
    """`fields`, or {} where they are no object. Raises BackendUnavailable for a server's error."""
    if not isinstance(fields, dict):
        return {}
    # vLLM: {"object": "error", "message": …}
    if fields.get("error") or "error" in {fields.get("type"), fields.get("object")}:
        raise _stream_error(fields, secrets)
    return fields


def _stream_error(fields: Fields, secrets: tuple[str, ...]) -> BackendUnavailable:
    said = server_text(json.dumps(fields).encode(), secrets)
    return BackendUnavailable(f"the server breaks off: {said}. See its log.")
