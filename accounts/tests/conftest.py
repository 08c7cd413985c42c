"""Fixtures of several modules."""

from typing import Any

import pytest


@pytest.fixture
def quick_passwords(settings: Any) -> None:
    """A hash that takes no time, where the number of attempts is the point."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
