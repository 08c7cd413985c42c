"""The chat backend of a site without a chat model."""

from collections.abc import Generator, Sequence
from typing import Unpack

from inference.interfaces import BackendUnavailable, ChatMessage, ChatOptions

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
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        raise BackendUnavailable(NO_CHAT_MODEL)

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[str, None, ChatMessage]:
        raise BackendUnavailable(NO_CHAT_MODEL)
