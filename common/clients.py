"""The other end of a request: whether anybody still waits there."""

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

#: The status for a client that did not wait for it, as in nginx's log.
GONE = 499


class Client:
    """The connection that a request came over, where the web server shows it (gunicorn does).

    A client that closes only its half of the connection is taken to have gone, as proxies do.
    """

    def __init__(self, environment: Mapping[str, Any]) -> None:
        """`environment` is WSGI's, a request's `META`."""
        shown = environment.get("gunicorn.socket")
        # Of a connection that gunicorn encrypts itself, only a write tells.
        self._socket: socket.socket | None = None if isinstance(shown, ssl.SSLSocket) else shown

    def is_gone(self) -> bool:
        """Whether the other end is closed; False where that cannot be seen."""
        if self._socket is None:
            return False
        try:
            return not self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def hang_up(self) -> None:
        """End the connection, and with it a write that waits for the client to read."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
