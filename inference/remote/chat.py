"""Base of chat models behind HTTP: options, deadlines, reading of answers and tool calls."""

import json
import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from inference.interfaces import (
    AnswerRefused,
    BackendUnavailable,
    ChatMessage,
    EmptyAnswer,
    InferenceError,
    MalformedAnswer,
    ToolCall,
    Usage,
    replace_surrogates,
)
from inference.remote.client import StreamClient
from inference.remote.retry import RetryableError, ServerRefused, quick_policy, server_text


def finished_message(
    *,
    content: str,
    tool_calls: tuple[ToolCall, ...] = (),
    refused: bool = False,
    refusal: str = "",
    truncated: bool = False,
    usage: Usage | None = None,
) -> ChatMessage:
    """The message of a finished answer. Raises AnswerRefused or EmptyAnswer."""
    if refused or refusal:
        raise AnswerRefused(
            f"the model declines to answer: {refusal or 'a filter stopped it'}. Ask in other words,"
            " or another model."
        )
    if not content.strip() and not tool_calls:
        raise EmptyAnswer(
            "the model used up its tokens before the first word, as models do that think first:"
            " raise max_tokens, or switch its thinking off."
            if truncated
            else "the model answers with nothing: ask in other words, or another model."
        )
    return ChatMessage("assistant", content, tool_calls, truncated=truncated, usage=usage)


def stream_error(answer: Any, secrets: tuple[str, ...]) -> BackendUnavailable:
    """The error for a stream in which the server reports one. `secrets` are removed from it."""
    said = server_text(json.dumps(answer).encode(), secrets)
    return BackendUnavailable(f"the server breaks off: {said}. See its log.")


def incomplete_stream_error() -> BackendUnavailable:
    return BackendUnavailable(
        "the stream ended before the answer did: ask again, or see the server's log."
    )


def read_event(data: str, secrets: tuple[str, ...], *, protocol: str) -> Any:
    """The JSON of an event. Raises MalformedAnswer."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedAnswer(
            f"an event of the stream is no JSON: {server_text(data.encode(), secrets)}. Is base_url"
            f" that of a server of {protocol}?"
        ) from error


def has_field(data: str, key: str, value: object) -> bool:
    """Whether `data` is a JSON object with that field."""
    with suppress(ValueError, RecursionError):
        fields = json.loads(data)
        return isinstance(fields, dict) and fields.get(key) == value
    return False


def text_field(fields: Mapping[str, Any], key: str) -> str:
    """The text; "" where the field is missing or null. Raises MalformedAnswer."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise MalformedAnswer(f"the answer's {key!r} is no text: update the server.")
    return value or ""


def token_usage(fields: Any, read: str, written: str) -> Usage | None:
    """Token counts; None where the server sends none."""
    counted = fields if isinstance(fields, dict) else {}
    inwards, outwards = counted.get(read), counted.get(written)
    if type(inwards) is not int or type(outwards) is not int:
        return None
    return Usage(input_tokens=inwards, output_tokens=outwards)


NAMELESS_CALL = "the answer's `tool_calls` are no functions with a name: update the server."


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


class ToolCallAccumulator:
    """Assembles tool calls from the pieces of a stream; `key` identifies the call of a piece."""

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._by_key: dict[Hashable, _PartialCall] = {}

    def add(self, key: Hashable, *, id: str = "", name: str = "", arguments: str = "") -> None:
        """Add a piece. A different id begins another call: some servers give all calls index 0."""
        call = self._by_key.get(key)
        if call is None or (id and call.id and id != call.id):
            call = self._by_key[key] = _PartialCall()
            self._calls.append(call)
        call.id = call.id or id
        call.name = call.name or name
        call.arguments += arguments

    def finished(self) -> tuple[ToolCall, ...]:
        """The calls in order. Raises MalformedAnswer for one without a name."""
        if not all(call.name for call in self._calls):
            raise MalformedAnswer(NAMELESS_CALL)
        return with_unique_ids(
            [ToolCall(call.id, call.name, call.arguments) for call in self._calls]
        )


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, for protocols that need one; text that is no object becomes a
    field of one.
    """
    try:
        arguments = json.loads(replace_surrogates(call.arguments))
    except (ValueError, RecursionError):
        arguments = None
    return (
        arguments
        if isinstance(arguments, dict)
        else {"arguments": replace_surrogates(call.arguments)}
    )


def with_unique_ids(calls: list[ToolCall]) -> tuple[ToolCall, ...]:
    """`calls` with a unique id each, and {} for empty arguments."""
    seen: set[str] = set()
    disambiguated = []
    for call in calls:
        own = call.id if call.id and call.id not in seen else f"call_{uuid4().hex[:24]}"
        seen.add(own)
        disambiguated.append(
            ToolCall(own, call.name, call.arguments if call.arguments.strip() else "{}")
        )
    return tuple(disambiguated)


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
BAD_REQUEST_CURE = (
    "Check the model's name and the OPTIONS. A conversation too long for it must be shortened."
)
LATE_CURE = "Set a longer timeout or smaller max_tokens, or give the server less to do."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The parameters of one call, with the configuration's defaults."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, object]]
    tool_choice: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: Sequence[str]


class RemoteChat(ABC):
    """A chat model over HTTP; a subclass builds the request for `path` and parses the answer."""

    path: str

    def __init__(
        self,
        client: StreamClient,
        *,
        model: str,
        max_tokens: int | None,
        temperature: float | None,
        send_temperature: bool,
        timeout: float,
        attempts: int,
    ) -> None:
        """Raises BackendUnavailable for options that are not above 0."""
        options = {"max_tokens": max_tokens, "timeout": timeout, "attempts": attempts}
        for name, value in options.items():
            if value is not None and value <= 0:
                raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")
        self._client = client
        self.model_name = model
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._send_temperature = send_temperature
        self._timeout = timeout
        self._attempts = attempts

    @abstractmethod
    def _payload(self, wish: ChatRequest, *, stream: bool) -> dict[str, object]:
        """The JSON body of the request."""

    @abstractmethod
    def _parse_answer(self, answer: Any) -> ChatMessage:
        """The message of a complete answer. Raises InferenceError."""

    @abstractmethod
    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        """Pieces of text from a stream's events; returns the message. Raises InferenceError."""

    @abstractmethod
    def _is_last(self, event: str) -> bool:
        """Whether this is the last event of the stream."""

    def _passing(self, first: str) -> RetryableError | None:
        """The retryable error that the first event reports, if any."""
        return None

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        tool_choice: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        timeout: float | None = None,
    ) -> ChatMessage:
        """The assistant's next message. Raises InferenceError."""
        wish = self._wish(messages, tools, tool_choice, max_tokens, temperature, top_p, stop)
        payload = self._payload(wish, stream=False)
        return self._parse_answer(self._answer(payload, **self._within(timeout)))

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        tool_choice: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: Sequence[str] = (),
        timeout: float | None = None,
    ) -> Generator[str, None, ChatMessage]:
        """The message's pieces, as they come; returns the whole. Raises InferenceError."""
        wish = self._wish(messages, tools, tool_choice, max_tokens, temperature, top_p, stop)
        payload = self._payload(wish, stream=True)
        with closing(self._events(payload, **self._within(timeout))) as events:
            return (yield from self._streamed(events))

    def _answer(self, payload: dict[str, object], **within: Any) -> Any:
        try:
            return self._client.post(self.path, payload, **within)
        except ServerRefused as refused:
            if not (lighter := self._lighter(payload, refused)):
                raise
        return self._answer(lighter, **within)

    def _events(self, payload: dict[str, object], **within: Any) -> Generator[str, None, None]:
        try:
            events = self._client.stream(
                self.path, payload, last=self._is_last, passing=self._passing, **within
            )
            with closing(events):
                yield from events
                return
        except ServerRefused as refused:  # which none does after its first event
            if not (lighter := self._lighter(payload, refused)):
                raise
        yield from self._events(lighter, **within)

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

    def _wish(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, object]],
        tool_choice: str | None,
        max_tokens: int | None,
        temperature: float | None,
        top_p: float | None,
        stop: Sequence[str],
    ) -> ChatRequest:
        if not messages:
            raise InferenceError("a conversation without a message: pass one at least.")
        freedom = self._temperature if temperature is None else temperature
        return ChatRequest(
            messages=messages,
            tools=tools,
            tool_choice=_checked_choice(tool_choice, tools),
            max_tokens=self._max_tokens if max_tokens is None else max_tokens,
            temperature=freedom if self._send_temperature else None,
            top_p=top_p if self._send_temperature else None,
            stop=stop,
        )

    def _within(self, timeout: float | None) -> dict[str, Any]:
        seconds = self._timeout if timeout is None else timeout
        return {
            "patience": quick_policy(seconds, attempts=self._attempts),
            "deadline": time.monotonic() + seconds,
        }


def without_empty(**fields: object) -> dict[str, object]:
    """The fields that are neither None nor empty."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


def _checked_choice(choice: str | None, tools: Sequence[Mapping[str, object]]) -> str | None:
    """None without tools: servers reject a choice among none."""
    names = [str(tool["name"]) for tool in tools]
    if choice is None or not names or choice in {"auto", "none", "required", *names}:
        return choice if names else None
    raise InferenceError(
        f"tool_choice {choice!r} is none of the tools given: pass auto, none, required or one of"
        f" {', '.join(names)}."
    )
