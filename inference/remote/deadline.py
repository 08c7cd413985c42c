"""Network waits that end at a deadline, however slowly a server lets its bytes drip."""

import os
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import inf
from typing import Any

import httpcore2
import httpx2

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
    for ever, in the headers as in the body. Here each read gets only what is left.

    Looking a host's name up is the one wait that is left to the operating system.
    """

    def __init__(self, *, proxy: str | None = None) -> None:
        certificates = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        super().__init__(verify=_ssl_context(*certificates), proxy=proxy)
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
        return _Stream(self._backend.connect_tcp(host, port, left, local_address, socket_options))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        left = _left(timeout, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, missed: type[httpcore2.TimeoutException]) -> float | None:
    """Seconds until the deadline or the timeout, whichever is sooner."""
    at = _deadline.get()
    if at == inf:
        return timeout
    left = at - time.monotonic()
    if left <= 0:
        raise missed("the deadline has passed")
    return left if timeout is None else min(timeout, left)
