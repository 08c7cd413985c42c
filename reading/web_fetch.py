"""Fetch a page of the public internet, and refuse addresses inside the site's own network (SSRF).
Begin with `fetch`. No Django here."""

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import httpcore2
import httpx2

from inference.remote.client import DeadlineTransport, deadline

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65_535
MAX_URL_CHARACTERS = 1024


class FetchError(Exception):
    """A page that cannot be fetched; the message says why and how to fix it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def checked_url(text: str) -> httpx2.URL:
    """The normalised URL: host in lower case, no default port, no fragment. Raises FetchError for
    what cannot be fetched."""
    try:
        url = httpx2.URL(text.strip())
    except (httpx2.InvalidURL, ValueError) as error:
        raise FetchError(
            "malformed", f"This is not a valid address ({error}). Correct it."
        ) from error
    if url.scheme not in DEFAULT_PORTS or not url.host:
        raise FetchError(
            "malformed", "Only addresses that begin with http:// or https:// are fetched."
        )
    if url.port is not None and not 0 < url.port <= MAX_PORT:
        raise FetchError("malformed", f"There is no port {url.port}. Correct the address.")
    if url.userinfo:
        raise FetchError(
            "malformed",
            "The address contains a login. Pages behind a login cannot be fetched: upload them.",
        )
    port = None if url.port == DEFAULT_PORTS[url.scheme] else url.port
    plain = url.copy_with(fragment=None, port=port, path=url.path or "/")
    if len(str(plain)) > MAX_URL_CHARACTERS:
        raise FetchError(
            "malformed", f"The address has more than {MAX_URL_CHARACTERS:,} characters. Shorten it."
        )
    return plain


Address = IPv4Address | IPv6Address
#: (host, port) → every address that it has.
Resolver = Callable[[str, int], Sequence[str]]
AddressPolicy = Callable[[Address], bool]

#: Public by their number, and not by what answers there: ways into IPv4, a cloud's own services.
_TRANSITION_AND_METADATA_NETWORKS = tuple(
    ip_network(network)
    for network in (
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "192.88.99.0/24",
        "192.0.0.0/24",  # protocols' own, Oracle's metadata
        "168.63.129.16/32",  # Azure's metadata
    )
)


def is_public(address: Address) -> bool:
    """Whether it is an ordinary internet address: not private, loopback, link-local (cloud
    metadata), shared, multicast, reserved or unspecified, and no such address embedded in an IPv6
    one."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if any(
        address.version == net.version and address in net
        for net in _TRANSITION_AND_METADATA_NETWORKS
    ):
        return False
    return (
        address.is_global
        and not address.is_private
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
    )


def resolve_host(host: str, port: int) -> list[str]:
    """Every address of the host according to the system's resolver."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(
            "unreachable", f"{host} has no address. Check the spelling and the network."
        ) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked_addresses(
    host: str, port: int, *, resolve: Resolver = resolve_host, is_allowed: AddressPolicy = is_public
) -> list[str]:
    """The host's addresses if all are allowed. Raises FetchError if any is not: such a host was set
    up to reach the internal network."""
    addresses = list(resolve(host, port))
    for text in addresses:
        try:
            allowed = is_allowed(ip_address(text.partition("%")[0]))
        except ValueError:
            allowed = False
        if not allowed:
            raise FetchError(
                "forbidden_address",
                f"{host} leads to an address outside the public internet, which is never"
                " fetched. Upload the file instead.",
            )
    if not addresses:
        raise FetchError("unreachable", f"{host} has no address. Check the spelling.")
    return addresses


class CheckedTransport(DeadlineTransport):
    """Resolves a host itself and connects only to addresses that were checked.

    A name could resolve to another address between check and connection (DNS rebinding), so it is
    not resolved again: the socket is opened to the number, while the Host header and the
    certificate's name stay the host's. Proxies are not used, because they would resolve it
    themselves.
    """

    def __init__(self, *, resolve: Resolver, is_allowed: AddressPolicy) -> None:
        super().__init__()
        self._pool._network_backend = _CheckedBackend(
            self._pool._network_backend, resolve, is_allowed
        )


class _CheckedBackend(httpcore2.NetworkBackend):
    def __init__(
        self, inner: httpcore2.NetworkBackend, ask: Resolver, may_reach: AddressPolicy
    ) -> None:
        self._inner = inner
        self._ask = ask
        self._may_reach = may_reach

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        addresses = checked_addresses(host, port, resolve=self._ask, is_allowed=self._may_reach)
        for address in addresses[:-1]:
            try:
                return self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError:
                continue  # such as IPv6 where there is none
        return self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)


MAX_REDIRECTS = 5
#: For all redirects together, however slowly the bytes drip.
FETCH_SECONDS = 30.0
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "ragsite",
    "Accept": "*/*",
    # Packed bodies are not unpacked: a few bytes may stand for gigabytes.
    "Accept-Encoding": "identity",
    "Connection": "close",
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A fetched page. `url` was requested, `final_url` is where redirects ended; `media_type` is
    the server's without parameters, `charset` one of these."""

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
    seconds: float = FETCH_SECONDS,
    is_allowed: AddressPolicy = is_public,
    resolve: Resolver = resolve_host,
) -> Fetched:
    """Fetch a page of the public internet. Raises FetchError.

    `is_allowed` judges every address of every host, those of redirects too; `resolve` looks hosts
    up.
    """
    requested = here = checked_url(url)
    end = time.monotonic() + seconds
    for _ in range(MAX_REDIRECTS + 1):
        with (
            deadline(end),
            httpx2.Client(
                transport=CheckedTransport(resolve=resolve, is_allowed=is_allowed),
                follow_redirects=False,
                trust_env=False,
                headers=_HEADERS,
            ) as client,
        ):
            answer = _get(client, here, max_bytes, seconds)
        if isinstance(answer, Fetched):
            return replace(answer, url=str(requested))
        here = answer
    raise FetchError(
        "unreachable",
        f"{requested} redirects more than {MAX_REDIRECTS} times. Use the final address.",
    )


def _get(
    client: httpx2.Client, url: httpx2.URL, max_bytes: int, seconds: float
) -> Fetched | httpx2.URL:
    """The page, or the URL it redirects to."""
    try:
        with client.stream("GET", url, timeout=seconds) as response:
            if response.status_code in _REDIRECT_STATUSES and "location" in response.headers:
                return checked_url(str(url.join(response.headers["location"])))
            if not response.is_success:
                raise FetchError(
                    "unreachable",
                    f"{url.host} answers {response.status_code} {response.reason_phrase}. Look at"
                    " the address in a browser; pages behind a login cannot be fetched.",
                )
            encoding = response.headers.get("content-encoding", "identity").strip().lower()
            if encoding not in {"", "identity"}:
                raise FetchError(
                    "unsupported",
                    f"{url.host} sends it compressed ({encoding[:40]}) without being asked."
                    " Download it and upload it here.",
                )
            too_large = FetchError(
                "too_large",
                f"It has more than {max_bytes:,} bytes. Raise RAGSITE_MAX_UPLOAD_BYTES, or upload"
                " a part of it.",
            )
            announced = response.headers.get("content-length", "")
            if announced.isdecimal() and int(announced) > max_bytes:
                raise too_large
            data = bytearray()
            for piece in response.iter_raw():
                data += piece
                if len(data) > max_bytes:
                    raise too_large
            content_type = response.headers.get("content-type", "")
            return Fetched(
                url=str(url),
                final_url=str(url),
                data=bytes(data),
                media_type=content_type.partition(";")[0].strip().lower(),
                charset=response.charset_encoding or "",
                fetched_at=datetime.now(UTC),
            )
    except httpx2.TimeoutException as error:
        raise FetchError(
            "unreachable", f"{url.host} did not answer in {seconds:.0f} s. Try later, or upload it."
        ) from error
    except (httpx2.RequestError, httpx2.InvalidURL, ValueError) as error:
        raise FetchError(
            "unreachable", f"{url.host} cannot be read: {error}. Try later, or upload it."
        ) from error
