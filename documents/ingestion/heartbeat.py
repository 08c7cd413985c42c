"""A sign of life from a thread, for work that may take longer than a lease."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from django.conf import settings
from django.db import connection


@contextmanager
def heartbeat(beat: Callable[[], Any]) -> Iterator[None]:
    """Call `beat` three times a lease while the block works."""
    done = Event()

    def keep() -> None:
        try:
            while not done.wait(settings.INGESTION_LEASE_SECONDS / 3):
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
