"""Fixtures of all apps' tests. A module that needs another `alice` or `collection` defines it."""

import pytest

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import CollectionFactory, MembershipFactory


@pytest.fixture
def alice() -> Membership:
    """The owner of a workspace."""
    return MembershipFactory()


@pytest.fixture
def collection() -> Collection:
    """Empty, in a workspace without members."""
    return CollectionFactory()
