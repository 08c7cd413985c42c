"""HTTP client for model servers: addresses and keys, deadlines, JSON, event streams. Begin with
`JsonClient`.
"""

import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from math import inf
from typing import Any

import httpcore2
import httpx2

from inference import cancellation
from inference.interfaces import BackendUnavailable, MalformedAnswer
from inference.remote.retry import RetryableError, RetryPolicy, error_for_status, server_text


def with_version(base_url: str) -> str:
    """`base_url` with `/v1` appended, unless it names an API version already."""
    base_url = base_url.strip().rstrip("/")
    return base_url if re.search(r"/v\d\w*(/|$)", base_url) else f"{base_url}/v1"


def checked_url(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url.strip().rstrip("/"))
    except httpx2.InvalidURL as error:
        raise BackendUnavailable(f"base_url is no address ({error}): correct it.") from error
    if url.scheme not in {"http", "https"} or not url.host or url.query or url.fragment:
        raise BackendUnavailable(
            "base_url must look like https://host:port/path, without a query: correct it."
        )
    return url


def checked_path(path: str) -> str:
    if not re.fullmatch(r"/[!-~]*", path) or "#" in path:
        raise BackendUnavailable(
            "path must look like /embeddings or /embeddings?api-version=…: correct it."
        )
    return path


def checked_header(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise BackendUnavailable("key_header must be a header's name, such as api-key: correct it.")
    return name


def checked_key(api_key: str) -> str:
    # HTTPX would name the offending value, which is the key, in its own error.
    if not api_key.isascii() or not api_key.isprintable() or " " in api_key:
        raise BackendUnavailable(
            "the API key holds a character that keys do not have, such as a blank or a line break:"
            " copy it again."
        )
    return api_key


def environment_proxy(url: httpx2.URL) -> str | None:
    """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, which httpx reads only for its own
    transport.
    """
    if urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


OPENAI_URL = "https://api.openai.com/v1"
BAD_OPENAI_KEY = "Check OPENAI_API_KEY, or api_key in OPTIONS."


def provider_key(provider: str, api_key: str | None, base_url: str) -> str:
    """`api_key`, or that of the environment for None. Raises BackendUnavailable where the
    provider's own server needs one.
    """
    variable = f"{provider.upper()}_API_KEY"
    key = os.environ.get(variable, "") if api_key is None else api_key
    if not key.strip() and f"//api.{provider.lower()}.com" in base_url:
        raise BackendUnavailable(
            f"{provider} needs a key. Set {variable}, or base_url in OPTIONS for a server of your"
            " own."
        )
    return key


MAX_UNBLOCKED_BYTES = 32 * 1024  # bytes that fit into the system's buffers whatever the server does

_deadline: ContextVar[float] = ContextVar("deadline", default=inf)


@contextmanager
def deadline(at: float) -> Iterator[None]:
    """Within the block, requests of this thread through a DeadlineTransport end at
    `time.monotonic()` `at` with httpx2.TimeoutException.
    """
    token = _deadline.set(at)
    try:
        yield
    finally:
        _deadline.reset(token)


class DeadlineTransport(httpx2.HTTPTransport):
    """HTTPX restarts its timeout with each read, so that a slow server could hold a request for
    ever. Here each read gets only the remaining time, and all waits also end when the thread is
    cancelled.

    DNS lookup is the only wait whose deadline is left to the operating system.
    """

    def __init__(self, *, proxy: str | None = None) -> None:
        certificates = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        # As many connections as threads ask: one that waited for another's would time out.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        super().__init__(verify=_ssl_context(*certificates), proxy=proxy, limits=limits)
        # The pool has a parameter for it, but httpx2 does not hand it through.
        self._pool._network_backend = _DeadlineBackend(self._pool._network_backend)


@cache  # reading the certificates takes 30 ms
def _ssl_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """HTTPX's own, which reads these two variables itself; cached."""
    return httpx2.create_ssl_context()


class _DeadlineBackend(httpcore2.NetworkBackend):
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
        left = _remaining_seconds(timeout, httpcore2.ConnectTimeout)
        stream = cancellation.run_cancellable(
            lambda: self._backend.connect_tcp(host, port, left, local_address, socket_options),
            abandon=_close_abandoned,
        )
        return _DeadlineStream(stream)


class _DeadlineStream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        end = inf if timeout is None else time.monotonic() + timeout
        while True:
            cancellation.check_cancelled()
            left = _remaining_seconds(
                None if end == inf else end - time.monotonic(), httpcore2.ReadTimeout
            )
            if not cancellation.is_cancellable() or (
                left is not None and left <= cancellation.POLL_SECONDS
            ):
                return self._stream.read(max_bytes, left)
            with suppress(httpcore2.ReadTimeout):
                return self._stream.read(max_bytes, cancellation.POLL_SECONDS)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = _remaining_seconds(timeout, httpcore2.WriteTimeout)
        if len(buffer) <= MAX_UNBLOCKED_BYTES:
            self._stream.write(buffer, left)
            return
        try:
            cancellation.run_cancellable(
                lambda: self._stream.write(buffer, left),
                abandon=lambda late: None,  # its error is nobody's any more
            )
        except cancellation.Cancelled:
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
        left = _remaining_seconds(timeout, httpcore2.ConnectTimeout)
        stream = cancellation.run_cancellable(
            lambda: self._stream.start_tls(ssl_context, server_hostname, left),
            abandon=_close_abandoned,
        )
        return _DeadlineStream(stream)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _close_abandoned(late: Future[httpcore2.NetworkStream]) -> None:
    """Close a connection that was abandoned."""
    if late.exception() is None:
        late.result().close()


def _remaining_seconds(
    timeout: float | None, missed: type[httpcore2.TimeoutException]
) -> float | None:
    """Seconds until the deadline or the timeout, whichever is sooner. Raises `missed`."""
    end = _deadline.get() - time.monotonic()
    left = end if timeout is None else min(timeout, end)
    if left <= 0:
        raise missed("the deadline has passed")
    return None if left == inf else left


MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
UNREACHABLE_CURE = "Check that the server is running and that base_url is right."
TIMEOUT_CURE = "Set a longer timeout or a smaller batch_size, or give the server less to do."


MAX_LINE_BYTES = 1024 * 1024  # bytes; a whole tool call stands in one


def _json_lines(response: httpx2.Response) -> Iterator[str]:
    """The non-blank lines. Raises httpx2.SSEError for one that is too long."""
    begun = bytearray()
    for chunk in response.iter_bytes():
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            begun += line
            if text := begun.decode(errors="replace").strip():
                yield text
            begun.clear()
        begun += rest
        if len(begun) > MAX_LINE_BYTES:
            raise httpx2.SSEError(f"a line of more than {MAX_LINE_BYTES:,} bytes")
    if text := begun.decode(errors="replace").strip():
        yield text


END_SECONDS = 0.2  # seconds between the last event and the end of its stream


def read_start(response: httpx2.Response) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > MAX_ERROR_BYTES:
            break
    return bytes(body)


class JsonClient:
    """Posts JSON to one server over pooled connections, and reads whole answers or streams of
    events; thread-safe and fork-safe.

    The API key is sent to that server only: redirects are not followed, and no error message
    contains it, not even one that quotes the server. `secrets` are removed from messages.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
        cures: Mapping[int, str] | None = None,
        unreachable: str = UNREACHABLE_CURE,
        late: str = TIMEOUT_CURE,
        largest_answer: int = MAX_ANSWER_BYTES,
        json_lines: bool = False,
        transport: Callable[[], httpx2.BaseTransport] | None = None,
    ) -> None:
        """`api_key` is sent in `key_header`, as a bearer token where that is Authorization.

        `cures` says what to do about a status, `unreachable` about a server that cannot be reached,
        `late` about one that does not answer in time. `largest_answer` is in bytes. A stream's
        events are server-sent ones, or with `json_lines` one a line. `transport` makes what
        connects, such as one that refuses some addresses. Raises BackendUnavailable for an invalid
        address or key.
        """
        url = checked_url(base_url)
        # HTTPX logs URLs, so credentials in this one are sent as headers.
        self._login = (url.username, url.password) if url.username or url.password else None
        self._url = url.copy_with(username=None, password=None)
        self.base_url = str(self._url).rstrip("/")
        self._headers = dict(headers or {})
        if api_key:
            scheme = "Bearer " if key_header == "Authorization" else ""
            self._headers[key_header] = scheme + checked_key(api_key.strip())
        self.secrets = tuple(filter(None, ((api_key or "").strip(), url.password)))
        self._cures = dict(cures or {})
        self._unreachable = unreachable
        self._late = late
        self._largest_answer = largest_answer
        self._json_lines = json_lines
        self._transport = transport
        self._pooled: tuple[int, httpx2.Client] | None = None

    def get(self, path: str, *, patience: RetryPolicy, deadline: float = inf) -> Any:
        """The JSON at `path`; as `post`."""
        return self.post(path, None, patience=patience, deadline=deadline)

    def post(
        self,
        path: str,
        payload: Mapping[str, object] | None,
        *,
        patience: RetryPolicy,
        deadline: float = inf,
        cancelled: threading.Event | None = None,
    ) -> Any:
        """The answer's JSON. `deadline` is a `time.monotonic()` for all tries together. Without a
        `payload` it is a GET.

        Raises ServerRefused or another BackendUnavailable, or MalformedAnswer. A malformed answer
        is not retried: a server that misunderstands does so every time.
        """
        where = self.base_url + path

        def attempt(at: float) -> bytes:
            body = bytearray()
            with (
                self._waiting(where, time.monotonic(), at),
                closing(self._answered(where, payload, at)) as response,
            ):
                for chunk in response.iter_bytes():
                    body += chunk
                    self._check_size(len(body), where)
            return bytes(body)

        body = patience.call_with_retries(attempt, deadline=deadline, cancelled=cancelled)
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise MalformedAnswer(
                f"{where} sends no JSON: {server_text(body, self.secrets)}. Check that base_url is"
                " that of the model server."
            ) from error

    @contextmanager
    def _waiting(self, where: str, began: float, at: float) -> Iterator[None]:
        """Within the block, reads end at `at`, and connection errors become RetryableError."""
        try:
            with deadline(at):
                yield
        except httpx2.TimeoutException as error:
            raise RetryableError(
                f"{where} did not answer within {time.monotonic() - began:.1f} s. {self._late}"
            ) from error
        except httpx2.SSEError as error:
            raise MalformedAnswer(
                f"{where} sends a stream that cannot be read ({error}). Update the server."
            ) from error
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            raise RetryableError(f"{where} broke off: {error}. See the server's log.") from error
        except httpx2.RequestError as error:
            # A transport that refuses an address does so each time.
            is_refused = isinstance(error.__cause__, BackendUnavailable)
            kind = BackendUnavailable if is_refused else RetryableError
            raise kind(f"{where} cannot be reached: {error}. {self._unreachable}") from error

    def _answered(
        self, where: str, payload: Mapping[str, object] | None, at: float
    ) -> httpx2.Response:
        """A successful response whose body is not read yet."""
        cancellation.check_cancelled()
        client = self._client()
        left = max(at - time.monotonic(), 0.001)
        method = "GET" if payload is None else "POST"
        request = client.build_request(method, where, json=payload, timeout=left)
        response = client.send(request, stream=True)
        if response.is_success:
            return response
        with closing(response):
            said = server_text(read_start(response), self.secrets)
            raise error_for_status(where, response.status_code, response.headers, said, self._cures)

    def _check_size(self, size: int, where: str) -> None:
        if size > self._largest_answer:
            raise MalformedAnswer(
                f"{where} sends more than {self._largest_answer:,} bytes, which no answer needs."
                " Check that base_url is that of the model server."
            )

    def _client(self) -> httpx2.Client:
        # A fork shares its parent's connections, on which two would read each other's answers. No
        # lock, which a fork could inherit locked: at worst two threads make one client each.
        pooled = self._pooled
        if pooled is None or pooled[0] != os.getpid():
            client = httpx2.Client(
                transport=self._transport()
                if self._transport
                else DeadlineTransport(proxy=environment_proxy(self._url)),
                headers=self._headers,
                auth=None if "Authorization" in self._headers else self._login,
                follow_redirects=False,
            )
            pooled = self._pooled = (os.getpid(), client)
        return pooled[1]

    def stream(
        self,
        path: str,
        payload: Mapping[str, object],
        *,
        last: Callable[[str], bool],
        patience: RetryPolicy,
        deadline: float = inf,
        passing: Callable[[str], RetryableError | None] = lambda first: None,
    ) -> Generator[str, None, None]:
        """The data of each event. Closing the generator closes the connection.

        `last` recognises the last event; a stream may also end without it. `deadline` is as for
        `post`, and for the whole stream. The request is retried only until the first event.
        `passing` is the retryable error in a first event. Raises as `post` does.
        """

        def begun(at: float) -> tuple[str | None, Generator[str, None, None]]:
            events = self._events(self.base_url + path, payload, at, last)
            first = next(events, None)
            if first is not None and (failure := passing(first)):
                events.close()
                raise failure
            return first, events

        first, events = patience.call_with_retries(begun, deadline=deadline)
        with closing(events):
            if first is not None:
                yield first
                yield from events

    def _events(
        self, where: str, payload: Mapping[str, object], at: float, last: Callable[[str], bool]
    ) -> Generator[str, None, None]:
        began, size = time.monotonic(), 0
        with self._waiting(where, began, at):
            response = self._answered(where, payload, at)
        with closing(response):
            with self._waiting(where, began, at):
                kind = response.headers.get("content-type", "").lower()
                kinds = ("application/x-ndjson", "application/json")
                if not kind.startswith(kinds if self._json_lines else "text/event-stream"):
                    raise MalformedAnswer(
                        f"{where} sends no stream:"
                        f" {server_text(read_start(response), self.secrets)}. Check that base_url"
                        " is that of the model server, and that the server can stream."
                    )
            # By the standard, whatever the header says; a byte order mark is no part of it.
            response.encoding = "utf-8-sig"
            events = (
                _json_lines(response)
                if self._json_lines
                else (event.data for event in httpx2.EventSource(response))
            )
            while True:
                # Never around a yield: who reads the stream may wait for others meanwhile.
                with self._waiting(where, began, at):
                    event = next(events, None)
                if event is None:
                    return
                size += len(event)
                self._check_size(size, where)
                if last(event):
                    # Only a connection that was read to its end can be reused.
                    with (
                        suppress(httpx2.RequestError),
                        deadline(min(at, time.monotonic() + END_SECONDS)),
                    ):
                        next(events, None)
                yield event
