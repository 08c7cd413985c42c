"""Answers from Anthropic's chat models, by their own protocol."""

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any

from inference.base import BackendUnavailable, ChatMessage
from inference.remote.address import versioned
from inference.remote.answers import has_field
from inference.remote.chat import ATTEMPTS, BAD_REQUEST, LATE, TIMEOUT, RemoteChat, Wish, given
from inference.remote.conversation_anthropic import sent, sent_choice, sent_system, sent_tools
from inference.remote.errors import PassingFailure
from inference.remote.streams import StreamClient
from inference.remote.wire_anthropic import passing_failure, streamed_message, whole_message

ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"  # of the protocol, the only one so far
MAX_TOKENS = 4096  # the protocol wants a number; all models can write as much
HOTTEST = 1.0  # temperature; elsewhere 2
BAD_KEY = "Check ANTHROPIC_API_KEY, or api_key in OPTIONS."
CURES = {
    400: BAD_REQUEST,
    401: BAD_KEY,
    403: BAD_KEY,
    404: "Check the model's name and base_url.",
    413: "Send a shorter conversation.",
    429: "Ask less at once, or wait.",
    529: "Wait, or name another model.",
}


class AnthropicChat(RemoteChat):
    """`POST {base}/v1/messages`. What a model thinks before it answers is left where it is, beside
    the answer."""

    path = "/messages"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC,
        api_key: str | None = None,
        max_tokens: int = MAX_TOKENS,
        temperature: float | None = None,
        send_temperature: bool = True,
        extra: Mapping[str, object] | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`api_key`: None takes ANTHROPIC_API_KEY from the environment, "" sends none.

        `extra` are further fields of every request, such as {"thinking": {"type": "disabled"}}; the
        rest is as for OpenAIChat. A temperature above 1 is sent as 1, and `top_p` only where there
        is no temperature: newer models refuse both at once. Raises BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                versioned(base_url),
                api_key=_key(api_key, base_url),
                key_header="x-api-key",
                headers={"anthropic-version": VERSION},
                cures=CURES,
                late=LATE,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._extra = dict(extra or {})

    def _payload(self, wish: Wish, *, stream: bool) -> dict[str, object]:
        cool = None if wish.temperature is None else min(wish.temperature, HOTTEST)
        return {
            **self._extra,
            **given(
                model=self.model_name,
                system=sent_system(wish.messages) or None,
                messages=sent(wish.messages),
                **_offered(wish),
                max_tokens=wish.max_tokens,
                temperature=cool,
                top_p=wish.top_p if cool is None else None,
                stop_sequences=[text for text in wish.stop if text.strip()],
                stream=True if stream else None,
            ),
        }

    def _is_last(self, event: str) -> bool:
        return "message_stop" in event and has_field(event, "type", "message_stop")

    def _passing(self, first: str) -> PassingFailure | None:
        return passing_failure(first, secrets=self._client.secrets)

    def _whole(self, answer: Any) -> ChatMessage:
        return whole_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return streamed_message(events, secrets=self._client.secrets)


def _offered(wish: Wish) -> dict[str, object]:
    """The tools and the choice among them. Those called before must be named, even if none may be
    called now."""
    tools = list(wish.tools) or _called_before(wish.messages)
    choice = wish.tool_choice if wish.tools else "none"
    if not tools:
        return {}
    return given(tools=sent_tools(tools), tool_choice=sent_choice(choice) if choice else None)


def _called_before(messages: Sequence[ChatMessage]) -> list[Mapping[str, object]]:
    names = {call.name: None for message in messages for call in message.tool_calls}
    return [{"name": name} for name in names]


def _key(api_key: str | None, base_url: str) -> str:
    key = os.environ.get("ANTHROPIC_API_KEY", "") if api_key is None else api_key
    if not key.strip() and base_url.startswith(ANTHROPIC):
        raise BackendUnavailable(
            "Anthropic answers nobody without a key: set ANTHROPIC_API_KEY, or base_url in OPTIONS"
            " for a server of your own."
        )
    return key
