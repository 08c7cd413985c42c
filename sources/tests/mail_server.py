"""A real IMAP server, pymap, in a thread. Begin with `MailServer`."""

import asyncio
import ssl
import threading
from argparse import Namespace
from collections.abc import Coroutine
from typing import Any

from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer
from pysasl.hashing import BuiltinHash


class MailServer:
    """Keeps the mailbox of `user` in memory, also while it is stopped. With `tls` it speaks TLS
    from the first byte on, else it offers STARTTLS where it has a certificate."""

    def __init__(
        self, user: str, password: str, *, context: ssl.SSLContext | None = None, tls: bool = False
    ) -> None:
        self.port = 0
        self._context, self._tls = context, tls
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._connections: list[asyncio.StreamWriter] = []
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        arguments = Namespace(
            host=None,
            port=0,
            debug=False,
            cert=None,
            key=None,
            tls=context is not None,
            passlib_cfg=None,
            proxy_protocol=None,
            demo_data=False,
            demo_user=user,
            demo_password=password,
        )
        self._backend, self._config = self._wait(
            DictBackend.init(
                arguments,
                ssl_context=context,
                invalid_user_sleep=0.0,
                hash_context=BuiltinHash(rounds=1),
            )
        )

    def start(self) -> None:
        self._wait(self._start())

    def stop(self) -> None:
        """Be away, also for those that are connected."""
        self._wait(self._stop())

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _start(self) -> None:
        self._config.apply_context()
        answer = ProxyProtocolReader(self._config.proxy_protocol).get_callback(
            IMAPServer(self._backend.login, self._config)
        )

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._connections.append(writer)
            await answer(reader, writer)

        self._server = await asyncio.start_server(
            serve, "127.0.0.1", self.port, ssl=self._context if self._tls else None
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._connections:
            writer.transport.abort()
        self._server = None
        self._connections.clear()

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)
