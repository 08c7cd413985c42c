"""Model servers on sockets, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inference.tests.stub_server import Reply, StubServer, chat_stream, openai_reply, stub_server

MODEL = "small"
KEY = "sk-of-the-test-1234"


@contextmanager
def openai_server(
    *words: str, models: tuple[str, ...] = (MODEL, "nomic-embed")
) -> Iterator[StubServer]:
    """A server of OpenAI's protocol that lists `models` and says `words`."""

    def reply(payload: Any) -> Any:
        if payload is None:
            return Reply({"data": [{"id": name, "max_model_len": 4096} for name in models]})
        return chat_stream(*(words or ("A library ", "lends ", "books.")))

    with stub_server() as server:
        server.always(reply)
        yield server


EMBEDDER = "nomic-embed"
RERANKER = "bge-reranker"


def search_reply(payload: Any) -> Any:
    """Of a server with an embedder and a reranker, which scores by the words of the question."""
    if payload is None:
        return Reply({"data": [{"id": name} for name in (MODEL, EMBEDDER, RERANKER)]})
    if "input" in payload:
        return openai_reply(payload)
    words = set(payload["query"].lower().strip("?").split())
    shares = [
        len(words & set(text.lower().strip(".").split())) / len(words)
        for text in payload["documents"]
    ]
    results = [{"index": at, "relevance_score": share} for at, share in enumerate(shares)]
    return Reply({"results": results})
