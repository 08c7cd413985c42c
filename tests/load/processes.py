"""How much memory a site's processes hold, over time."""

from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic

import numpy as np
import psutil

MEGABYTE = 1024 * 1024


@dataclass(slots=True)
class Held:
    """One process: its megabytes (RSS) at seconds since the beginning."""

    name: str
    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def since(self, second: float) -> "Held":
        """Without what was before."""
        rows = [row for row in zip(self.seconds, self.megabytes, strict=True) if row[0] >= second]
        return Held(self.name, [row[0] for row in rows], [row[1] for row in rows])

    @property
    def slope(self) -> float:
        """Megabytes an hour, by least squares."""
        if len(self.seconds) < 3:
            return 0.0
        return float(np.polyfit(self.seconds, self.megabytes, 1)[0]) * 3600

    @property
    def growth(self) -> float:
        """Megabytes that the slope makes of the time it was seen."""
        return self.slope * (self.seconds[-1] - self.seconds[0]) / 3600 if self.seconds else 0.0

    @property
    def halves(self) -> tuple["Held", "Held"]:
        middle = len(self.seconds) // 2
        return (
            Held(self.name, self.seconds[:middle], self.megabytes[:middle]),
            Held(self.name, self.seconds[middle:], self.megabytes[middle:]),
        )


class Watch(Thread):
    """Reads the memory of a process and of all below it, every few seconds until `enough`."""

    def __init__(self, pid: int, *, enough: Event, began: float, every: float = 2.0) -> None:
        super().__init__(name="watch", daemon=True)
        self.held: dict[int, Held] = {}
        self._top, self._enough, self._began, self._every = pid, enough, began, every

    def run(self) -> None:
        while not self._enough.wait(self._every):
            self._read()

    def _read(self) -> None:
        at = monotonic() - self._began
        top = psutil.Process(self._top)
        for process in [top, *top.children(recursive=True)]:
            try:
                size = process.memory_info().rss / MEGABYTE
                held = self.held.setdefault(process.pid, Held(_name(process)))
            except psutil.NoSuchProcess:
                continue
            held.seconds.append(at)
            held.megabytes.append(size)


def _name(process: psutil.Process) -> str:
    """What of its command line tells it from the others."""
    line = " ".join(process.cmdline())
    for part, name in (
        ("gunicorn", "web"),
        ("-n ingest@", "ingest"),
        ("-n embed@", "embed"),
        ("reading.sandbox", "parser"),
        ("manage.py up", "up"),
    ):
        if part in line:
            return name
    return process.name()
