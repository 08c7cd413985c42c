"""Documents from Python over a running site's API."""

import asyncio
import subprocess
import sys
from dataclasses import replace

import pytest

from clients.remote_retriever import RemoteRetriever, SiteRefused, SiteUnreachable
from common.errors import InvalidInput
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from rag.document import Document
from rag.retriever import Retriever
from rag.tests.conftest import ROOT, SiteProcess
from rag.tests.mcp_world import VACATION, World, make_world, secret_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def world(committed: None) -> World:
    world = make_world()
    CollectionFactory(workspace=world.alice.workspace, slug="notes")
    leaflets = CollectionFactory(workspace=world.alice.workspace, slug="leaflets")
    leaflet = DocumentFactory(collection=leaflets, key="leaflet")
    ChunkFactory(document=leaflet, key="leaflet_chunk_001", summary="The dose.", token_count=6)
    return world


@pytest.fixture(scope="module")
def secret(world: World) -> str:
    return secret_of(world.alice)


def test_it_finds_what_the_retriever_of_the_server_finds(
    site: SiteProcess, world: World, secret: str
) -> None:
    remote = RemoteRetriever(f"{site.url}/", secret, collections=["handbook"])
    local = Retriever(world.alice.user, collections=["handbook"])
    found = asyncio.run(remote.search("carry over unused vacation", top_k=2))
    assert found == remote.search_sync("carry over unused vacation", top_k=2)
    expected = local.search_sync("carry over unused vacation", top_k=2)
    assert [one.url.removeprefix(site.url) for one in found] == [one.url for one in expected]
    assert (found[0].content, found[0].start) == (VACATION, 0)
    assert found[0].metadata == expected[0].metadata == {"year": 2026, "token_count": 14}
    assert found[0].score == pytest.approx(expected[0].score)
    for question in ("vacation", [1.0, *[0.0] * 383]):
        similar, theirs = remote.similar_sync(question, 2), local.similar_sync(question, 2)
        assert similar == asyncio.run(remote.similar(question, 2))
        assert [one.id for one in similar] == [one.id for one in theirs]
        assert [one.url.removeprefix(site.url) for one in similar] == [one.url for one in theirs]
    assert remote.get_sync(["missing", "vacation.md"]) == local.get_sync(["vacation.md"])


def test_a_chunk_of_chunk_json_is_the_same_from_afar(
    site: SiteProcess, world: World, secret: str
) -> None:
    remote = RemoteRetriever(site.url, secret, collections=["leaflets"], use_reranking=False)
    local = Retriever(world.alice.user, collections=["leaflets"], rerank=False)
    (found,), (expected,) = remote.search_sync("side effects"), local.search_sync("side effects")
    assert replace(found, url="", score=None) == replace(expected, url="", score=None)
    assert (found.id, found.document_key) == ("leaflet_chunk_001", "leaflet")
    assert found.metadata == {"summary": "The dose.", "token_count": 6}
    with pytest.raises(SiteRefused, match="reranker") as refused:
        asyncio.run(remote.search("side effects", rerank=True))
    assert refused.value.status == 400


def test_what_is_added_is_found_read_and_removed_when_the_call_returns(
    site: SiteProcess, secret: str
) -> None:
    notes = RemoteRetriever(site.url, secret, collections=["notes"], filter={"kind": "note"})
    documents = [
        Document(f"The harbour has berth number {number}.", {"kind": "note", "number": number})
        for number in range(250)
    ]

    async def work() -> None:
        ids = await notes.add_documents(
            [Document("Boats.", {"kind": "note"}, id="a/b"), *documents]
        )
        assert len(set(ids)) == 251
        found = await notes.search("harbour berth", 3, {"number": {"$gte": 248}})
        assert sorted(one.metadata["number"] for one in found) == [248, 249]
        assert [one.id for one in await notes.get([*ids, "missing"])] == ids
        assert await notes.delete([*ids, "missing"]) == 251
        assert await notes.search("harbour berth") == []

    asyncio.run(work())
    assert notes.add_documents_sync([Document("One.", id="one")]) == ["one"]
    assert notes.delete_sync(["one"]) == 1


def test_what_the_site_refuses_is_said_in_its_words(site: SiteProcess, world: World) -> None:
    reader = RemoteRetriever(site.url, secret_of(world.alice, "read"), collections=["notes"])
    with pytest.raises(SiteRefused, match="“write”") as refused:
        reader.add_documents_sync([Document("Mine.")])
    assert (refused.value.status, refused.value.code) == (403, "insufficient_scope")
    with pytest.raises(SiteRefused, match="no API key") as refused:
        RemoteRetriever(site.url, "rs_nonsense").search_sync("vacation")
    assert refused.value.status == 401
    stranger = RemoteRetriever(site.url, secret_of(world.charlie), collections=["handbook"])
    with pytest.raises(SiteRefused) as refused:
        asyncio.run(stranger.search("vacation"))
    assert refused.value.status == 404


def test_what_is_no_site_is_said_to_be_none(site: SiteProcess, secret: str) -> None:
    with pytest.raises(SiteUnreachable, match="Is the site up"):
        RemoteRetriever("http://127.0.0.1:1", secret).search_sync("vacation")
    with pytest.raises(SiteUnreachable, match="Is the site up"):
        asyncio.run(RemoteRetriever("http://127.0.0.1:1", secret).search("vacation"))
    with pytest.raises(SiteUnreachable, match="not as the site does"):
        RemoteRetriever(f"{site.url}/login", secret).search_sync("vacation")
    with pytest.raises(InvalidInput, match="no address"):
        RemoteRetriever("localhost:8000", secret)


def test_filters_of_both_forms_add_up_with_their_like(site: SiteProcess, secret: str) -> None:
    recent = RemoteRetriever(site.url, secret, filter="year>2020 | year=1999")
    assert recent.search_sync("vacation", 5, "year<2030")[0].id == "vacation.md"
    assert recent.search_sync("vacation", 5, "year<2000") == []
    with pytest.raises(InvalidInput, match="both"):
        recent.search_sync("vacation", 5, {"year": 2026})
    with pytest.raises(InvalidInput, match="one collection"):
        recent.delete_sync(["vacation.md"])


def test_it_needs_no_django() -> None:
    script = (
        "import sys; sys.modules['django'] = None; import clients.remote_retriever as r;"
        "import clients.langchain;"
        "print(r.RemoteRetriever('http://127.0.0.1:1', 'rs_').mode)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.stdout.strip() == "hybrid", ended.stderr
