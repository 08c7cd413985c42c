"""Answers from OpenAI's chat models, or from any server that speaks their protocol."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from typing import Any

from inference.base import ChatMessage
from inference.remote.address import versioned
from inference.remote.chat import ATTEMPTS, BAD_REQUEST, LATE, TIMEOUT, RemoteChat, Wish, given
from inference.remote.errors import ServerRefused
from inference.remote.openai import BAD_KEY, OPENAI, is_openai, openai_key
from inference.remote.streams import StreamClient
from inference.remote.wire_openai import END, sent, sent_choice, streamed_message, whole_message

CURES = {
    400: BAD_REQUEST,
    401: BAD_KEY,
    403: BAD_KEY,
    413: "Send a shorter conversation.",
    429: "Ask less at once, or wait.",
}
COUNTED = {"stream_options": {"include_usage": True}}


class OpenAIChat(RemoteChat):
    """`POST {base}/v1/chat/completions`: OpenAI, vLLM, LM Studio, llama.cpp, Ollama and others.

    What a model thinks before it answers is left where such servers put it, beside the answer.
    """

    path = "/chat/completions"

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
        either the server's own hold. `send_temperature` False keeps it and `top_p` to itself, also
        where a call wishes them; a model that takes none is sent none after its first refusal.
        `max_tokens_field` is what the request calls them, `max_completion_tokens` for OpenAI itself
        and else `max_tokens`. `extra` are further fields of every request, such as
        {"reasoning_effort": "low"}. `timeout` is in seconds and for everything, of which there are
        `attempts`. Raises BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                versioned(base_url), api_key=openai_key(api_key, base_url), cures=CURES, late=LATE
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._max_tokens_field = max_tokens_field or (
            "max_completion_tokens" if is_openai(base_url) else "max_tokens"
        )
        self._extra = dict(extra or {})
        # Whether the server counts a stream's tokens when asked to; None until one was streamed.
        self._counts = None if "stream_options" not in self._extra else False

    def _payload(self, wish: Wish, *, stream: bool) -> dict[str, object]:
        counted = COUNTED if stream and self._counts is not False else {}
        limit = {self._max_tokens_field: wish.max_tokens}
        return {
            **self._extra,
            **given(
                model=self.model_name,
                messages=[sent(message) for message in wish.messages],
                tools=[{"type": "function", "function": dict(tool)} for tool in wish.tools],
                tool_choice=sent_choice(wish.tool_choice) if wish.tool_choice else None,
                temperature=wish.temperature,
                top_p=wish.top_p,
                stop=list(wish.stop),
                stream=True if stream else None,
                **limit,
                **counted,
            ),
        }

    def _events(self, payload: dict[str, object], **within: Any) -> Generator[str, None, None]:
        with closing(super()._events(payload, **within)) as events:
            for event in events:
                if self._counts is None:
                    self._counts = "stream_options" in payload
                yield event

    def _lighter(
        self, payload: dict[str, object], refused: ServerRefused
    ) -> dict[str, object] | None:
        if lighter := super()._lighter(payload, refused):
            return lighter
        may_be_why = refused.status in {400, 422} and not refused.too_large
        if not may_be_why or self._counts is not None or "stream_options" not in payload:
            return None
        # Servers that do not know the field say so in many ways. If all goes well without, it was.
        return {name: value for name, value in payload.items() if name != "stream_options"}

    def _is_last(self, event: str) -> bool:
        return event == END

    def _whole(self, answer: Any) -> ChatMessage:
        return whole_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return streamed_message(events, secrets=self._client.secrets)
