"""Alice owns a workspace with a letter in it; Bob may read there, Charlie works elsewhere."""

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.models import Collection, Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)


def logged_in(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


@pytest.fixture
def alice() -> Membership:
    """The owner."""
    return MembershipFactory()


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """A viewer's."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """That of the owner of another workspace."""
    return logged_in(MembershipFactory())


@pytest.fixture
def notes(alice: Membership) -> Collection:
    """Empty."""
    return CollectionFactory(workspace=alice.workspace, slug="notes", name="Notes")


@pytest.fixture
def letter(notes: Collection) -> Document:
    """Two paragraphs, a passage each."""
    document = DocumentFactory(collection=notes, title="A letter", key="letters/a.txt")
    ChunkFactory(document=document, text="Dear reader,", start=0, end=12)
    ChunkFactory(document=document, text="all is well.", start=14, end=26)
    return document
