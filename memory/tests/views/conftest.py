"""Alice keeps a memory, Bob is in her workspace, Charlie in another."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import Membership
from memory import services
from memory.models import Context, Fact
from memory.scopes import UserScope, account_id
from memory.tests.factories import remember
from tests.kit import logged_in


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@pytest.fixture
def scope(alice: Membership) -> UserScope:
    """Alice's memory."""
    return UserScope(alice.workspace.pk, account_id(alice.user))


@pytest.fixture
def home(scope: UserScope) -> Fact:
    """Munich for a year, Berlin for a month, which Alice said in a turn."""
    now = timezone.now()
    said = Context.objects.get(pk=remember(scope, "I moved to Berlin.", "How lovely!"))
    days = {"Munich": 400, "Berlin": 30}
    for value, age in days.items():
        change = services.set_fact(
            scope=scope,
            key="home_city",
            value=value,
            at=now - timedelta(days=age),
            source=said if value == "Berlin" else None,
        )
    assert change is not None
    return change.fact
