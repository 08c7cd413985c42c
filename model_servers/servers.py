"""From a connection to what asks its server: chat models, embedders, rerankers, and `ModelServer`
for trials."""

from collections.abc import Generator, Sequence
from typing import Any, Unpack

import httpx2
from django.utils.translation import gettext

from common import encryption
from inference.backends.chat_anthropic import AnthropicChat
from inference.backends.chat_ollama import OllamaChat
from inference.backends.chat_openai import OpenAIChat
from inference.backends.ollama import SPECIAL_TOKENS, OllamaEmbedder
from inference.backends.openai_compatible import OpenAIEmbedder
from inference.backends.rerank_http import HttpReranker
from inference.interfaces import BackendUnavailable, ChatMessage, ChatModel, ChatOptions, Embedder
from inference.remote import chat
from inference.remote.probing import TRIAL_SECONDS, ModelServer, ServerFault
from model_servers.models import ModelConnection
from model_servers.options import OLLAMA_CONTEXT_TOKENS
from reading.web_fetch import CheckedTransport, FetchError, is_public, resolve_host

Kind = ModelConnection.Kind
#: For one question, all tries together.
RERANK_SECONDS = 30.0


class UnreadableKey(BackendUnavailable):
    """The stored key was encrypted by a key that is not here."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "The key of this model was encrypted with another key. Add that key to"
                " RAGSITE_CREDENTIALS_KEYS, or enter the key of the model again under Models."
            )
        )


class UnreadableChat:
    """In place of a chat model whose key cannot be decrypted."""

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> ChatMessage:
        raise UnreadableKey

    def stream(
        self, messages: Sequence[ChatMessage], **options: Unpack[ChatOptions]
    ) -> Generator[str, None, ChatMessage]:
        raise UnreadableKey


class PublicTransport(CheckedTransport):
    """Connects to addresses of the public internet alone, by the numbers that were checked."""

    def __init__(self) -> None:
        super().__init__(resolve=resolve_host, is_allowed=is_public)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return super().handle_request(request)
        except FetchError as error:
            if error.code != "forbidden_address":
                raise httpx2.ConnectError(str(error), request=request) from error
            fault = ServerFault(
                "forbidden_address",
                gettext(
                    "{host} leads into the site's own network. Only the operator of the site"
                    " connects models there."
                ).format(host=request.url.host),
            )
            raise httpx2.ConnectError(str(fault), request=request) from fault


def decrypted_key(connection: ModelConnection) -> str:
    """Raises UnreadableKey."""
    if not connection.credentials:
        return ""
    try:
        return encryption.decrypt(connection.credentials).decode()
    except encryption.UnreadableSecret as error:
        raise UnreadableKey from error


def build_chat(connection: ModelConnection, *, attempts: int = chat.ATTEMPTS) -> ChatModel:
    """The connected chat model. Raises BackendUnavailable for a provider's own server without a
    key."""
    try:
        key = decrypted_key(connection)
    except UnreadableKey:
        return UnreadableChat(connection.model)
    options: dict[str, Any] = {
        "base_url": connection.address,
        "api_key": key,
        "attempts": attempts,
        "transport": _transport(connection),
    }
    model: chat.RemoteChat
    if connection.kind == Kind.OLLAMA:
        context = connection.context_tokens or OLLAMA_CONTEXT_TOKENS
        model = OllamaChat(connection.model, num_ctx=context, think=False, **options)
    else:
        backend = AnthropicChat if connection.kind == Kind.ANTHROPIC else OpenAIChat
        model = backend(connection.model, context_tokens=connection.context_tokens, **options)
    model.input_price, model.output_price = connection.input_price, connection.output_price
    return model


def build_embedder(
    connection: ModelConnection, *, dimensions: int | None = None, is_trial: bool = False
) -> Embedder:
    """The connected embedder, for vectors of the stored length or of `dimensions`; a trial asks
    once. Raises BackendUnavailable where the length is not known, and UnreadableKey."""
    options: dict[str, Any] = {
        "base_url": connection.address,
        "api_key": decrypted_key(connection),
        "dimensions": dimensions or connection.dimensions,
        "send_dimensions": False,
    }
    if is_trial:
        seconds = TRIAL_SECONDS
        options |= {"attempts": 1, "timeout": seconds, "query_timeout": seconds}
    if connection.kind == Kind.OLLAMA:
        if connection.context_tokens:
            options["max_tokens"] = connection.context_tokens - SPECIAL_TOKENS
        return OllamaEmbedder(connection.model, **options)
    return OpenAIEmbedder(connection.model, **options)


def build_reranker(connection: ModelConnection, *, seconds: float = RERANK_SECONDS) -> HttpReranker:
    """The connected reranker. Raises UnreadableKey."""
    key = decrypted_key(connection)
    return HttpReranker(connection.model, connection.address, api_key=key, timeout=seconds)


def server_of(connection: ModelConnection) -> ModelServer:
    """Raises ServerFault, and UnreadableKey."""
    return ModelServer(
        connection.kind,
        connection.address,
        key=decrypted_key(connection),
        transport=_transport(connection),
    )


def _transport(connection: ModelConnection) -> chat.Transport | None:
    return None if connection.workspace_id is None else PublicTransport
