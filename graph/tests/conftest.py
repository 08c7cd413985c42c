"""A workspace and its graph."""

import pytest

from accounts.models import Membership, Workspace
from documents.models import Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    WorkspaceFactory,
)
from graph.scopes import GraphScope


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
