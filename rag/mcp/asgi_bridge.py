"""Call the MCP SDK's HTTP transport, an ASGI application, from the threads of a WSGI server."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Overdue
from dataclasses import replace
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from django.http import HttpResponse
from django.utils.translation import gettext
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from common.errors import RagsiteError
from common.sse import ClientGone
from rag.context import RagContext
from rag.mcp.server import Caller, Request, build_server

#: Interval in seconds at which a waiting thread checks whether its client is still connected.
POLL_SECONDS = 0.5
_CONTEXT = "ragsite.context"

_Loop = tuple[BlockingPortal, StreamableHTTPSessionManager]


class RequestTimeout(RagsiteError):
    """The request exceeded its time limit."""

    code = "too_slow"
    status = 504


class AsgiBridge:
    """A server with an event loop in a thread of its own, started by the first request of this
    process; a process forked later starts its own."""

    def __init__(self, build: Callable[[Caller], Server[Any]] = build_server) -> None:
        self._build = build
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = Lock()
        self._loop: _Loop | None = None

    def exchange(
        self,
        body: bytes,
        *,
        path: str,
        headers: Mapping[str, str],
        context: RagContext,
        seconds: float,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> HttpResponse:
        """The response to one POST; blocks. After `seconds`, or once `is_gone()`, the work is
        cancelled and RequestTimeout or ClientGone is raised."""
        with self._lock:
            if self._loop is None:
                begun: Future[_Loop] = Future()
                Thread(target=_run, args=(self._build, begun), name="mcp", daemon=True).start()
                self._loop = begun.result()
            portal, manager = self._loop
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1", errors="replace"))
                for name, value in headers.items()
            ],
            _CONTEXT: context,
        }
        answer: Future[HttpResponse] = portal.start_task_soon(_exchange, manager, scope, body)
        deadline = monotonic() + seconds
        try:
            while (left := deadline - monotonic()) > 0:
                try:
                    return answer.result(timeout=min(left, POLL_SECONDS))
                except Overdue:
                    if is_gone():
                        raise ClientGone from None
            raise RequestTimeout(
                gettext(
                    "The request took longer than {seconds} seconds. Request less at once."
                ).format(seconds=format(seconds, "g"))
            )
        finally:
            answer.cancel()


def _run(build: Callable[[Caller], Server[Any]], begun: Future[_Loop]) -> None:
    def caller(request: Request, cancelled: Event) -> RagContext:
        # The view has authenticated the request.
        http: Any = request.request
        context: RagContext = http.scope[_CONTEXT]
        return replace(context, cancelled=cancelled)

    async def serve() -> None:
        manager = StreamableHTTPSessionManager(build(caller), stateless=True, json_response=True)
        async with BlockingPortal() as portal, manager.run():
            begun.set_result((portal, manager))
            await portal.sleep_until_stopped()

    try:
        anyio.run(serve)
    except BaseException as error:
        if not begun.done():
            begun.set_exception(error)
        raise


async def _exchange(
    manager: StreamableHTTPSessionManager, scope: dict[str, Any], body: bytes
) -> HttpResponse:
    answer = HttpResponse()
    unread = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not unread:
            await anyio.sleep_forever()
        return unread.pop()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            answer.status_code = message["status"]
            for name, value in message.get("headers", ()):
                answer[name.decode("latin-1")] = value.decode("latin-1")
        else:
            answer.write(message.get("body", b""))

    await manager.handle_request(scope, receive, send)
    return answer


#: The bridge of this process.
bridge = AsgiBridge()
