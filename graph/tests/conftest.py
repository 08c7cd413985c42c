"""A workspace, its graph, and its owner at the API."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership, Workspace
from documents.models import Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    WorkspaceFactory,
)
from graph.scopes import GraphScope
from tests.kit import client_of


@pytest.fixture
def workspace() -> Workspace:
    return WorkspaceFactory()


@pytest.fixture
def scope(workspace: Workspace) -> GraphScope:
    """The whole graph of the workspace."""
    return GraphScope(workspace.pk)


@pytest.fixture
def note(alice: Membership) -> Document:
    """`doc:notes:a.md` with one passage, which speaks of an engine."""
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    passage = ChunkFactory(
        document=DocumentFactory(collection=notes, key="a.md", title="A note"), text="Of an engine."
    )
    return passage.document


@pytest.fixture
def client(alice: Membership) -> APIClient:
    """Alice's."""
    return client_of(alice)
