"""Alice's client of the pages."""

import pytest
from django.test import Client

from accounts.models import Membership
from tests.kit import logged_in


@pytest.fixture
def client(alice: Membership) -> Client:
    """The member's browser."""
    return logged_in(alice)
