"""A member, and what the member asks with."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import MembershipFactory


@pytest.fixture
def alice() -> Membership:
    """The owner of a workspace."""
    return MembershipFactory()


@pytest.fixture
def client(alice: Membership) -> Client:
    """The member's browser."""
    client = Client()
    client.force_login(alice.user)
    return client


@pytest.fixture
def api(alice: Membership) -> APIClient:
    """The member's program."""
    client = APIClient()
    client.force_login(alice.user)
    return client
