"""Rate limits counted in Valkey, shared by all processes, and the limit of failed logins.

Generic cell rate algorithm: requests drain evenly, so there is no window edge at which twice as
many pass, and a caller who was quiet may use a whole window's requests at once.
"""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext, ngettext

from common.errors import RagsiteError

if TYPE_CHECKING:
    from redis import Redis


logger = logging.getLogger(__name__)

WINDOWS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_RATE = re.compile(rf"([0-9]{{1,9}})/({'|'.join(WINDOWS)})")
#: Timeout of Valkey; on expiry the request is allowed, and Valkey is not asked for a while.
TIMEOUT_SECONDS = 0.25
OUTAGE_PAUSE_SECONDS = 5.0
#: Stores when the requests so far will have drained, in microseconds of the server's clock.
#: Returns: whether this one passes, how many more would, microseconds until another would, and
#: until all would.
_GCRA_SCRIPT = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local each = window / limit
local drained = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local ahead = drained + each - now
if ahead > window + 0.5 then
  return {0, 0, math.ceil(ahead - window), math.ceil(drained - now)}
end
if ARGV[3] == '1' then
  redis.call('SET', KEYS[1], string.format('%.0f', drained + each), 'PX', math.ceil(ahead / 1000))
end
return {1, math.floor((window - ahead) / each + 0.5), 0, math.ceil(ahead)}
"""


#: Moves that time by an amount, however far.
_SPEND_SCRIPT = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local drained = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
drained = drained + ARGV[2] / ARGV[1] * ARGV[3]
redis.call('SET', KEYS[1], string.format('%.0f', drained), 'PX', math.ceil((drained - now) / 1000))
"""


class TooManyRequests(RagsiteError):
    """A quota is used up; `retry_after` is in seconds."""

    code = "throttled"
    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` requests within `seconds`."""

    limit: int
    seconds: int

    def __str__(self) -> str:
        name = next(name for name, seconds in WINDOWS.items() if seconds == self.seconds)
        return f"{self.limit:,} requests within a {name}"


@dataclass(frozen=True, slots=True)
class Quota:
    """The rest of a rate: `wait` and `reset` are seconds until one more request passes, and
    until the whole quota is available again.
    """

    rate: Rate
    passes: bool
    remaining: int
    wait: int
    reset: int


@lru_cache
def parse_rate(text: str) -> Rate | None:
    """Parse `"600/minute"`; None (no limit) for `""` and `"0"`. Raises ValueError."""
    if text.strip() in ("", "0"):
        return None
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"“{text}” is no rate. Write it like 600/minute; 0 is no limit.")
    return Rate(int(match[1]), WINDOWS[match[2]]) if int(match[1]) else None


def consume(*, caller: str, name: str, rate: Rate | None, counts: bool = True) -> Quota | None:
    """What is left of the quota `name` with this request of `caller`, which `counts` towards it
    unless it only asks; None where there is no limit or Valkey does not answer.
    """
    found = _eval(_GCRA_SCRIPT, f"{name}:{caller}", rate, int(counts))
    if rate is None or found is None:
        return None
    passes, remaining, wait, reset = found
    return Quota(rate, bool(passes), remaining, ceil(wait / 1e6), ceil(reset / 1e6))


def spend(*, caller: str, name: str, rate: Rate | None, amount: int) -> None:
    """Take `amount` from the quota `name` of `caller`, also where less is left: of what is known
    only afterwards, such as the tokens of an answer. What is overdrawn must drain first.
    """
    if amount > 0:
        _eval(_SPEND_SCRIPT, f"{name}:{caller}", rate, amount)


def _eval(script: str, key: str, rate: Rate | None, argument: int) -> Any:
    """What the script returns; None where there is no limit or Valkey does not answer."""
    if rate is None or _Outage.asleep_until > monotonic():
        return None
    from redis import RedisError  # noqa: PLC0415 (commands check rates and count nothing)

    try:
        return _client(settings.REDIS_URL).eval(
            script, 1, f"ragsite:rate:{key}", rate.limit, rate.seconds * 1_000_000, argument
        )
    except RedisError as error:
        _Outage.asleep_until = monotonic() + OUTAGE_PAUSE_SECONDS
        logger.warning("Requests are not limited while Valkey cannot be reached: %s", error)
        return None


def format_wait(seconds: int) -> str:
    """`40 seconds`, `7 minutes`; rounded up."""
    for texts, length in (
        (gettext("{number} hours"), 3600),
        (gettext("{number} minutes"), 60),
    ):
        if seconds > 2 * length:
            return texts.format(number=ceil(seconds / length))
    return ngettext("{number} second", "{number} seconds", seconds).format(number=seconds)


class _Outage:
    """Until when Valkey is not asked, for this process."""

    asleep_until = 0.0


@lru_cache(maxsize=4)
def _client(url: str) -> "Redis":
    from redis import Redis  # noqa: PLC0415

    return Redis.from_url(
        url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS
    )


ACCOUNT_QUOTA, ADDRESS_QUOTA, KEY_QUOTA = "login-account", "login-address", "key-address"
INVITATION_QUOTA = "invitation-address"
#: A household or a server has one network of IPv6, and all the addresses in it.
IPV6_NETWORK_BITS = 64


class LoginAttempt:
    """One login attempt: check it before the password is verified, and count it if it fails.

    An account that must wait is not counted for its address: a program with an old password blocks
    only its own account, not everybody behind the same address.
    """

    def __init__(self, *, account: str | None, request: Any) -> None:
        """`account` is None where nobody is named: the address alone counts."""
        self._address = client_address(request)
        self._callers = [(ADDRESS_QUOTA, self._address, parse_rate(settings.LOGIN_ADDRESS_RATE))]
        if account is not None:
            # A digest of the account name: people type passwords into name fields, and Valkey must
            # see neither.
            digest = salted_hmac(__name__, account.encode(errors="surrogatepass")).hexdigest()
            self._callers.insert(0, (ACCOUNT_QUOTA, digest, parse_rate(settings.LOGIN_RATE)))

    def check(self) -> None:
        """Raise TooManyRequests where no attempt is left, whatever the password is."""
        for name, caller, rate in self._callers:
            _require(
                consume(caller=caller, name=name, rate=rate, counts=False),
                gettext("Too many failed attempts to log in. Try again in {wait}."),
            )

    def fail(self) -> None:
        """Count the failure. Raises TooManyRequests where concurrent failures have used up the
        quota.
        """
        quotas = [_count(*each, self._address) for each in self._callers]
        for quota in quotas:
            _require(quota, gettext("Too many failed attempts to log in. Try again in {wait}."))


def record_failed_key(request: Any) -> None:
    """Count a request with an invalid API key. Raises TooManyRequests after too many from one
    address.

    Valid keys are never refused for it: nobody guesses 256 bits, and programs behind one address
    must not stop because one of them has lost its key.
    """
    rate, address = parse_rate(settings.LOGIN_ADDRESS_RATE), client_address(request)
    quota = _count(KEY_QUOTA, address, rate, address)
    _require(
        quota,
        gettext("Too many requests with an unknown key. Try again in {wait}."),
    )


def count_invitation_attempt(request: Any) -> None:
    """Count an account that is made, or an invitation that is none. Raises TooManyRequests after
    too many from one address."""
    rate, address = parse_rate(settings.LOGIN_ADDRESS_RATE), client_address(request)
    _require(
        _count(INVITATION_QUOTA, address, rate, address),
        gettext("Too many attempts to join from your address. Try again in {wait}."),
    )


def client_address(request: Any) -> str:
    """The network that a request came from: an IPv4 address, or 64 bits of an IPv6 address.

    Where the settings trust a proxy, it is the last address of `X-Forwarded-For`, which the proxy
    added. Earlier ones are whatever the client sent.
    """
    meta = getattr(request, "META", {})
    named = [meta.get("REMOTE_ADDR", "")]
    if settings.SECURE_PROXY_SSL_HEADER:
        named.insert(0, meta.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip())
    for text in named:
        try:
            address = ip_address(text)
        except ValueError:
            continue
        if isinstance(address, IPv4Address):
            return str(address)
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS)}"
    return "unknown"


def _count(name: str, caller: str, rate: Rate | None, address: str) -> Quota | None:
    quota = consume(caller=caller, name=name, rate=rate)
    if quota is not None and quota.passes and not quota.remaining:
        logger.warning("Failed logins from %s have used up %s: %s", address, name, rate)
    return quota


def _require(quota: Quota | None, text: str) -> None:
    """Raise TooManyRequests where the quota is used up."""
    if quota is not None and not quota.passes:
        wait = max(1, quota.wait)
        message = text.format(wait=format_wait(wait))
        raise TooManyRequests(message, retry_after=wait)
