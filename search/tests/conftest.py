"""Alice's client of the pages, and an empty store."""

import pytest
from django.test import Client

from accounts.models import Membership
from documents.models import Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
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


@pytest.fixture
def leaflets(alice: Membership) -> Collection:
    """Alice's, empty."""
    return CollectionFactory(workspace=alice.workspace, slug="leaflets", name="Leaflets")


@pytest.fixture
def leaflet(leaflets: Collection) -> Document:
    """A document of two passages, of which the second is about nausea."""
    document = DocumentFactory(
        collection=leaflets, title="Aripiprazole", media_type="application/pdf"
    )
    ChunkFactory(document=document, text="Keep the tablets out of the reach of children.")
    ChunkFactory(
        document=document,
        text="Common side effects are nausea and restlessness.",
        heading_path=["Possible side effects"],
        page=4,
        metadata={"year": 2025},
        key="aripiprazole_chunk_002",
        summary="Which side effects are common.",
        token_count=9,
    )
    return document
