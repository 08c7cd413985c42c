"""Servers for tests, in this process and on the test's own broker, and odd models for them."""

import re
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
from redis import Redis

from inference.backends.hashing import HashingEmbedder
from inference.interfaces import InvalidVector, TokenStates
from inference.serving.server import ModelOffer, WorkerServer
from tests.plugin import wait_until


class Watched(HashingEmbedder):
    """Remembers what was embedded, together with what; `gate` closed, it makes all wait."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked: list[tuple[list[str], str | None]] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def embed_queries(self, texts, instruction=None):
        self.asked.append((list(texts), instruction))
        self.entered.set()
        assert self.gate.wait(30)
        return super().embed_queries([f"{instruction or ''} {text}" for text in texts])

    def embed_query(self, text, instruction=None):
        return self.embed_queries([text], instruction)[0]


class Fastidious(HashingEmbedder):
    """Does not bear the text “poison”, alone or among others."""

    def embed_documents(self, texts):
        if "poison" in texts:
            raise InvalidVector("vector 0 is all zeros")
        return super().embed_documents(texts)


class Failing(HashingEmbedder):
    """Works when it is tried out, and raises `error` ever after."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def embed_query(self, text, instruction=None):
        if text != "warm up":
            raise self.error
        return super().embed_query(text)

    embed_queries = None

    def embed_documents(self, texts):
        if list(texts) != ["warm up"]:
            raise self.error
        return super().embed_documents(texts)


class WordShare:
    """A reranker: the share of the query's words that a text has, never less than `stored`."""

    def score(self, query, texts, *, stored=(), instruction=None):
        words = set(f"{query} {instruction or ''}".split())
        shares = [len(words & set(text.split())) / len(words) for text in texts]
        return [max(pair) for pair in zip(shares, stored or [0.0] * len(texts), strict=True)]


class LetterStates:
    """A token encoder: each word is a token, and its bits are the letters in it."""

    model_name, dimensions = "letters", 32

    def encode_documents(self, texts):
        encoded = []
        for text in texts:
            words = [*re.finditer(r"\w+", text)]
            bits = np.packbits([self._bits(word[0]) > 0 for word in words], axis=1) if words else []
            encoded.append(
                TokenStates(
                    np.array(bits, np.uint8).reshape(-1, 4),
                    np.array([word.start() for word in words], np.int32),
                    np.array([word.end() for word in words], np.int32),
                )
            )
        return encoded

    def encode_query(self, text):
        states = np.array([self._bits(word) for word in re.findall(r"\w+", text)], np.float32)
        return states / np.float32(np.sqrt(self.dimensions))

    def _bits(self, word):
        held = {ord(letter) % 32 for letter in word.lower()}
        return np.where([place in held for place in range(32)], 1, -1)


@contextmanager
def serving(url: str, *offers: Callable[[], ModelOffer]):
    """A server that answers by now, stopped at the end."""
    server = WorkerServer(url, offers)
    server.start()
    try:
        wait_until(lambda: is_serving(url, server, len(offers)), what="the server answers")
        yield server
    finally:
        server.stop()


def is_serving(url: str, server: WorkerServer, services: int) -> bool:
    with Redis.from_url(url) as broker:
        alive = list(broker.scan_iter("ragsite:inference:*:alive:*"))
        return sum(server._member.encode() in broker.smembers(key) for key in alive) == services
