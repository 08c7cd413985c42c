"""A small web site on a loopback port, with ETags and a log of requests. Begin with `Site`."""

import hashlib
from typing import Any

from documents.tests.web_server import Answer, LoopbackServer


class Site(LoopbackServer):
    """`sent` are the paths answered with a body and 200."""

    def __init__(self, *, has_marks: bool = True) -> None:
        super().__init__()
        self.sent: list[str] = []
        self._has_marks = has_marks

    def page(self, path: str, body: str, *links: str, head: str = "", **headers: str) -> None:
        """An HTML page with this text and links."""
        anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
        text = f"<html><head><title>{path}</title>{head}</head><body><main><p>{body}</p></main>"
        page = f"{text}<nav>{anchors}</nav></body></html>".encode()
        self.file(path, page, "text/html", **headers)

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

    def finished(self, handler: Any, answer: Answer) -> Answer:
        status, headers, body = answer
        if status == 200 and self._has_marks:
            headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:16]}"', **headers}
            if handler.headers["If-None-Match"] == headers["ETag"]:
                status, body = 304, b""
        if status == 200:
            self.sent.append(handler.path)
        return status, headers, body
