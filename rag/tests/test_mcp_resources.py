"""Documents as resources: who reads what."""

from typing import Any

import pytest
from mcp.types import PaginatedRequestParams, ReadResourceRequestParams

from accounts.models import Membership
from common.errors import Forbidden, InvalidInput, NotFound
from documents.models import Document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
)
from rag.context import RagContext
from rag.mcp import resources
from rag.mcp.resource_uris import ResourceUri, UnknownResource

pytestmark = pytest.mark.django_db


@pytest.fixture
def collection(alice: Membership) -> Any:
    return CollectionFactory(workspace=alice.workspace, slug="handbook", description="How we work.")


def context_of(member: Membership, **narrowed: Any) -> RagContext:
    return RagContext(user=member.user, workspace=member.workspace, **narrowed)


def listed(context: RagContext, cursor: str | None = None) -> list[str]:
    page = resources.list_resources(context, PaginatedRequestParams(cursor=cursor))
    return [resource.uri for resource in page.resources]


def read(context: RagContext, uri: str) -> Any:
    (content,) = resources.read_resource(context, ReadResourceRequestParams(uri=uri)).contents
    return content


def test_of_several_versions_the_current_one_is_listed_and_each_is_read(
    alice: Membership, collection: Any
) -> None:
    for version in (1, 2):
        document = DocumentFactory(
            collection=collection, key="a.md", version=version, is_current=version == 2
        )
        ChunkFactory(document=document, text=f"Version {version}.")
    context = context_of(alice)
    assert listed(context) == ["ragsite://handbook", "ragsite://handbook/a.md"]
    assert read(context, "ragsite://handbook/a.md").text == "Version 2."
    first = read(context, "ragsite://handbook/a.md?version=1")
    assert first.text == "Version 1."
    assert first.meta["versions"] == [2, 1]
    with pytest.raises(NotFound):
        read(context, "ragsite://handbook/a.md?version=3")


def test_while_a_new_text_is_made_the_former_is_read(alice: Membership, collection: Any) -> None:
    waiting = Document.Status.PROCESSING
    changed = DocumentFactory(collection=collection, key="changed.md", rendering="markdown")
    ChunkFactory(document=changed, text="As it was.")
    DocumentFactory(collection=collection, key="new.md", status=waiting)
    Document.objects.filter(pk=changed.pk).update(status=waiting)
    context = context_of(alice)
    assert listed(context) == ["ragsite://handbook", "ragsite://handbook/changed.md"]
    content = read(context, "ragsite://handbook/changed.md")
    assert (content.text, content.mime_type) == ("As it was.", "text/markdown")
    with pytest.raises(NotFound):
        read(context, "ragsite://handbook/new.md")


def test_a_context_that_is_narrowed_sees_its_collections(
    alice: Membership, collection: Any
) -> None:
    other = DocumentFactory(collection=CollectionFactory(workspace=alice.workspace, slug="other"))
    narrowed = context_of(alice, collections=("handbook",))
    assert listed(narrowed) == ["ragsite://handbook"]
    for uri in ("ragsite://other", ResourceUri("other", other.key).uri):
        assert uri in listed(context_of(alice))
        with pytest.raises(NotFound):
            read(narrowed, uri)
    with pytest.raises(Forbidden, match="read"):
        listed(context_of(alice, scopes=frozenset({"memory"})))


def test_what_is_too_long_to_be_read_whole_is_said_to_be(
    alice: Membership, collection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "MAX_CHARACTERS", 10)
    document = DocumentFactory(collection=collection, key="long.txt")
    ChunkFactory(document=document, text="Eleven chars")
    with pytest.raises(InvalidInput, match="has 12 characters; 10 can be read"):
        read(context_of(alice), "ragsite://handbook/long.txt")


@pytest.mark.parametrize("cursor", ["", "nonsense", "YmVmb3JlOg==", "YmVmb3JlOi0x", "é"])
def test_what_is_no_cursor_is_refused(alice: Membership, cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid cursor"):
        listed(context_of(alice), cursor)


@pytest.mark.parametrize(
    "uri", ["ragsite://handbook/%00", "ragsite://%00", "ragsite://x/%ED%A0%80"]
)
def test_what_cannot_be_a_key_is_not_there(alice: Membership, collection: Any, uri: str) -> None:
    with pytest.raises((NotFound, UnknownResource)):
        read(context_of(alice), uri)
