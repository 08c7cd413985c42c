"""HTTP to sites of other people: what robots.txt allows (RFC 9309), and no faster than they like.
Begin with `PoliteClient`."""

import time
from typing import Any
from urllib.parse import urlsplit

import httpx2
from protego import Protego

from common.translation import gettext
from sources.connectors.base import SourceError
from sources.connectors.http import HttpClient

#: The name by which robots.txt may speak to us.
USER_AGENT = "ragsite"
#: A longer Crawl-delay is not waited for: such a site is read at this pace.
MAX_CRAWL_DELAY = 30.0
MAX_ROBOTS_BYTES = 512 * 1024
_FORBIDDEN = frozenset({401, 403})
_MISSING = frozenset({404, 410})


class TooManyRequests(SourceError):
    """The site asks to be left alone for longer than is waited for."""


class PoliteClient:
    """One request at a time, `delay` seconds apart, or more where robots.txt asks for it."""

    def __init__(self, *, delay: float) -> None:
        self.http = HttpClient()
        self._delay = delay
        self._last_at = 0.0
        self._robots: dict[str, Protego] = {}

    def close(self) -> None:
        self.http.close()

    def wait(self, url: str) -> None:
        """Until the next request to this site may be sent."""
        robots = self._robots.get(_origin(url))
        asked = robots.crawl_delay(USER_AGENT) if robots is not None else None
        delay = max(self._delay, min(float(asked or 0.0), MAX_CRAWL_DELAY))
        if (pause := self._last_at + delay - time.monotonic()) > 0:
            time.sleep(pause)
        self._last_at = time.monotonic()

    def get(self, url: str, **options: Any) -> httpx2.Response:
        """As `HttpClient.request`. Raises SourceError and TooManyRequests."""
        self.wait(url)
        answer = self.http.request("GET", url, **options)
        if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            raise TooManyRequests(
                gettext(
                    "{hostname} limits the rate of requests. The source continues later; a longer"
                    " pause between requests helps."
                ).format(hostname=urlsplit(url).hostname)
            )
        return answer

    def may_read(self, url: str) -> bool:
        """What robots.txt of its site says. Raises SourceError where that cannot be read."""
        return self.robots(url).can_fetch(url, USER_AGENT)

    def robots(self, url: str) -> Protego:
        """The rules of the site of `url`, read once. A site without robots.txt allows all; where
        its server fails nothing is read, as the standard wants it."""
        origin = _origin(url)
        if origin not in self._robots:
            answer = self.get(f"{origin}/robots.txt", max_bytes=MAX_ROBOTS_BYTES)
            if answer.status_code >= 500:
                raise SourceError(
                    gettext(
                        "{origin}/robots.txt answers {status}, so the allowed paths are unknown."
                        " The next run tries again."
                    ).format(origin=origin, status=answer.status_code)
                )
            text = answer.text if answer.is_success else ""
            self._robots[origin] = Protego.parse(text)
        return self._robots[origin]


def is_missing(answer: httpx2.Response) -> bool:
    """Whether the site says for certain that this address is not there (any more)."""
    return answer.status_code in _MISSING


def needs_login(answer: httpx2.Response) -> bool:
    return answer.status_code in _FORBIDDEN


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
