"""A sign of life for work that may take longer than a lease."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings

from common.heartbeat import heartbeat as heartbeat_every


def heartbeat(beat: Callable[[], Any]) -> AbstractContextManager[None]:
    """Call `beat` three times a lease while the block works."""
    return heartbeat_every(beat, seconds=settings.INGESTION_LEASE_SECONDS / 3)
