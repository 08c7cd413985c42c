"""A model server on a socket that answers as told: well, badly, slowly or not at all."""

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from inference.backends.hashing import HashingEmbedder

DIMENSIONS = 8
LOOPBACK = IPv4Address("127.0.0.1")
_hashing = HashingEmbedder(dimensions=DIMENSIONS)


@dataclass(frozen=True)
class Request:
    """What a client sent, from which port. Header names are in lower case; of a GET `json` is
    None."""

    path: str
    port: int
    headers: Mapping[str, str]
    json: Any


@dataclass(frozen=True)
class Reply:
    """An answer: `body` is sent as it is where it is bytes, else as JSON."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(self, handler: "Handler") -> None:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        handler.send_response(self.status)
        for name, value in {"Content-Length": str(len(body)), **self.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


class Silence:
    """Takes the request, which sets `heard`, and says nothing until the client goes, which sets
    `gone`."""

    def __init__(self) -> None:
        self.heard = threading.Event()
        self.gone = threading.Event()

    def send(self, handler: "Handler") -> None:
        self.heard.set()
        _await_hang_up(handler, self.gone)
        handler.close_connection = True


def _await_hang_up(handler: "Handler", gone: threading.Event) -> None:
    """Until the client closes the connection or the test is over."""
    handler.connection.settimeout(0.02)
    while not handler.stub.over.is_set():
        with suppress(TimeoutError):
            if not handler.connection.recv(1):
                gone.set()
                return


class Dripping:
    """A byte now and then until the client goes: in the body, or before it comes to one."""

    def __init__(self, *, in_headers: bool = False) -> None:
        self.start = b"HTTP/1.1 200 OK\r\n" + (b"X-Long: " if in_headers else b"\r\n")

    def send(self, handler: "Handler") -> None:
        handler.wfile.write(self.start)
        while not handler.stub.over.wait(0.01):
            handler.wfile.write(b"1")
        handler.close_connection = True


class Endless:
    """A body that does not end, as fast as it goes."""

    def send(self, handler: "Handler") -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not handler.stub.over.is_set():
            handler.wfile.write(b"[" * 4096)


class CutOff:
    """Promises a whole body and hangs up after a part of it."""

    def send(self, handler: "Handler") -> None:
        handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": [')
        handler.close_connection = True


class Stream:
    """Server-sent events: each part as soon as it is its turn, an Event when it is set.

    Then comes `after`: the "end", a "cut" connection, "silence", or "pings". In the last two `gone`
    is set when the client goes.
    """

    def __init__(
        self, *parts: bytes | threading.Event, after: str = "end", kind: str = "text/event-stream"
    ) -> None:
        self.parts = parts
        self.after = after
        self.kind = kind
        self.gone = threading.Event()

    def send(self, handler: "Handler") -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", self.kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in self.parts:
            if isinstance(part, threading.Event):
                part.wait(10)
            else:
                self._write(handler, part)
        if self.after == "end":
            self._write(handler, b"")
            return
        handler.close_connection = True
        if self.after == "silence":
            _await_hang_up(handler, self.gone)
        elif self.after == "pings":
            self._ping(handler)

    def _ping(self, handler: "Handler") -> None:
        try:
            while not handler.stub.over.wait(0.01):
                self._write(handler, b": still there\n\n")
        except OSError:
            self.gone.set()

    def _write(self, handler: "Handler", part: bytes) -> None:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))


class StubServer:
    """Replies with what `first` was told, each once, then with what `always` makes of a request."""

    def __init__(self, url: str, over: threading.Event) -> None:
        self.url = url
        self.over = over
        self.requests: list[Request] = []
        self._next: deque[Any] = deque()
        self._always: Callable[[Any], Any] = lambda payload: Reply({})
        self._lock = threading.Lock()

    def first(self, *replies: Any) -> None:
        self._next.extend(replies)

    def always(self, reply: Callable[[Any], Any]) -> None:
        self._always = reply

    def take(self, request: Request) -> Any:
        with self._lock:
            self.requests.append(request)
            if self._next:
                return self._next.popleft()
        return self._always(request.json)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stub: StubServer

    def handle(self) -> None:
        with suppress(ConnectionError):  # of a client that hung up
            super().handle()

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null"
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, self.client_address[1], headers, json.loads(body))
        try:
            self.stub.take(request).send(self)
        except OSError:  # the client has gone, as it should from some of these
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def stub_server(*, certificate: Path | None = None) -> Iterator[StubServer]:
    """Over TLS where there is a `certificate`, a PEM file with its key."""
    over = threading.Event()
    handler = type("StubHandler", (Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.block_on_close = False
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if certificate else "http"
    handler.stub = StubServer(f"{scheme}://127.0.0.1:{server.server_port}", over)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield handler.stub
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def self_signed(folder: Path) -> Path:
    """A certificate for 127.0.0.1 and its key in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return pem


def vector(text: str) -> list[float]:
    """Of length 3, so that a client that does not normalise is found out."""
    return [3 * float(number) for number in _hashing.embed_query(text)]


def openai_reply(payload: Any) -> Reply:
    items = [{"index": at, "embedding": vector(text)} for at, text in enumerate(payload["input"])]
    return Reply({"object": "list", "data": items})


def ollama_reply(payload: Any) -> Reply:
    return Reply({"embeddings": [vector(text) for text in payload["input"]]})


def event(data: Any) -> bytes:
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def delta(content: str | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """What one event of a streamed chat completion holds."""
    choice = {"index": 0, "delta": {"content": content, **fields}, "finish_reason": finish}
    return {"object": "chat.completion.chunk", "choices": [choice]}


def chat_stream(*pieces: str, **how: Any) -> Stream:
    """A streamed answer that keeps to the protocol to its end."""
    events = [*map(delta, pieces), delta(finish="stop"), "[DONE]"]
    return Stream(*map(event, events), **how)


def chat_reply(content: Any, *, finish: str = "stop", **fields: Any) -> Reply:
    """A whole chat completion; `fields` are the message's."""
    message = {"role": "assistant", "content": content, **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return Reply({"object": "chat.completion", "choices": [choice], "usage": usage})
