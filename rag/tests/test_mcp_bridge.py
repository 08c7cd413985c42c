"""From threads of a WSGI server into the SDK's transport, with small servers of the tests' own."""

import json
import multiprocessing
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from mcp.server import Server
from mcp.types import CallToolResult, TextContent

from accounts.models import User, Workspace
from common.errors import NotFound
from common.sse import ClientConnection, ClientGone
from rag.context import RagContext
from rag.mcp.asgi_bridge import AsgiBridge, RequestTimeout
from rag.mcp.server import Caller, run_in_thread

HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


def serving(work: Callable[[RagContext, Any], str]) -> AsgiBridge:
    """A bridge to a server whose tools all answer with `work(context, params)`."""

    def call(context: RagContext, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=work(context, params))])

    def build(caller: Caller) -> Server[Any]:
        return Server("test", on_call_tool=run_in_thread(caller, call))

    return AsgiBridge(build)


def ask(bridge: AsgiBridge, name: str, *, user: str = "alice", **how: Any) -> Any:
    """What the tool `name` answers `user`, as JSON."""
    params = {"name": name, "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = bridge.exchange(
        json.dumps(message).encode(),
        path="/mcp",
        headers=HEADERS,
        context=RagContext(user=User(username=user), workspace=Workspace()),
        **{"seconds": 30.0, **how},
    )
    assert answer.status_code == 200
    return json.loads(answer.content)


def said(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def test_requests_are_worked_on_at_once_and_each_gets_its_own_answer() -> None:
    together = Barrier(20)

    def work(context: RagContext, params: Any) -> str:
        together.wait(30)  # none goes on before all are there
        return f"{params.name} for {context.user.username}"

    bridge = serving(work)
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, bridge, f"tool{n}", user=f"user{n}") for n in range(20)]
        assert [said(a.result()) for a in asked] == [f"tool{n} for user{n}" for n in range(20)]


def waits(noted: Event) -> Callable[[RagContext, Any], str]:
    def work(context: RagContext, params: Any) -> str:
        if params.name == "quick":
            return "there"
        if context.cancelled.wait(30):
            noted.set()
        return "too late"

    return work


def test_what_takes_too_long_is_told_to_end() -> None:
    noted = Event()
    bridge = serving(waits(noted))
    with pytest.raises(RequestTimeout, match=r"longer than 0\.05 seconds"):
        ask(bridge, "slow", seconds=0.05)
    assert noted.wait(30)
    assert said(ask(bridge, "quick")) == "there"


def test_work_ends_when_its_client_is_gone() -> None:
    noted = Event()
    bridge = serving(waits(noted))
    with pytest.raises(ClientGone):
        ask(bridge, "slow", is_gone=lambda: True)
    assert noted.wait(30)
    assert said(ask(bridge, "quick")) == "there"


def test_a_closed_connection_is_noticed_and_an_open_or_unknown_one_is_not() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        client = ClientConnection({"gunicorn.socket": ours})
        assert not client.is_gone()
        theirs.sendall(b"the next request")
        assert not client.is_gone()
        assert ours.recv(100) == b"the next request"
        theirs.close()
        assert client.is_gone()
    assert client.is_gone()
    assert not ClientConnection({}).is_gone()


def test_what_fails_is_an_error_of_the_protocol_that_tells_nothing_of_the_inside() -> None:
    def work(context: RagContext, params: Any) -> str:
        if params.name == "missing":
            raise NotFound("There is no such thing. Take another.")
        raise ValueError("the password is hunter2")

    bridge = serving(work)
    assert ask(bridge, "missing")["error"]["message"] == "There is no such thing. Take another."
    failed = ask(bridge, "broken")["error"]
    assert failed["code"] == -32603
    assert "hunter2" not in failed["message"]


def test_a_forked_process_begins_a_loop_of_its_own() -> None:
    bridge = serving(lambda context, params: str(params.name))
    assert said(ask(bridge, "before")) == "before"
    ours, theirs = multiprocessing.Pipe()

    def child() -> None:
        theirs.send(said(ask(bridge, "inside")))

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    try:
        assert ours.poll(30)
        assert ours.recv() == "inside"
    finally:
        process.kill()
        process.join()
    assert said(ask(bridge, "after")) == "after"
