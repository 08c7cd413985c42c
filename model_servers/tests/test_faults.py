"""What is wrong with a server, in words with the cure."""

from pathlib import Path
from typing import Any

import pytest

from inference.backends.chat_openai import OpenAIChat
from inference.remote.probing import ModelServer, ServerFault
from inference.tests.stub_server import Reply, Silence, StubServer, self_signed, stub_server
from model_servers.servers import PublicTransport

pytestmark = pytest.mark.enable_socket


@pytest.fixture
def server() -> Any:
    with stub_server() as server:
        yield server


def fault(server: ModelServer, **how: Any) -> ServerFault:
    with pytest.raises(ServerFault) as caught:
        server.models(**how)
    return caught.value


def test_a_name_without_an_address() -> None:
    found = fault(ModelServer("openai", "http://no-such-host.invalid/v1"))
    assert found.code == "unknown_host"
    assert "typos" in str(found)


@pytest.mark.parametrize(
    ("kind", "cure"), [("ollama", "“ollama serve”"), ("openai", "correct the port")]
)
def test_a_port_where_nothing_listens(kind: str, cure: str) -> None:
    found = fault(ModelServer(kind, "http://127.0.0.1:1"))
    assert found.code == "refused"
    assert cure in str(found)


@pytest.mark.parametrize(("key", "cure"), [("", "wants a key"), ("sk-1", "does not accept")])
def test_a_key_that_is_missing_or_wrong(server: StubServer, key: str, cure: str) -> None:
    server.always(lambda payload: Reply({"error": f"bad key {key}"}, status=401))
    found = fault(ModelServer("openai", server.url, key=key))
    assert found.code == "key"
    assert cure in str(found)
    assert not key or key not in str(found)


def test_a_model_that_is_not_pulled(server: StubServer) -> None:
    server.always(
        lambda payload: (
            Reply({"models": [{"name": "qwen3:4b"}]})
            if payload is None
            else Reply({"error": "model not found"}, status=404)
        )
    )
    own = ModelServer("ollama", server.url)
    model = OpenAIChat("llama9", base_url=server.url, api_key="", attempts=1)
    with pytest.raises(ServerFault, match=r"Run “ollama pull llama9” there. It has: qwen3:4b."):
        own.try_chat(model)


def test_a_server_that_says_nothing(server: StubServer) -> None:
    server.always(lambda payload: Silence())
    assert fault(ModelServer("openai", server.url), seconds=0.2).code == "timeout"


def test_a_certificate_that_nobody_trusts(tmp_path: Path) -> None:
    with stub_server(certificate=self_signed(tmp_path)) as server:
        found = fault(ModelServer("openai", server.url))
    assert found.code == "tls"
    assert "certificate" in str(found)


@pytest.mark.parametrize("answer", [Reply(b"<html>"), Reply({}), Reply([]), Reply({}, status=404)])
def test_something_else_that_answers(server: StubServer, answer: Reply) -> None:
    server.always(lambda payload: answer)
    assert fault(ModelServer("openai", server.url)).code == "no_model_server"


def test_an_address_inside_the_network_is_not_reached_by_checked_numbers(
    server: StubServer,
) -> None:
    found = fault(ModelServer("openai", server.url, transport=PublicTransport))
    assert found.code == "forbidden_address"
    assert not server.requests
