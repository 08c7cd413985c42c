"""A sign of life from a thread, for work that may take longer than a lease."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from django.db import connection


@contextmanager
def heartbeat(beat: Callable[[], Any], *, seconds: float) -> Iterator[None]:
    """Call `beat` every so many seconds while the block works, in a thread of its own."""
    done = Event()

    def keep() -> None:
        try:
            while not done.wait(seconds):
                beat()
        finally:
            connection.close()

    heart = Thread(target=keep, daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()
