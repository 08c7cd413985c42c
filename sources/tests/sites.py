"""A small web site on a loopback port, with ETags and a log of requests. Begin with `Site`."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Status, headers, body.
Answer = tuple[int, dict[str, str], bytes]


class Site:
    """`pages` are answers by path with query, or functions that take the handler and write one.
    `requests` are the paths that were asked for, `sent` those answered with a body and 200."""

    def __init__(self, *, has_marks: bool = True) -> None:
        self.pages: dict[str, Answer | Callable[[Any], None]] = {}
        self.requests: list[str] = []
        self.sent: list[str] = []
        self.port = 0
        self._has_marks = has_marks
        self._server: ThreadingHTTPServer | None = None

    def url(self, path: str = "/", host: str = "localhost") -> str:
        return f"http://{host}:{self.port}{path}"

    def page(self, path: str, body: str, *links: str, head: str = "", **headers: str) -> None:
        """An HTML page with this text and links."""
        anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        text = f"<html><head><title>{path}</title>{head}</head><body><main><p>{body}</p></main>"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        page = f"{text}<nav>{anchors}</nav></body></html>".encode()
        self.pages[path] = (200, {"Content-Type": "text/html", **named}, page)

    def file(self, path: str, body: bytes, media_type: str = "text/plain", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (200, {"Content-Type": media_type, **named}, body)

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        self.pages[path] = (status, {"Location": to}, b"")

    def fail(self, path: str, status: int = 500, **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = (status, named, b"it does not work")

    def sitemap(self, *entries: tuple[str, str], path: str = "/sitemap.xml") -> None:
        """(path, lastmod) of the pages."""
        rows = "".join(
            f"<url><loc>{self.url(name)}</loc>{f'<lastmod>{day}</lastmod>' if day else ''}</url>"
            for name, day in entries
        )
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'
        self.file(path, text.encode(), "application/xml")

    def asked(self) -> list[str]:
        """What was asked for since this was last called."""
        asked, self.requests, self.sent = self.requests, [], []
        return asked

    def answer(self, path: str) -> Answer | Callable[[Any], None]:
        return self.pages.get(path, (404, {"Content-Type": "text/plain"}, b"nothing here"))

    def start(self) -> None:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                site.requests.append(self.path)
                answer = site.answer(self.path)
                if callable(answer):
                    with suppress(ConnectionError):
                        answer(self)
                    return
                status, headers, body = answer
                if status == 200 and site._has_marks:
                    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:16]}"', **headers}
                    if self.headers["If-None-Match"] == headers["ETag"]:
                        status, body = 304, b""
                if status == 200:
                    site.sent.append(self.path)
                self.send_response(status)
                if status != 304:
                    headers = {"Content-Length": str(len(body)), **headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *args: Any) -> None:
                """Clients that hang up in the middle."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@contextmanager
def running(*, has_marks: bool = True) -> Iterator[Site]:
    """A site that is stopped at the end."""
    site = Site(has_marks=has_marks)
    site.start()
    try:
        yield site
    finally:
        site.stop()
