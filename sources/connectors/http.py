"""HTTP for connectors: only addresses that may be reached, bounded answers, and the waits that a
busy server asks for. Begin with `HttpClient`."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
from django.conf import settings

from common.translation import format_number, gettext
from inference.remote.client import deadline
from reading.web_fetch import (
    Address,
    CheckedTransport,
    FetchError,
    checked_addresses,
    is_public,
    resolve_host,
)
from sources.connectors.base import ItemError, SourceError

REQUEST_SECONDS = 60.0
#: For one file, however slowly it comes.
DOWNLOAD_SECONDS = 900.0
MAX_LISTING_BYTES = 64 * 1024 * 1024
#: Tries of a request that a busy server puts off, and the longest wait for the next.
TRIES = 4
MAX_WAIT_SECONDS = 20.0
_BUSY_STATUSES = frozenset({429, 502, 503, 504})


def may_reach(address: Address) -> bool:
    """Whether a source may be at this address: one of the public internet, or of the networks that
    the operator has named in RAGSITE_SOURCE_NETWORKS."""
    return is_public(address) or any(
        address.version == network.version and address in network
        for network in map(ip_network, settings.SOURCE_NETWORKS)
    )


def reachable_addresses(host: str, port: int) -> list[str]:
    """The addresses of a source's server. Raises SourceError where one may not be reached."""
    try:
        return checked_addresses(host, port, resolve=resolve_host, is_allowed=may_reach)
    except FetchError as error:
        raise _unreachable(error) from error


def _unreachable(error: FetchError) -> SourceError:
    if error.code != "forbidden_address":
        return SourceError(str(error))
    return SourceError(
        gettext(
            "{error} The site's operator can allow that network with RAGSITE_SOURCE_NETWORKS."
        ).format(error=error),
        is_permanent=True,
    )


def http_date(text: str) -> datetime | None:
    """A date of a header, such as Last-Modified; None for what is none."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


class HttpClient:
    """Requests to a source. Raises SourceError where it is away or not reachable from here."""

    def __init__(self, *, auth: Any = None) -> None:
        self._client = httpx2.Client(
            transport=CheckedTransport(resolve=resolve_host, is_allowed=may_reach),
            auth=auth,
            # Packed bodies are not asked for: a few bytes may stand for gigabytes.
            headers={"User-Agent": "ragsite", "Accept-Encoding": "identity"},
            follow_redirects=True,
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def request(
        self,
        method: str,
        url: str,
        *,
        max_bytes: int = MAX_LISTING_BYTES,
        wants_body: Callable[[httpx2.Response], bool] = lambda answer: True,
        **options: Any,
    ) -> httpx2.Response:
        """The whole answer, whatever its status. A larger one than `max_bytes` is a SourceError;
        where `wants_body` says no to the headers, the rest is not read."""
        body = bytearray()

        def keep(piece: bytes) -> None:
            body.extend(piece)
            if len(body) > max_bytes:
                raise SourceError(
                    gettext("The answer of {url} has more than {limit} bytes.").format(
                        url=url, limit=format_number(max_bytes)
                    )
                )

        answer = self._send(
            method, url, keep, body.clear, REQUEST_SECONDS, options, wants_body=wants_body
        )
        return httpx2.Response(
            answer.status_code, headers=answer.headers, content=bytes(body), request=answer.request
        )

    def download(self, url: str, file: Path, *, max_bytes: int, **options: Any) -> httpx2.Response:
        """Write the body to `file`; returns the answer without it. Raises ItemError for more than
        `max_bytes`."""
        with file.open("wb") as opened:

            def keep(piece: bytes) -> None:
                opened.write(piece)
                if opened.tell() > max_bytes:
                    raise ItemError(
                        f"It has more than {max_bytes:,} bytes. Split it, or raise"
                        " RAGSITE_MAX_UPLOAD_BYTES."
                    )

            def begin_again() -> None:
                opened.seek(0)
                opened.truncate()

            return self._send("GET", url, keep, begin_again, DOWNLOAD_SECONDS, options)

    def _send(
        self,
        method: str,
        url: str,
        keep: Any,
        begin_again: Any,
        seconds: float,
        options: dict[str, Any],
        *,
        wants_body: Callable[[httpx2.Response], bool] = lambda answer: True,
    ) -> httpx2.Response:
        for tried in range(1, TRIES + 1):
            begin_again()
            try:
                with (
                    deadline(time.monotonic() + seconds),
                    self._client.stream(method, url, timeout=REQUEST_SECONDS, **options) as answer,
                ):
                    for piece in answer.iter_raw() if wants_body(answer) else ():
                        keep(piece)
            except FetchError as error:
                raise _unreachable(error) from error
            except (httpx2.RequestError, httpx2.InvalidURL, ValueError) as error:
                if tried == TRIES or not isinstance(error, httpx2.NetworkError):
                    raise SourceError(
                        gettext("{url} cannot be read: {reason}.").format(
                            url=url, reason=error or gettext("no answer")
                        )
                    ) from error
                time.sleep(2.0 ** (tried - 1))
            else:
                wait = _retry_seconds(answer, tried)
                is_busy = answer.status_code in _BUSY_STATUSES
                if not is_busy or tried == TRIES or wait > MAX_WAIT_SECONDS:
                    return answer
                time.sleep(wait)
        raise AssertionError


def _retry_seconds(answer: httpx2.Response, tried: int) -> float:
    """How long the server asks to wait, in seconds or until a date (RFC 9110, 10.2.3)."""
    asked = answer.headers.get("retry-after", "").strip()
    if asked.isdecimal():
        return float(asked)
    if (until := http_date(asked)) is not None:
        return max(until.timestamp() - time.time(), 0.0)
    return 2.0 ** (tried - 1)
