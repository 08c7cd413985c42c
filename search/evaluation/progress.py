"""Telling how far a measurement is."""

from collections.abc import Callable
from typing import Any

#: Told what is being done, how much of it is done, and of how much.
Progress = Callable[[str, int, int], Any]


def nobody_watches(what: str, done: int, total: int) -> None:
    """No progress is shown."""
