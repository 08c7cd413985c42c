"""One page: asked for, followed where it moved to, and read no further than the limit."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2

from documents.fetching.addresses import LookUp, MayReach, is_public, look_up
from documents.fetching.transport import CheckedTransport
from documents.fetching.urls import FetchError, checked_url
from inference.remote.deadline import deadline

MAX_REDIRECTS = 5
#: For all redirects together, however slowly the bytes drip.
SECONDS = 30.0
_MOVED = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "ragsite",
    "Accept": "*/*",
    # Packed bodies are not unpacked: a few bytes may stand for gigabytes.
    "Accept-Encoding": "identity",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was there. `url` is what was asked for, `final_url` where it was in the end;
    `media_type` is what the server calls it, without its parameters, and `charset` one of these."""

    url: str
    final_url: str
    data: bytes
    media_type: str
    charset: str
    fetched_at: datetime


def fetch(
    url: str,
    *,
    max_bytes: int,
    seconds: float = SECONDS,
    may_reach: MayReach = is_public,
    ask: LookUp = look_up,
) -> Fetched:
    """Fetch a page of the public internet. Raises FetchError.

    `may_reach` judges every address that a host has, of the first as of those that it redirects to;
    `ask` looks hosts up.
    """
    asked = here = checked_url(url)
    end = time.monotonic() + seconds
    for _ in range(MAX_REDIRECTS + 1):
        with (
            deadline(end),
            httpx2.Client(
                transport=CheckedTransport(ask=ask, may_reach=may_reach),
                follow_redirects=False,
                trust_env=False,
                headers=_HEADERS,
            ) as client,
        ):
            answer = _get(client, here, max_bytes, seconds)
        if isinstance(answer, httpx2.URL):
            here = answer
            continue
        return Fetched(
            url=str(asked),
            final_url=str(here),
            data=answer.data,
            media_type=answer.media_type,
            charset=answer.charset,
            fetched_at=datetime.now(UTC),
        )
    raise FetchError(
        "unreachable", f"{asked} redirects more than {MAX_REDIRECTS} times. Name its last address."
    )


@dataclass(frozen=True, slots=True)
class _Body:
    data: bytes
    media_type: str
    charset: str


def _get(
    client: httpx2.Client, url: httpx2.URL, max_bytes: int, seconds: float
) -> _Body | httpx2.URL:
    """The page, or where it has moved."""
    try:
        with client.stream("GET", url, timeout=seconds) as response:
            if response.status_code in _MOVED and "location" in response.headers:
                return checked_url(str(url.join(response.headers["location"])))
            if not response.is_success:
                raise FetchError(
                    "unreachable",
                    f"{url.host} answers {response.status_code} {response.reason_phrase}. Look at"
                    " the address in a browser; pages behind a login cannot be fetched.",
                )
            return _body(response, url, max_bytes)
    except httpx2.TimeoutException as error:
        raise FetchError(
            "unreachable", f"{url.host} did not answer in {seconds:.0f} s. Try later, or upload it."
        ) from error
    except (httpx2.RequestError, httpx2.InvalidURL, ValueError) as error:
        raise FetchError(
            "unreachable", f"{url.host} cannot be read: {error}. Try later, or upload it."
        ) from error


def _body(response: httpx2.Response, url: httpx2.URL, max_bytes: int) -> _Body:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise FetchError(
            "unsupported",
            f"{url.host} sends it packed ({encoding[:40]}), unasked. Download and upload it.",
        )
    too_large = FetchError(
        "too_large",
        f"It has more than {max_bytes:,} bytes. Raise RAGSITE_MAX_UPLOAD_BYTES, or take a part.",
    )
    said = response.headers.get("content-length", "")
    if said.isdecimal() and int(said) > max_bytes:
        raise too_large
    data = bytearray()
    for piece in response.iter_raw():
        data += piece
        if len(data) > max_bytes:
            raise too_large
    content_type = response.headers.get("content-type", "")
    return _Body(
        data=bytes(data),
        media_type=content_type.partition(";")[0].strip().lower(),
        charset=response.charset_encoding or "",
    )
