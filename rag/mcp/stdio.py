"""The server over standard input and output, for the client that started this process."""

import signal
from threading import Event

import anyio
from mcp.server.stdio import stdio_server

from accounts.keys import UNUSABLE, authenticate_key, scopes_of
from accounts.permissions import require_scope
from common.errors import RagsiteError
from rag.context import RagContext
from rag.mcp.server import build_server
from rag.mcp.work import Caller, Request


class UnusableKey(RagsiteError):
    """The secret opens nothing."""

    code = "authentication_failed"
    status = 401

    def __init__(self) -> None:
        super().__init__(UNUSABLE)


def caller_of(secret: str, cancelled: Event) -> RagContext:
    """On whose behalf a request with `secret` is made. Raises UnusableKey, and ScopeMissing for a
    key that may not read."""
    key = authenticate_key(secret)
    if key is None:
        raise UnusableKey
    require_scope(key, "read")
    return RagContext(
        user=key.user,
        workspace=key.workspace,
        scopes=scopes_of(key),
        cancelled=cancelled,
    )


def serve(secret: str) -> None:
    """Answer until the client closes its end. The key is looked up for each request: one that is
    revoked meanwhile opens nothing any more.

    An interrupt ends the process as it is. A tidy end would wait for the thread that reads input.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    def caller(request: Request, cancelled: Event) -> RagContext:
        return caller_of(secret, cancelled)

    anyio.run(_serve, caller)


async def _serve(caller: Caller) -> None:
    server = build_server(caller)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
