"""Which hosts may be connected to: those that everybody can reach, and no others."""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from documents.fetching.urls import FetchError

Address = IPv4Address | IPv6Address
#: (host, port) → every address that it has.
LookUp = Callable[[str, int], Sequence[str]]
MayReach = Callable[[Address], bool]

#: Public by their number, and not by what answers there: ways into IPv4, a cloud's own services.
_LED_ELSEWHERE = tuple(
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
    """Whether it is an ordinary address of the internet: not private, loopback, link-local (where
    clouds keep their metadata), shared, multicast, reserved, unspecified, or one of those in
    disguise."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if any(address.version == net.version and address in net for net in _LED_ELSEWHERE):
        return False
    return (
        address.is_global
        and not address.is_private
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
    )


def look_up(host: str, port: int) -> list[str]:
    """Every address of the host, as the system's resolver says."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise FetchError(
            "unreachable", f"{host} has no address. Is it written right, and is the network there?"
        ) from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def reachable_addresses(
    host: str, port: int, *, ask: LookUp = look_up, may_reach: MayReach = is_public
) -> list[str]:
    """The host's addresses, if all of them may be connected to. Raises FetchError: one that may not
    is a host that was set up to lead there."""
    addresses = list(ask(host, port))
    for text in addresses:
        try:
            allowed = may_reach(ip_address(text.partition("%")[0]))
        except ValueError:
            allowed = False
        if not allowed:
            raise FetchError(
                "forbidden_address",
                f"{host} leads to an address that is not of the public internet. Such are never"
                " fetched: upload the file instead.",
            )
    if not addresses:
        raise FetchError("unreachable", f"{host} has no address.")
    return addresses
