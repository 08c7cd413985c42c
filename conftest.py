"""Fixtures of all apps' tests. A module that needs another `alice` or `collection` defines it."""

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.models import Collection
from documents.tests.factories import CollectionFactory, MembershipFactory
from tests.kit import client_of, logged_in


@pytest.fixture
def alice() -> Membership:
    """The owner of a workspace."""
    return MembershipFactory()


@pytest.fixture
def collection() -> Collection:
    """Empty, in a workspace without members."""
    return CollectionFactory()


@pytest.fixture
def api(alice: Membership) -> APIClient:
    """Alice's client of the API."""
    return client_of(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """The client of a viewer of Alice's workspace."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """The client of the owner of another workspace."""
    return logged_in(MembershipFactory())


@pytest.fixture
def model_down(settings: Any) -> None:
    """The default embedder answers no question."""
    down = {"default": {"BACKEND": "tests.kit.Down"}}
    settings.INFERENCE = {**settings.INFERENCE, "embedder": down, "reranker": {}}
