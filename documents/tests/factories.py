"""Rows for the tests of every app: valid, small, and consistent with one another.

What a chunk or item copies from its document or run is copied here too, so that a test names
only what it is about: `ChunkFactory(text="…", document=document)`.
"""

import hashlib
from functools import cache
from typing import Any

import factory
from django.contrib.auth.hashers import get_hasher, make_password
from factory.django import DjangoModelFactory

from accounts.models import Membership, Role, User, Workspace
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
)

PASSWORD = "correct horse battery staple"
DEFAULT_SPACE = "minilm-384"


@cache
def _hashed(password: str, algorithm: str) -> str:
    """Hashed once: argon2 is slow on purpose. Some tests have another algorithm."""
    return make_password(password, hasher=algorithm)


@cache
def _embedder(dimensions: int) -> Any:
    from inference.backends.hashing import HashingEmbedder

    return HashingEmbedder(dimensions=dimensions)


def embed(text: str, *, dimensions: int = 384) -> list[float]:
    """A real vector of `text`: equal texts agree, texts that share words are near."""
    return list(_embedder(dimensions).embed_documents([text])[0])


class UserFactory(DjangoModelFactory[User]):
    """A person with the password `PASSWORD` who belongs nowhere yet."""

    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"person{n}")

    password = factory.LazyAttribute(lambda row: _hashed(PASSWORD, get_hasher().algorithm))
    is_staff = factory.SelfAttribute("is_superuser")
    is_superuser = False


class WorkspaceFactory(DjangoModelFactory[Workspace]):
    """A tenant without members."""

    class Meta:
        model = Workspace

    slug = factory.Sequence(lambda n: f"workspace-{n}")
    name = factory.LazyAttribute(lambda row: row.slug.replace("-", " ").capitalize())


class MembershipFactory(DjangoModelFactory[Membership]):
    """An owner and a workspace; give `role` for less."""

    class Meta:
        model = Membership

    workspace = factory.SubFactory(WorkspaceFactory)
    user = factory.SubFactory(UserFactory)
    role = Role.OWNER


class CollectionFactory(DjangoModelFactory[Collection]):
    """An empty collection in the default embedding space, which a migration makes."""

    class Meta:
        model = Collection

    workspace = factory.SubFactory(WorkspaceFactory)
    slug = factory.Sequence(lambda n: f"collection-{n}")
    name = factory.LazyAttribute(lambda row: row.slug.replace("-", " ").capitalize())
    space = factory.LazyFunction(lambda: EmbeddingSpace.objects.get(name=DEFAULT_SPACE))


class DocumentFactory(DjangoModelFactory[Document]):
    """A ready document without chunks."""

    class Meta:
        model = Document

    collection = factory.SubFactory(CollectionFactory)
    workspace = factory.SelfAttribute("collection.workspace")
    key = factory.Sequence(lambda n: f"folder/document-{n}.txt")
    title = factory.Sequence(lambda n: f"Document {n}")
    source = factory.SelfAttribute("key")
    media_type = "text/plain"
    language = "en"
    status = Document.Status.READY


class ChunkFactory(DjangoModelFactory[Chunk]):
    """The next chunk of its document, with its vector, found by its words; the document's counts
    follow."""

    class Meta:
        model = Chunk

    document = factory.SubFactory(DocumentFactory)
    workspace = factory.SelfAttribute("document.workspace")
    collection = factory.SelfAttribute("document.collection")
    space = factory.SelfAttribute("document.collection.space")
    ordinal = factory.LazyAttribute(lambda row: row.document.chunk_count)
    text = factory.Sequence(lambda n: f"Passage number {n} tells of side effects.")
    context = factory.SelfAttribute("document.title")
    token_count = factory.LazyAttribute(lambda row: len(row.text.split()))
    start = factory.LazyAttribute(lambda row: row.ordinal * 1000)
    end = factory.LazyAttribute(lambda row: row.start + len(row.text))
    media_type = factory.SelfAttribute("document.media_type")
    access = factory.SelfAttribute("document.access")
    language = "english"
    embedding = factory.LazyAttribute(
        lambda row: embed(f"{row.context}\n{row.text}", dimensions=row.space.dimensions)
    )
    content_sha256 = factory.LazyAttribute(
        lambda row: hashlib.sha256(f"{row.context}\n{row.text}".encode()).hexdigest()
    )

    @classmethod
    def _create(cls, model_class: type[Chunk], *args: Any, **kwargs: Any) -> Chunk:
        chunk: Chunk = super()._create(model_class, *args, **kwargs)
        document = chunk.document
        document.chunk_count += 1
        document.token_count += chunk.token_count
        document.save(update_fields=["chunk_count", "token_count"])
        return chunk


class RunFactory(DjangoModelFactory[IngestionRun]):
    """A running run without files."""

    class Meta:
        model = IngestionRun

    collection = factory.SubFactory(CollectionFactory)
    workspace = factory.SelfAttribute("collection.workspace")
    source = "upload"


class ItemFactory(DjangoModelFactory[IngestionItem]):
    """One waiting file of a run."""

    class Meta:
        model = IngestionItem

    run = factory.SubFactory(RunFactory)
    workspace = factory.SelfAttribute("run.workspace")
    name = factory.Sequence(lambda n: f"folder/document-{n}.txt")
