"""Connections to addresses that were checked, and to no others."""

from collections.abc import Iterable
from typing import Any

import httpcore2

from documents.fetching.addresses import LookUp, MayReach, reachable_addresses
from inference.remote.deadline import DeadlineTransport


class CheckedTransport(DeadlineTransport):
    """Looks a host up itself and connects to what it has checked.

    Between the check and the connection a name could get another address, so there is no second
    look: the socket is opened to the number, while the request's Host and the certificate's name
    stay the host's. Proxies are not asked, which would look it up themselves.
    """

    def __init__(self, *, ask: LookUp, may_reach: MayReach) -> None:
        super().__init__()
        self._pool._network_backend = _Checked(self._pool._network_backend, ask, may_reach)


class _Checked(httpcore2.NetworkBackend):
    def __init__(self, inner: httpcore2.NetworkBackend, ask: LookUp, may_reach: MayReach) -> None:
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
        addresses = reachable_addresses(host, port, ask=self._ask, may_reach=self._may_reach)
        for address in addresses[:-1]:
            try:
                return self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except httpcore2.ConnectError:
                continue  # such as IPv6 where there is none
        return self._inner.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
