"""Alice's client of the pages, and an empty store."""

import pytest
from django.test import Client

from accounts.models import Membership
from documents.tests.factories import CollectionFactory
from search.stores import Store
from tests.kit import logged_in


@pytest.fixture
def client(alice: Membership) -> Client:
    """The member's browser."""
    return logged_in(alice)


@pytest.fixture
def store(db: None) -> Store:
    """Of a new collection in English."""
    return Store(CollectionFactory(default_language="en"))
