"""Fixtures of several modules."""

import pytest

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import CollectionFactory


@pytest.fixture
def notes(alice: Membership) -> Collection:
    """Alice's, and empty."""
    return CollectionFactory(
        workspace=alice.workspace, slug="notes", name="Notes", default_language="en"
    )
