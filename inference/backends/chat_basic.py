"""The chat backend of a site without a chat model."""

from collections.abc import Generator, Mapping, Sequence

from inference.interfaces import BackendUnavailable, ChatMessage

NO_CHAT_MODEL = (
    "this site has no chat model: set CHAT_BACKEND and CHAT_OPTIONS, for instance to a server of"
    " your own."
)


class NoChat:
    """No chat model: every call raises an error that says how to configure one.

    `inference.model_registry.has_chat` tells beforehand.
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
        raise BackendUnavailable(NO_CHAT_MODEL)

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
        raise BackendUnavailable(NO_CHAT_MODEL)
