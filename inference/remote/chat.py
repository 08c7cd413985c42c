"""What chat models behind HTTP share: options, deadlines, and what a call wishes."""

import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from inference.base import BackendUnavailable, ChatMessage, InferenceError
from inference.remote.errors import PassingFailure, ServerRefused
from inference.remote.pace import quick
from inference.remote.streams import StreamClient

TIMEOUT = 120.0
ATTEMPTS = 7  # over about 13 s, in which a server that has just started loads a small model
FREEDOM = {"temperature", "top_p"}
# OpenAI's reasoning models: "Unsupported value: 'temperature' does not support 0.1 with this
# model"; Claude: "`temperature` is deprecated for this model", or "`temperature` and `top_p` cannot
# both be specified". A value out of its range is said otherwise, and is an error.
NOT_TAKEN = re.compile(
    r"(temperature|top_p).*(support|deprecated|cannot both)|unsupported.*(temperature|top_p)",
    re.IGNORECASE,
)
BAD_REQUEST = (
    "Check the model's name and the OPTIONS. A conversation too long for it must be shortened."
)
LATE = "Set a longer timeout or smaller max_tokens, or give the server less to do."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
    """What one call asks for, the configuration's own where the call says nothing."""

    messages: Sequence[ChatMessage]
    tools: Sequence[Mapping[str, object]]
    tool_choice: str | None
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    stop: Sequence[str]


class RemoteChat(ABC):
    """Asks over HTTP; a subclass says what is posted to `path` and how the answer is read."""

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
        """Raises BackendUnavailable for a number that lets nothing through."""
        _check_above_zero(max_tokens=max_tokens, timeout=timeout, attempts=attempts)
        self._client = client
        self.model_name = model
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._send_temperature = send_temperature
        self._timeout = timeout
        self._attempts = attempts

    @abstractmethod
    def _payload(self, wish: Wish, *, stream: bool) -> dict[str, object]:
        """What is posted."""

    @abstractmethod
    def _whole(self, answer: Any) -> ChatMessage:
        """The message of a whole answer. Raises InferenceError."""

    @abstractmethod
    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        """The pieces of text in the data of a stream's events. Raises InferenceError."""

    @abstractmethod
    def _is_last(self, event: str) -> bool:
        """Whether no event comes after this one."""

    def _passing(self, first: str) -> PassingFailure | None:
        """Why the server should be asked again, if its first event says so."""
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
        return self._whole(self._answer(payload, **self._within(timeout)))

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
        """`payload` without what the server says it does not take; None where that is not why it
        refused."""
        if not (payload.keys() & FREEDOM and NOT_TAKEN.search(refused.said)):
            return None
        logger.warning(
            "%s takes no temperature and top_p: they are left out from now on", self.model_name
        )
        self._send_temperature = False
        return {name: value for name, value in payload.items() if name not in FREEDOM}

    def _wish(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Mapping[str, object]],
        tool_choice: str | None,
        max_tokens: int | None,
        temperature: float | None,
        top_p: float | None,
        stop: Sequence[str],
    ) -> Wish:
        if not messages:
            raise InferenceError("a conversation without a message: pass one at least.")
        freedom = self._temperature if temperature is None else temperature
        return Wish(
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
            "patience": quick(seconds, attempts=self._attempts),
            "deadline": time.monotonic() + seconds,
        }


def given(**fields: object) -> dict[str, object]:
    """Those that are neither None nor empty."""
    return {name: value for name, value in fields.items() if value is not None and value != []}


def _checked_choice(choice: str | None, tools: Sequence[Mapping[str, object]]) -> str | None:
    """None without tools: servers refuse a choice among none."""
    names = [str(tool["name"]) for tool in tools]
    if choice is None or not names or choice in {"auto", "none", "required", *names}:
        return choice if names else None
    raise InferenceError(
        f"tool_choice {choice!r} is none of the tools given: pass auto, none, required or one of"
        f" {', '.join(names)}."
    )


def _check_above_zero(**options: float | None) -> None:
    for name, value in options.items():
        if value is not None and value <= 0:
            raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")
