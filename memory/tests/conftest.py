"""A memory, and a queue that waits for nothing."""

from typing import Any

import pytest

from memory.scopes import UserScope
from memory.tests.factories import make_scope


@pytest.fixture
def scope(db: None) -> UserScope:
    """The memory of somebody in a workspace of their own."""
    return make_scope()


@pytest.fixture
def at_once(settings: Any) -> None:
    """Every message is due when it comes."""
    settings.MEMORY_EXTRACTION_MIN_TURNS = 1
    settings.MEMORY_EXTRACTION_IDLE_SECONDS = 0
