"""Failed attempts to log in: counted by account and by address. Who has too many of them waits.

Only failures count, so that nobody is held up by using the site. What is asked of an account that
does not exist is counted alike. Counters go by themselves when they have drained.
"""

import logging
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from accounts.rates import Quota, Rate, TooManyRequests, in_words, look, parse_rate, take

logger = logging.getLogger(__name__)

ACCOUNT, ADDRESS, KEY = "login-account", "login-address", "key-address"
#: A household or a server has one network of IPv6, and all the addresses in it.
IPV6_NETWORK_BITS = 64


class Attempt:
    """One attempt to log in: check it before the password is looked at, and afterwards again.

    An account that has to wait is not counted for its address: a program with an old password
    holds up its own account, not everybody beside it.
    """

    def __init__(self, *, account: str, request: Any) -> None:
        self._address = client_address(request)
        self._callers = (
            (ACCOUNT, _unreadable(account), parse_rate(settings.LOGIN_RATE)),
            (ADDRESS, self._address, parse_rate(settings.LOGIN_ADDRESS_RATE)),
        )

    def check(self) -> None:
        """Raises TooManyRequests where no attempt is left, whatever the password is."""
        for name, caller, rate in self._callers:
            quota = look(caller=caller, name=name, rate=rate) if rate else None
            if quota is not None and not quota.passes:
                raise _refusal("attempts to log in have failed", quota)

    def fail(self) -> None:
        """Count it. Raises TooManyRequests where others failed at the same time, until none was
        left: nobody learns more by asking all at once."""
        quotas = [
            _count(name, caller, rate, self._address)
            for name, caller, rate in self._callers
            if rate
        ]
        for quota in quotas:
            if quota is not None and not quota.passes:
                raise _refusal("attempts to log in have failed", quota)


def fail_key(request: Any) -> None:
    """Count an API key that is none. Raises TooManyRequests after too many from one address.

    Right keys are never refused for it. Nobody guesses 256 bits, and programs behind one address
    must not stop when one of them has lost its key.
    """
    rate, address = parse_rate(settings.LOGIN_ADDRESS_RATE), client_address(request)
    quota = _count(KEY, address, rate, address) if rate else None
    if quota is not None and not quota.passes:
        raise _refusal("requests came with a key that is none of this site's", quota)


def client_address(request: Any) -> str:
    """The network that a request came from: an address of IPv4, or 64 bits of IPv6.

    Where the settings trust a proxy, that is the last address of `X-Forwarded-For`: the one that
    the proxy saw. Those before it are whatever the client wrote.
    """
    meta = getattr(request, "META", {})
    named = [meta.get("REMOTE_ADDR", "")]
    if settings.SECURE_PROXY_SSL_HEADER:
        named.insert(0, meta.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip())
    for text in named:
        if (address := _parsed(text)) is not None:
            return _network(address)
    return "unknown"


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _network(address: IPv4Address | IPv6Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS)}"


def _unreadable(account: str) -> str:
    """People type passwords where names belong: Valkey is told neither."""
    return salted_hmac(__name__, account.encode(errors="surrogatepass")).hexdigest()


def _count(name: str, caller: str, rate: Rate, address: str) -> Quota | None:
    quota = take(caller=caller, name=name, rate=rate)
    if quota is not None and quota.passes and not quota.remaining:
        logger.warning("Failed logins from %s have used up %s: %s", address, name, rate)
    return quota


def _refusal(what: str, quota: Quota) -> TooManyRequests:
    wait = max(1, quota.wait)
    return TooManyRequests(f"Too many {what}. Try again in {in_words(wait)}.", retry_after=wait)
