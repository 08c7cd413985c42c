"""What is looked at; a part of the site adds its own with `register`."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a look found: `detail` is for those who run the site, and names no secret."""

    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that is looked at. `look` runs in a thread, at most one at a time, and must close
    what it opens; whatever it raises is an outcome. Without one that `is_required` this process can
    answer nothing, and is not ready; without another the site does less."""

    name: str
    look: Callable[[], Outcome]
    is_required: bool = False


_probes: dict[str, Probe] = {}


def register(probe: Probe) -> None:
    """Look at it from now on. A second one of that name takes the place of the first."""
    _probes[probe.name] = probe


def probes() -> list[Probe]:
    """The site's own, and then those that were registered, which take the place of their like."""
    from ragsite.health import standard  # noqa: PLC0415 (what they look at, commands need not load)

    return list(({probe.name: probe for probe in standard.probes()} | _probes).values())
