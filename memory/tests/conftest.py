"""Alice owns a workspace and uses the API of memory."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import MembershipFactory
from memory.tests.clients import client_of


@pytest.fixture
def alice() -> Membership:
    return MembershipFactory()


@pytest.fixture
def client(alice: Membership) -> APIClient:
    return client_of(alice)
