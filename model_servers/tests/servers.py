"""Model servers on sockets, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accounts.models import Workspace
from inference.tests.stub_server import Reply, StubServer, chat_stream, openai_reply, stub_server
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions
from model_servers.services import choose_model, connect_model

MODEL = "small"
#: What a workspace chooses instead of the site's default.
OWN = "own"
KEY = "sk-of-the-test-1234"


def choose_own(workspace: Workspace, url: str) -> ModelConnection:
    """The workspace has the model OWN of this server answer."""
    options = ConnectionOptions.from_text({"kind": "openai", "address": url, "model": OWN})
    connection = connect_model(options=options)
    choose_model(workspace=workspace, connection=connection)
    return connection


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


def search_options(server: StubServer, **given: Any) -> ConnectionOptions:
    """Of a connection with the embedder of `search_reply`, unless another model is given."""
    of_embedder = {"purpose": "embedder", "kind": "openai", "model": EMBEDDER, "key": KEY}
    return ConnectionOptions.from_text({**of_embedder, "address": server.url, **given})


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
