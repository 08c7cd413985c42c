"""The three protocols of chat models, each with its backend and a stub that speaks it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference.backends.chat_anthropic import AnthropicChat
from inference.backends.chat_ollama import OllamaChat
from inference.backends.chat_openai import OpenAIChat
from inference.interfaces import ChatMessage, ChatModel
from inference.tests.stub_answers import (
    anthropic_events,
    anthropic_reply,
    ollama_line,
    ollama_stream,
)
from inference.tests.stub_server import Reply, Stream, StubServer, chat_reply, delta, event

KEY = "sk-never-to-be-seen-0123456789"
ASKED = [ChatMessage("user", "Capital of France?")]


@dataclass(frozen=True)
class Protocol:
    """`reply` is a whole answer, `stream` one in pieces, `begin` only the pieces: what comes after
    them is up to the test."""

    name: str
    backend: Callable[..., ChatModel]
    reply: Callable[[str], Reply]
    stream: Callable[..., Stream]
    begin: Callable[..., Stream]

    def chat(self, stub: StubServer, **options: Any) -> ChatModel:
        return self.backend("a-model", base_url=stub.url, **{"timeout": 5, **options})

    def answer(self, payload: Any, *pieces: str) -> Any:
        """What a server that keeps to the protocol answers a request."""
        return self.stream(*pieces) if payload.get("stream") else self.reply("".join(pieces))


def _openai_stream(*pieces: str) -> Stream:
    counted = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    return Stream(*map(event, [*map(delta, pieces), delta(finish="stop"), counted, "[DONE]"]))


PROTOCOLS = [
    Protocol(
        "openai",
        OpenAIChat,
        chat_reply,
        _openai_stream,
        lambda *pieces, **how: Stream(*(event(delta(piece)) for piece in pieces), **how),
    ),
    Protocol(
        "anthropic",
        AnthropicChat,
        anthropic_reply,
        lambda *pieces: Stream(*anthropic_events(*pieces)),
        lambda *pieces, **how: Stream(*anthropic_events(*pieces)[:-3], **how),
    ),
    Protocol(
        "ollama",
        OllamaChat,
        lambda text: Reply(ollama_line(text, done="stop")),
        lambda *pieces: ollama_stream(*map(ollama_line, pieces), ollama_line(done="stop")),
        lambda *pieces, **how: ollama_stream(*map(ollama_line, pieces), **how),
    ),
]


def read(stream: Any) -> tuple[list[str], ChatMessage]:
    """The pieces of a stream and what it returns."""
    pieces = []
    while True:
        try:
            pieces.append(next(stream))
        except StopIteration as end:
            return pieces, end.value


def completed(model: ChatModel, **how: Any) -> ChatMessage:
    return model.complete(ASKED, **how)


def streamed(model: ChatModel, **how: Any) -> ChatMessage:
    return read(model.stream(ASKED, **how))[1]
