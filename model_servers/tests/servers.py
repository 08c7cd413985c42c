"""Model servers on sockets, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from inference.tests.stub_server import Reply, StubServer, chat_stream, stub_server

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
