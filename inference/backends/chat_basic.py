"""The chat model of a site that has none."""

from collections.abc import Generator, Mapping, Sequence

from inference.base import BackendUnavailable, ChatMessage

NONE = (
    "this site has no chat model: set CHAT_BACKEND and CHAT_OPTIONS, for instance to a server of"
    " your own."
)


class NoChat:
    """No chat model, said out loud: whoever asks is told how to get one.

    `inference.handler.has_chat` tells beforehand.
    """

    model_name = "none"

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
        raise BackendUnavailable(NONE)

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
        raise BackendUnavailable(NONE)
