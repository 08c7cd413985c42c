"""What tests of answers share: a reader with documents, and a chat model on a socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accounts.models import Membership, Role
from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from inference.tests.stub_server import StubServer, stub_server
from rag.context import RagContext

OFFICE = (
    "# The move\n\nThe firm leaves Mill Street on 14 March. Movers come at seven in the morning."
    " Everybody packs the own desk.\n"
)
TRAVEL = "# Travel\n\nReceipts are paid back within ten days. Train tickets need no approval.\n"


def reader(*, role: Role = Role.OWNER) -> tuple[RagContext, Collection]:
    """A member, and a collection of two documents, as they are once they are ingested."""
    membership: Membership = MembershipFactory(role=role)
    collection = CollectionFactory(workspace=membership.workspace, slug="office")
    for key, title, text in (("move.md", "The move", OFFICE), ("travel.md", "Travel", TRAVEL)):
        row = DocumentFactory(
            collection=collection, key=key, title=title, rendering="markdown", is_current=True
        )
        ChunkFactory(document=row, text=text.strip(), heading_path=[title])
    return RagContext(user=membership.user, workspace=membership.workspace), collection


def document(collection: Collection, key: str, text: str, **declared: Any) -> Document:
    """A searchable document."""
    source = text_source(key, text, file_name=key, **declared)
    ingest_inline(collection=collection, sources=[source])
    return Document.objects.get(collection=collection, key=key, is_current=True)


def documents(collection: Collection, texts: dict[str, str]) -> Collection:
    """Make each text a searchable document, all in one run; the collection."""
    sources = [text_source(key, text, file_name=key) for key, text in texts.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


@contextmanager
def chat_server(settings: Any) -> Iterator[StubServer]:
    """A model server that the site's chat model asks."""
    with stub_server() as server:
        backend = "inference.backends.chat_openai.OpenAIChat"
        options = {"model": "stub", "base_url": server.url, "api_key": "", "attempts": 1}
        chat = {"default": {"BACKEND": backend, "OPTIONS": options}}
        settings.INFERENCE = {**settings.INFERENCE, "chat": chat}
        yield server
