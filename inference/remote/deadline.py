"""Network waits that end at a deadline, however slowly a server lets its bytes drip."""

import os
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from math import inf
from typing import Any

import httpcore2
import httpx2

from inference import cancelling

SENT_AT_ONCE = 32 * 1024  # bytes that fit into the system's buffers whatever the server does

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


@contextmanager
def deadline(at: float) -> Iterator[None]:
    """Within it, requests of this thread through a DeadlineTransport end at `time.monotonic()` `at`
    with httpx2.TimeoutException."""
    token = _deadline.set(at)
    try:
        yield
    finally:
        _deadline.reset(token)


class DeadlineTransport(httpx2.HTTPTransport):
    """HTTPX counts its timeouts anew for each read, so that a byte now and then holds a request
    for ever, in the headers as in the body. Here each read gets only what is left, and all waits
    end also when the thread is cancelled.

    Looking a host's name up is the one wait whose deadline is left to the operating system.
    """

    def __init__(self, *, proxy: str | None = None) -> None:
        certificates = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        # As many connections as threads ask: one that waited for another's would time out.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        super().__init__(verify=_ssl_context(*certificates), proxy=proxy, limits=limits)
        # The pool has a parameter for it, but httpx2 does not hand it through.
        self._pool._network_backend = _Backend(self._pool._network_backend)


@cache  # reading the certificates takes 30 ms
def _ssl_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """HTTPX's own, which reads these two variables itself."""
    return httpx2.create_ssl_context()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        stream = cancelling.beside(
            lambda: self._backend.connect_tcp(host, port, left, local_address, socket_options),
            abandon=_close,
        )
        return _Stream(stream)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        end = inf if timeout is None else time.monotonic() + timeout
        while True:
            cancelling.check()
            left = _left(None if end == inf else end - time.monotonic(), httpcore2.ReadTimeout)
            if not cancelling.cancellable() or (left is not None and left <= cancelling.SLICE):
                return self._stream.read(max_bytes, left)
            with suppress(httpcore2.ReadTimeout):
                return self._stream.read(max_bytes, cancelling.SLICE)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = _left(timeout, httpcore2.WriteTimeout)
        if len(buffer) <= SENT_AT_ONCE:
            self._stream.write(buffer, left)
            return
        try:
            cancelling.beside(lambda: self._stream.write(buffer, left), abandon=_forget)
        except cancelling.Cancelled:
            with suppress(OSError):  # wakes the one who writes; closing does not
                self.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            raise

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        stream = cancelling.beside(
            lambda: self._stream.start_tls(ssl_context, server_hostname, left), abandon=_close
        )
        return _Stream(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _close(late: Future[httpcore2.NetworkStream]) -> None:
    """A connection that nobody waits for any more."""
    if late.exception() is None:
        late.result().close()


def _forget(late: Future[None]) -> None:
    """Why an abandoned write failed is known: it was abandoned."""


def _left(timeout: float | None, missed: type[httpcore2.TimeoutException]) -> float | None:
    """Seconds until the deadline or the timeout, whichever is sooner. Raises `missed`."""
    end = _deadline.get() - time.monotonic()
    left = end if timeout is None else min(timeout, end)
    if left <= 0:
        raise missed("the deadline has passed")
    return None if left == inf else left
