"""How many requests a caller may make: counted in Valkey, where all processes of the site see it.

The generic cell rate algorithm: requests drain evenly, so that there is no edge of a window at
which twice as many pass. A caller who was quiet may make all of a window's requests at once.
"""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING

from django.conf import settings

from common.errors import RagsiteError

if TYPE_CHECKING:
    from redis import Redis

logger = logging.getLogger(__name__)

WINDOWS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
_RATE = re.compile(rf"([0-9]{{1,9}})/({'|'.join(WINDOWS)})")
#: A counter that answers later than this holds up nobody; nor is it asked again for a while.
PATIENCE_SECONDS = 0.25
PAUSE_SECONDS = 5.0
#: When the last request of those made so far will have drained, in microseconds of the server's
#: clock. Returns: whether this one passes, how many more would, microseconds until another would,
#: and until all would.
_TAKE = """
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


class TooManyRequests(RagsiteError):
    """The caller has to wait."""

    code = "throttled"
    status = 429

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests within so many seconds."""

    limit: int
    seconds: int

    def __str__(self) -> str:
        name = next(name for name, seconds in WINDOWS.items() if seconds == self.seconds)
        return f"{self.limit:,} requests within a {name}"


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a rate: `wait` and `reset` are seconds until one more request passes, and
    until all do."""

    rate: Rate
    passes: bool
    remaining: int
    wait: int
    reset: int


@lru_cache
def parse_rate(text: str) -> Rate | None:
    """`"600/minute"`; None for no limit, said as `""` or `"0"`. Raises ValueError."""
    if text.strip() in ("", "0"):
        return None
    match = _RATE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"“{text}” is no rate. Write it like 600/minute; 0 is no limit.")
    return Rate(int(match[1]), WINDOWS[match[2]]) if int(match[1]) else None


def take(*, caller: str, name: str, rate: Rate) -> Quota | None:
    """Count a request of `caller` towards the quota `name`; None where nobody can count."""
    return _ask(caller=caller, name=name, rate=rate, counts=True)


def look(*, caller: str, name: str, rate: Rate) -> Quota | None:
    """What `take` would answer, without counting anything."""
    return _ask(caller=caller, name=name, rate=rate, counts=False)


def _ask(*, caller: str, name: str, rate: Rate, counts: bool) -> Quota | None:
    if _Counter.asleep_until > monotonic():
        return None
    from redis import RedisError  # noqa: PLC0415 (commands check rates and count nothing)

    try:
        passes, remaining, wait, reset = _server(settings.REDIS_URL).eval(
            _TAKE,
            1,
            f"ragsite:rate:{name}:{caller}",
            rate.limit,
            rate.seconds * 1_000_000,
            int(counts),
        )
    except RedisError as error:
        _Counter.asleep_until = monotonic() + PAUSE_SECONDS
        logger.warning("Requests are not limited while Valkey cannot be reached: %s", error)
        return None
    return Quota(rate, bool(passes), remaining, ceil(wait / 1e6), ceil(reset / 1e6))


def forget_outage() -> None:
    """Count again at once."""
    _Counter.asleep_until = 0.0


def in_words(seconds: int) -> str:
    """For people: `40 seconds`, `7 minutes`; never less than it is."""
    for name, length in (("hour", 3600), ("minute", 60)):
        if seconds > 2 * length:
            return f"{ceil(seconds / length)} {name}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


class _Counter:
    """Of this process."""

    asleep_until = 0.0


@lru_cache(maxsize=4)
def _server(url: str) -> "Redis":
    from redis import Redis  # noqa: PLC0415

    return Redis.from_url(
        url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
    )
