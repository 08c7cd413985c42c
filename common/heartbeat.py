"""A sign of life from a thread, for work that may take longer than a lease."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

from django.db import DatabaseError, connection

logger = logging.getLogger(__name__)


@contextmanager
def heartbeat(beat: Callable[[], Any], *, seconds: float) -> Iterator[None]:
    """Call `beat` every so many seconds while the block works, in a thread of its own. A database
    that does not answer once is tried again at the next beat."""
    done = Event()

    def keep() -> None:
        try:
            while not done.wait(seconds):
                try:
                    beat()
                except DatabaseError as error:
                    logger.warning("a sign of life could not be given: %s", error)
                    connection.close()
        finally:
            connection.close()

    # in the same context, which says what the database shows
    heart = Thread(target=copy_context().run, args=(keep,), daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()
