"""A workspace, its graph, and its owner at the API."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership, Workspace
from documents.tests.factories import MembershipFactory, WorkspaceFactory
from graph.scopes import GraphScope
from graph.tests.clients import client_of


@pytest.fixture
def workspace() -> Workspace:
    return WorkspaceFactory()


@pytest.fixture
def scope(workspace: Workspace) -> GraphScope:
    """The whole graph of the workspace."""
    return GraphScope(workspace.pk)


@pytest.fixture
def alice() -> Membership:
    """An owner."""
    return MembershipFactory()


@pytest.fixture
def client(alice: Membership) -> APIClient:
    """Alice's."""
    return client_of(alice)
