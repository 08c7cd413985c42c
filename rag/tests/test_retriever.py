"""Documents from Python: async for agents, sync for plain code."""

import asyncio
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import psycopg
import pytest
from django.db import connection

from common.errors import Forbidden, InvalidInput, NotFound
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from inference.cancellation import Cancelled
from rag.context import RagContext
from rag.document import Document
from rag.retriever import MAX_CONCURRENT_CALLS, Retriever
from rag.tests.conftest import ROOT, commit
from rag.tests.mcp_world import VACATION, World, make_world
from search.filters import FilterError
from tests.plugin import wait_until

T = TypeVar("T")
pytestmark = pytest.mark.django_db

NOTES = [
    Document("The harbour of Kiel is deep.", {"year": 2025}, id="kiel", title="Kiel"),
    Document("The harbour of Hamburg is large.", {"year": 2026}, id="hamburg"),
    Document("Bread is baked at four.", {"year": 2026}),
]


@pytest.fixture(scope="module")
def world(committed: None) -> World:
    world = make_world()
    CollectionFactory(workspace=world.alice.workspace, slug="notes")
    return world


@pytest.fixture
def handbook(world: World) -> Retriever:
    return Retriever(world.alice.user, collections=["handbook"])


@pytest.fixture
def notes(world: World) -> Retriever:
    return Retriever(world.alice.user.username, collections=["notes"])


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def test_the_passages_that_answer_best_come_with_where_they_stand(handbook: Retriever) -> None:
    found = run(handbook.search("carry over unused vacation", top_k=2))
    assert found == handbook.search_sync("carry over unused vacation", top_k=2)
    assert len(found) == 2
    best = found[0]
    assert (best.id, best.title, best.collection) == ("vacation.md", "Vacation", "handbook")
    assert best.content == VACATION
    assert best.document_key == best.id
    assert best.metadata == {"year": 2026, "token_count": 14}
    assert best.start == 0
    assert best.end == len(VACATION)
    assert best.score is not None
    assert best.score >= (found[1].score or 0)
    assert f"?chunk={best.chunk}" in best.url


def test_what_is_added_is_found_read_and_removed_when_the_call_returns(notes: Retriever) -> None:
    async def work() -> None:
        ids = await notes.add_documents(NOTES)
        assert ids[:2] == ["kiel", "hamburg"]
        assert ids[2] not in {"", None, *ids[:2]}
        found = await notes.search("harbour", mode="lexical")
        assert {document.id for document in found} == {"kiel", "hamburg"}
        read = await notes.get([ids[2], "missing", "kiel", "nul\x00"])
        assert [document.id for document in read] == [ids[2], "kiel"]
        assert read[1] == replace(NOTES[0], collection="notes", document_key="kiel")
        assert await notes.add_documents([replace(NOTES[0], content="It is shallow.")]) == ["kiel"]
        assert [document.id for document in await notes.search("harbour", mode="lexical")] == [
            "hamburg"
        ]
        assert await notes.delete([*ids, "missing"]) == 3
        assert await notes.search("harbour") == []

    run(work())


def test_the_sync_twins_do_the_same(notes: Retriever) -> None:
    ids = notes.add_documents_sync(NOTES)
    assert [document.id for document in notes.get_sync(ids)] == ids
    (near, *_) = notes.similar_sync("The harbour of Kiel is deep.", top_k=1)
    assert near.id == "kiel"
    assert near.similarity == pytest.approx(1.0, abs=0.2)
    assert notes.delete_sync(ids) == 3
    assert notes.get_sync(ids) == []


def test_filters_narrow_and_add_up(world: World, notes: Retriever) -> None:
    notes.add_documents_sync(NOTES)
    recent = Retriever(world.alice.user, collections=["notes"], filter={"year": 2026})
    assert [found.id for found in recent.search_sync("harbour", mode="lexical")] == ["hamburg"]
    assert recent.search_sync("harbour", 5, "year < 2026", mode="lexical") == []
    near = recent.similar_sync("harbour", 5, {"year": {"$lt": 2027}})
    assert len(near) == 2
    assert near[0].id == "hamburg"
    with pytest.raises(FilterError):
        recent.search_sync("harbour", 5, {"$nonsense": 1})


def test_a_chunk_of_chunk_json_comes_with_its_own_id_summary_and_scores(
    world: World, settings: Any
) -> None:
    collection = CollectionFactory(workspace=world.alice.workspace, slug="leaflets")
    document = DocumentFactory(collection=collection, key="leaflet")
    for number in (1, 2):
        ChunkFactory(
            document=document,
            ordinal=number,
            key=f"leaflet_chunk_{number:03}",
            text="Take one tablet a day." if number == 1 else "Keep it dry.",
            summary="The dose." if number == 1 else "",
            token_count=6,
            metadata={"audience": "patients"},
        )
    backend = "inference.backends.rerank_basic.ScoreReranker"
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": {"BACKEND": backend}}}
    retriever = Retriever(world.alice.user, collections=["leaflets"], use_reranking=False)
    plain, other = retriever.search_sync("one tablet a day", mode="hybrid")
    assert (plain.id, plain.document_key) == ("leaflet_chunk_001", "leaflet")
    known = {"audience": "patients", "token_count": 6}
    assert plain.metadata == {**known, "summary": "The dose."}
    assert other.metadata == known
    for wish in ({"rerank": True}, {"use_reranking": True}):
        best = retriever.search_sync("one tablet a day", **wish)[0]
        assert best.metadata == {**known, "summary": "The dose.", "rerank_score": 1.0}
        assert best.score > plain.score  # fused, times what the reranker makes of it
    with pytest.raises(InvalidInput, match="the same option"):
        retriever.search_sync("one tablet a day", rerank=True, use_reranking=False)


def test_without_a_reranker_asking_for_one_says_what_to_do(handbook: Retriever) -> None:
    with pytest.raises(InvalidInput, match="reranker"):
        handbook.search_sync("vacation", use_reranking=True)


def test_vectors_of_ones_own_take_the_place_of_the_model(notes: Retriever) -> None:
    vectors = [[1.0, *[0.0] * 383], [0.0, 1.0, *[0.0] * 382]]
    notes.add_documents_sync(NOTES[:2], vectors)
    nearest = notes.similar_sync([0.1, 1.0, *[0.0] * 382], top_k=2)
    assert [document.id for document in nearest] == ["hamburg", "kiel"]
    with pytest.raises(InvalidInput, match="384"):
        notes.similar_sync([1.0, 0.0])


def test_nobody_reaches_further_than_the_site_lets_them(world: World) -> None:
    bob = Retriever(world.bob.user, collections=["handbook"])
    assert bob.search_sync("vacation")[0].id == "vacation.md"
    with pytest.raises(Forbidden, match="editor"):
        bob.add_documents_sync([Document("Mine.")])
    with pytest.raises(Forbidden, match="editor"):
        bob.delete_sync(["vacation.md"])
    charlie = Retriever(world.charlie.user)
    assert {found.id for found in charlie.search_sync("vacation plan")} == {"plan.md"}
    assert charlie.get_sync(["vacation.md"]) == []
    with pytest.raises(NotFound, match="handbook"):
        Retriever(world.charlie.user, collections=["handbook"]).search_sync("vacation")
    with pytest.raises(NotFound, match="no user"):
        run(Retriever("nobody").search("vacation"))


def test_a_context_is_narrowed_and_never_widened(world: World) -> None:
    context = RagContext(
        user=world.alice.user,
        workspace=world.alice.workspace,
        scopes=frozenset({"read"}),
        collections=("handbook",),
        filter={"year": 2026},
    )
    narrowed = Retriever(context=context)
    assert [found.id for found in narrowed.search_sync("Hamburg vacation")] == ["vacation.md"]
    assert [found.id for found in narrowed.get_sync(["vacation.md", "long.txt"])] == ["vacation.md"]
    with pytest.raises(Forbidden, match="write"):
        narrowed.add_documents_sync([Document("Mine.")])
    with pytest.raises(NotFound, match="notes"):
        Retriever(context=context, collections=["notes"]).search_sync("harbour")
    context.cancelled.set()
    with pytest.raises(Cancelled):
        narrowed.search_sync("vacation")


def test_where_to_write_must_be_clear(world: World) -> None:
    with pytest.raises(InvalidInput, match="handbook, notes"):
        Retriever(world.alice.user).add_documents_sync([Document("Where to?")])
    with pytest.raises(InvalidInput, match="user or a context"):
        Retriever()


# --- many at once ---------------------------------------------------------------------------------


@contextmanager
def held_up() -> Iterator[None]:
    """Within it nobody can read collections, so that every search waits in the database."""
    with psycopg.connect(**dsn()) as other:
        other.execute("LOCK TABLE documents_collection IN ACCESS EXCLUSIVE MODE")
        yield


def dsn() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("dbname", "host", "user") if name in parameters}


def waiting() -> int:
    """How many connections wait for a lock."""
    with psycopg.connect(**dsn()) as other:
        row = other.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        ).fetchone()
    return int(row[0]) if row else 0


def test_fifty_searches_at_once_take_turns_with_a_few_connections(handbook: Retriever) -> None:
    async def work() -> list[list[Document]]:
        words = ["vacation", "Hamburg"]
        with held_up():
            asked = [
                asyncio.create_task(handbook.search(words[n % 2], top_k=1, mode="lexical"))
                for n in range(50)
            ]
            await asyncio.to_thread(
                wait_until,
                lambda: waiting() == MAX_CONCURRENT_CALLS,
                what="the first ones are there",
            )
            assert not any(task.done() for task in asked)
            assert waiting() == MAX_CONCURRENT_CALLS
        return await asyncio.gather(*asked)

    found = run(work())
    assert [documents[0].id for documents in found] == ["vacation.md", "long.txt"] * 25


def test_a_cancelled_search_returns_at_once_and_leaves_nothing_open(handbook: Retriever) -> None:
    async def work() -> None:
        with held_up():
            asked = [
                asyncio.create_task(handbook.search("vacation"))
                for _ in range(MAX_CONCURRENT_CALLS + 5)
            ]
            await asyncio.to_thread(
                wait_until,
                lambda: waiting() == MAX_CONCURRENT_CALLS,
                what="the first ones are there",
            )
            for task in asked:
                task.cancel()
            ended = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(error, asyncio.CancelledError) for error in ended)
            assert (
                waiting() == MAX_CONCURRENT_CALLS
            )  # they are given up, not those that had not begun
        assert (await handbook.search("vacation", top_k=1))[0].id == "vacation.md"

    run(work())


@pytest.mark.nightly
def test_a_plain_script_needs_two_lines_more(
    world: World, site_environment: dict[str, str]
) -> None:
    script = f"""
from ragsite.script import setup
setup()
from rag.retriever import Retriever
import asyncio
retriever = Retriever({world.alice.user.username!r}, collections=["handbook"])
print(asyncio.run(retriever.search("vacation", top_k=1))[0].content)
print(retriever.search_sync("vacation", top_k=1)[0].id)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**site_environment, "PYTHONPATH": str(ROOT)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.stdout.splitlines() == [VACATION, "vacation.md"], ended.stderr


def test_what_others_commit_is_seen(world: World, handbook: Retriever) -> None:
    """A retriever keeps no connection, and so no snapshot, between two calls."""
    one = Document("Umbrellas are lent at the gate.", id="gate")

    async def work() -> None:
        assert await handbook.get(["gate"]) == []
        await asyncio.to_thread(lambda: commit(lambda: handbook.add_documents_sync([one])))
        assert [document.id for document in await handbook.get(["gate"])] == ["gate"]
        assert await handbook.delete(["gate"]) == 1

    run(work())
