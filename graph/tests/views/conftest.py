"""Alice owns a workspace whose documents speak of some people, Bob may read in it, Charlie works
elsewhere."""

from dataclasses import dataclass

import pytest
from django.test import Client

from accounts.models import Membership
from documents.models import Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Node
from graph.tests.factories import make_edge, make_extracted, make_node
from tests.kit import logged_in


@pytest.fixture
def client(alice: Membership) -> Client:
    """Alice's."""
    return logged_in(alice)


@dataclass(frozen=True, slots=True)
class Harbour:
    """A log and a letter that both name Mara; the log names Tobias besides, who keeps a lighthouse
    that no document names."""

    log: Document
    letter: Document
    mara: Node
    tobias: Node
    lighthouse: Node


@pytest.fixture
def harbour(alice: Membership) -> Harbour:
    notes = CollectionFactory(workspace=alice.workspace, slug="harbour", name="Harbour")
    log = DocumentFactory(collection=notes, title="The log", key="log/1.txt")
    letter = DocumentFactory(collection=notes, title="A letter", key="letters/a.txt")
    day = ChunkFactory(document=log, text="Mara Hillage met Tobias Brandt at the pier.")
    night = ChunkFactory(document=log, text="At night Tobias Brandt lit the lamp.")
    greeting = ChunkFactory(document=letter, text="Dear Mara Hillage,")
    mara = make_extracted(
        "ent:person:mara hillage", day, greeting, name="Mara Hillage", labels=["Person"]
    )
    tobias = make_extracted(
        "ent:person:tobias brandt", day, night, name="Tobias Brandt", labels=["Person"]
    )
    lighthouse = make_node(
        "ent:place:lighthouse",
        workspace=alice.workspace,
        name="Lighthouse",
        labels=["Place"],
        props={"built": 1891, "of": "stone"},
    )
    make_edge(tobias, "KEEPS", lighthouse, weight=2.0)
    return Harbour(log, letter, mara, tobias, lighthouse)
