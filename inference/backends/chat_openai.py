"""Answers from OpenAI's chat models, or from any server that speaks their protocol."""

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any

from inference.base import BackendUnavailable, ChatMessage, InferenceError
from inference.remote.address import versioned
from inference.remote.chat import END, sent, streamed_message, whole_message
from inference.remote.openai import BAD_KEY, OPENAI, is_openai, openai_key
from inference.remote.pace import quick
from inference.remote.streams import StreamClient

PATH = "/chat/completions"
TIMEOUT = 120.0
ATTEMPTS = 7  # over about 13 s, in which a server that has just started loads a small model
CURES = {
    400: "Check the model's name and the OPTIONS. A model that lets nobody choose its temperature"
    " needs OPTIONS['send_temperature'] = false; a conversation too long for it must be shortened.",
    401: BAD_KEY,
    403: BAD_KEY,
    413: "Send a shorter conversation.",
    429: "Ask less at once, or wait.",
}
LATE = "Set a longer timeout or smaller max_tokens, or give the server less to do."


class OpenAIChat:
    """`POST {base}/v1/chat/completions`: OpenAI, vLLM, LM Studio, llama.cpp, Ollama and others.

    What a model thinks before it answers is left where such servers put it, beside the answer.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str | None = None,
        max_tokens: int | None = None,
        max_tokens_field: str | None = None,
        temperature: float | None = None,
        send_temperature: bool = True,
        extra: Mapping[str, object] | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`api_key`: None takes OPENAI_API_KEY from the environment, "" sends none.

        `max_tokens`, `temperature` and `timeout` are for calls that do not say otherwise; without
        either the server's own hold. OpenAI's reasoning models take no temperature:
        `send_temperature` False keeps to itself also what a call wishes. `max_tokens_field` is
        what the request calls them, `max_completion_tokens` for OpenAI itself and else
        `max_tokens`. `extra` are further fields of every request, such as {"reasoning_effort":
        "low"}. `timeout` is in seconds and for everything, of which there are `attempts`. Raises
        BackendUnavailable.
        """
        _check_above_zero(max_tokens=max_tokens, timeout=timeout, attempts=attempts)
        self.model_name = model
        self._max_tokens = max_tokens
        self._max_tokens_field = max_tokens_field or (
            "max_completion_tokens" if is_openai(base_url) else "max_tokens"
        )
        self._temperature = temperature
        self._send_temperature = send_temperature
        self._extra = dict(extra or {})
        self._timeout = timeout
        self._attempts = attempts
        self._client = StreamClient(
            versioned(base_url), api_key=openai_key(api_key, base_url), cures=CURES, late=LATE
        )

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
    ) -> ChatMessage:
        """The assistant's next message. Raises InferenceError."""
        payload = self._payload(messages, max_tokens=max_tokens, temperature=temperature)
        if tools:
            payload["tools"] = [{"type": "function", "function": dict(tool)} for tool in tools]
        answer = self._client.post(PATH, payload, **self._within(timeout))
        return whole_message(answer, secrets=self._client.secrets)

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
    ) -> Generator[str, None, ChatMessage]:
        """The message's pieces, as they come; returns the whole. Raises InferenceError."""
        payload = self._payload(messages, max_tokens=max_tokens, temperature=temperature)
        payload["stream"] = True
        events = self._client.stream(PATH, payload, last=END, **self._within(timeout))
        with closing(events):
            return (yield from streamed_message(events, secrets=self._client.secrets))

    def _payload(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None, temperature: float | None
    ) -> dict[str, object]:
        if not messages:
            raise InferenceError("a conversation without a message: pass one at least.")
        payload = {
            **self._extra,
            "model": self.model_name,
            "messages": [sent(message) for message in messages],
        }
        limit = self._max_tokens if max_tokens is None else max_tokens
        if limit is not None:
            payload[self._max_tokens_field] = limit
        freedom = self._temperature if temperature is None else temperature
        if freedom is not None and self._send_temperature:
            payload["temperature"] = freedom
        return payload

    def _within(self, timeout: float | None) -> dict[str, Any]:
        seconds = self._timeout if timeout is None else timeout
        return {
            "patience": quick(seconds, attempts=self._attempts),
            "deadline": time.monotonic() + seconds,
        }


def _check_above_zero(**options: float | None) -> None:
    for name, value in options.items():
        if value is not None and value <= 0:
            raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")
