"""What a time of mixed load tells: errors, growth, and how fast the first and the last were."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from rich.table import Table

from tests.load.clients import Answer
from tests.load.processes import Held

#: Of the time, before memory is measured: caches fill, and models and pools are made.
WARM_UP = 0.3
#: A process grows without bound where it grows faster than this, by more than so many megabytes in
#: the time measured, and no slower in its second half.
MOST_MB_AN_HOUR = 30.0
MOST_MB = 8.0
#: What lives for less of the time is no process whose growth matters.
LIVES = 0.6


def speeds(answers: Sequence[Answer], seconds: float) -> Table:
    """Of each kind: how many answers by status, and milliseconds in the first and last fifth."""
    table = Table("kind", "answers", "by status", "p50 / p95 ms, first fifth", "last fifth")
    for kind in sorted({answer.kind for answer in answers}):
        rows = [answer for answer in answers if answer.kind == kind]
        statuses = Counter(answer.status for answer in rows)
        first = [answer for answer in rows if answer.at < seconds / 5]
        last = [answer for answer in rows if answer.at > seconds * 4 / 5]
        told = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        table.add_row(kind, str(len(rows)), told, _spread(first), _spread(last))
    return table


def memory(held: Sequence[Held], seconds: float) -> Table:
    """Of each process: megabytes after warming up and at the end, and how fast it grew."""
    table = Table("process", "MB", "at the end", "MB an hour", "in its halves")
    for each in _lasting(held, seconds):
        halves = " / ".join(f"{half.slope:+.0f}" for half in each.halves)
        table.add_row(
            each.name,
            f"{each.megabytes[0]:.0f}",
            f"{each.megabytes[-1]:.0f}",
            f"{each.slope:+.1f}",
            halves,
        )
    return table


def faults(answers: Sequence[Answer], held: Sequence[Held], seconds: float) -> list[str]:
    """What must not be, in words."""
    failed = [answer for answer in answers if answer.status == 0 or answer.status >= 400]
    told = [
        f"{each.kind} at {each.at:.0f} s was answered {each.status or 'nothing'}: {each.told}"
        for each in failed[:5]
    ]
    if len(failed) > len(told):
        told.append(f"and {len(failed) - len(told)} more were refused or failed")
    by_name: dict[str, list[Held]] = defaultdict(list)
    for each in _lasting(held, seconds):
        by_name[each.name].append(each)
    for name, alike in by_name.items():
        # Processes of one name do the same work, so that what leaks grows in most of them: a
        # single one that grows had the fewest requests and still warms up.
        each = sorted(alike, key=lambda one: one.slope)[(len(alike) - 1) // 2]
        first, second = (half.slope for half in each.halves)
        if each.slope > MOST_MB_AN_HOUR and each.growth > MOST_MB and second >= first / 2:
            told.append(f"{name} grew by {each.growth:.0f} MB, {each.slope:.0f} MB an hour")
    return told


def _lasting(held: Sequence[Held], seconds: float) -> list[Held]:
    warm = [each.since(seconds * WARM_UP) for each in held]
    least = seconds * LIVES * (1 - WARM_UP)
    return [each for each in warm if each.seconds and each.seconds[-1] - each.seconds[0] > least]


def _spread(answers: Sequence[Answer]) -> str:
    if not answers:
        return "-"
    p50, p95 = np.percentile([answer.milliseconds for answer in answers], [50, 95])
    return f"{p50:.0f} / {p95:.0f}"
