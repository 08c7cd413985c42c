"""A web server on a loopback socket that answers as each path is told to."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: Status, headers, body.
Answer = tuple[int, dict[str, str], bytes]


class LoopbackServer:
    """`pages` say what is sent for a path: an answer, or a function that takes the handler and does
    it all. `hosts` are the Host headers that came, `requests` the paths. `over` is set at the end.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.port = 0
        self.pages: dict[str, Answer | Callable[[Any], None]] = {}
        self.hosts: list[str] = []
        self.requests: list[str] = []
        self.over = threading.Event()
        self._certificate = certificate
        self._server: ThreadingHTTPServer | None = None

    def url(self, path: str = "/", host: str = "localhost") -> str:
        return f"http://{host}:{self.port}{path}"

    def file(self, path: str, body: bytes, media_type: str = "text/plain", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (200, {"Content-Type": media_type, **named}, body)

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.pages[path] = (status, {"Location": to}, b"")

    def answer(self, path: str) -> Answer | Callable[[Any], None]:
        missing = (404, {"Content-Type": "text/plain"}, b"nothing here")
        return self.pages.get(path) or self.pages.get(path.partition("?")[0], missing)

    def finished(self, handler: Any, answer: Answer) -> Answer:
        """The answer to this request, with what is in none of the pages."""
        return answer

    def start(self) -> None:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                web.hosts.append(self.headers["Host"])
                web.requests.append(self.path)
                answer = web.answer(self.path)
                with suppress(ConnectionError):
                    if callable(answer):
                        answer(self)
                        return
                    status, headers, body = web.finished(self, answer)
                    self.send_response(status)
                    if status != 304:
                        headers = {"Content-Length": str(len(body)), **headers}
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: Any) -> None:
                """Clients that hang up in the middle are what is tested."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        if self._certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class Web(LoopbackServer):
    """Pages of `docs.example`, a name that only the tests resolve."""

    def url(self, path: str = "/", host: str = "docs.example") -> str:
        return super().url(path, host)

    def page(self, path: str, body: bytes, media_type: str = "text/html", **headers: str) -> None:
        self.file(path, body, media_type, **headers)


Kind = TypeVar("Kind", bound=LoopbackServer)


@contextmanager
def running(web: Kind) -> Iterator[Kind]:
    """Started, and stopped at the end."""
    web.start()
    try:
        yield web
    finally:
        web.over.set()
        web.stop()


def self_signed(folder: Path, host: str) -> Path:
    """A certificate with its key for `host`, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file
