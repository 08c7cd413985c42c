"""Alice owns a workspace with a letter in it; Bob may read there, Charlie works elsewhere."""

import pytest
from django.test import Client

from accounts.models import Membership
from documents.models import Collection, Document
from documents.tests.factories import ChunkFactory, DocumentFactory
from tests.kit import logged_in


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@pytest.fixture
def letter(notes: Collection) -> Document:
    """Two paragraphs, a passage each."""
    document = DocumentFactory(collection=notes, title="A letter", key="letters/a.txt")
    ChunkFactory(document=document, text="Dear reader,", start=0, end=12)
    ChunkFactory(document=document, text="all is well.", start=14, end=26)
    return document
