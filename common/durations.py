"""How long the work of workers took, counted in the broker and told by the web server: a worker on
another host, or in another container, needs no address for Prometheus to ask at.

The counts only grow, as a histogram of Prometheus must; they go when the broker's data go, which
Prometheus understands as a restart.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

from redis import Redis
from redis.exceptions import RedisError

from common.broker import impatient_client

KEY = "ragsite:durations"
#: Seconds; what takes longer than the last is in `+Inf`.
BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_NAMES = (*map(str, BOUNDS), "+Inf")


@dataclass(slots=True)
class Durations:
    """Of one kind of work."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_NAMES, 0))
    seconds: float = 0.0

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """Upper bounds, and how many took no longer."""
        total, found = 0, []
        for name in _NAMES:
            total += self.counts[name]
            found.append((name, float(total)))
        return found


def observe(seconds: Mapping[str, float]) -> None:
    """Count one piece of work of each kind. Where the broker does not answer nothing is counted:
    the work itself must not fail for it."""
    with suppress(RedisError), impatient_client() as client:
        pipe = client.pipeline(transaction=False)
        for kind, took in seconds.items():
            pipe.hincrby(KEY, f"{kind} {_NAMES[bisect_left(BOUNDS, took)]}", 1)
            pipe.hincrbyfloat(KEY, f"{kind} sum", took)
        pipe.execute()


def counted(client: Redis) -> dict[str, Durations]:
    """By kind of work, in alphabetical order."""
    found: dict[str, Durations] = defaultdict(Durations)
    fields = cast("dict[bytes, bytes]", client.hgetall(KEY))
    for name, value in fields.items():
        kind, _, what = name.decode().rpartition(" ")
        if what == "sum":
            found[kind].seconds = float(value)
        elif what in _NAMES:  # else of a version with other bounds
            found[kind].counts[what] = int(value)
    return dict(sorted(found.items()))
