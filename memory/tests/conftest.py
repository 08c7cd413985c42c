"""Alice owns a workspace and uses the API of memory."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from tests.kit import client_of


@pytest.fixture
def client(alice: Membership) -> APIClient:
    return client_of(alice)
