"""Answers from Ollama's own API."""

from collections.abc import Generator, Iterable, Mapping
from typing import Any

from inference.base import ChatMessage
from inference.remote.answers import has_field
from inference.remote.chat import ATTEMPTS, LATE, TIMEOUT, RemoteChat, Wish, given
from inference.remote.framing import JSON_LINES
from inference.remote.streams import StreamClient
from inference.remote.wire_ollama import sent, streamed_message, whole_message

OLLAMA = "http://localhost:11434"


class OllamaChat(RemoteChat):
    """`POST {base}/api/chat`. Ollama is told not to cut a conversation off at its start.

    It cannot be made to call a tool: for one that must be called only that one is offered.
    """

    path = "/api/chat"

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OLLAMA,
        api_key: str | None = None,
        num_ctx: int | None = None,
        think: bool | str | None = None,
        keep_alive: str | int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        send_temperature: bool = True,
        options: Mapping[str, object] | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        """`num_ctx` is how many tokens of conversation and answer fit, 4,096 on most machines for
        None. `think`: whether, or how hard, a model that can thinks first; None leaves that to it.
        `keep_alive` is how long Ollama keeps the model loaded after a request, "30m" or -1 for
        ever. `options` are further ones of Ollama's own, such as {"seed": 1}. `api_key` is for an
        Ollama behind a proxy that wants one. The rest is as for OpenAIChat. Raises
        BackendUnavailable.
        """
        super().__init__(
            StreamClient(
                base_url,
                framing=JSON_LINES,
                api_key=api_key,
                cures=_cures(model),
                unreachable="Does `ollama serve` run, and is base_url right?",
                late=LATE,
            ),
            model=model,
            max_tokens=max_tokens,
            temperature=temperature,
            send_temperature=send_temperature,
            timeout=timeout,
            attempts=attempts,
        )
        self._options = {**(options or {}), **given(num_ctx=num_ctx)}
        self._fields = given(think=think, keep_alive=keep_alive)

    def _payload(self, wish: Wish, *, stream: bool) -> dict[str, object]:
        chosen = given(
            num_predict=wish.max_tokens,
            temperature=wish.temperature,
            top_p=wish.top_p,
            stop=list(wish.stop),
        )
        return {
            **self._fields,
            **given(tools=_offered(wish)),
            "model": self.model_name,
            "messages": sent(wish.messages),
            "options": {**self._options, **chosen},
            "stream": stream,
            # By default Ollama forgets the beginning where a conversation is too long, and says
            # nothing.
            "truncate": False,
            "shift": False,
        }

    def _is_last(self, event: str) -> bool:
        return '"done":true' in event.replace(" ", "") and has_field(event, "done", True)

    def _whole(self, answer: Any) -> ChatMessage:
        return whole_message(answer, secrets=self._client.secrets)

    def _streamed(self, events: Iterable[str]) -> Generator[str, None, ChatMessage]:
        return streamed_message(events, secrets=self._client.secrets)


def _offered(wish: Wish) -> list[dict[str, object]]:
    named = [tool for tool in wish.tools if tool["name"] == wish.tool_choice]
    tools = [] if wish.tool_choice == "none" else named or wish.tools
    return [{"type": "function", "function": dict(tool)} for tool in tools]


def _cures(model: str) -> dict[int, str]:
    return {
        400: "Check the OPTIONS. A conversation too long for the model needs a larger num_ctx or"
        " must be shortened; tools need a model that can call them.",
        404: f"Run `ollama pull {model}` on Ollama's host, or correct base_url.",
        429: "Ask less at once, or wait.",
        503: "Ask less at once, or wait.",
    }
