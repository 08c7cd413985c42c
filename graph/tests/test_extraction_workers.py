"""Real workers that read documents: killed in the middle, and several at once."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection
from documents.services import delete_documents, ingest_inline
from documents.tests.factories import CollectionFactory
from graph.extraction import worker as extraction_worker
from graph.models import Alias, Edge, Extraction, Mention, Node
from graph.services.extraction import reextract_collection
from graph.tests.factories_extraction import CHAT, found, passage_of, use_chat, waiting
from inference.tests.stub_server import Reply, Silence, StubServer, stub_server
from tests.plugin import WorkerProcess, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

State = Extraction.State


def told(payload: Any) -> Reply:
    """`A knows B.` → that A knows B."""
    text = passage_of(payload)
    knower, known = text.removesuffix(".").split(" knows ")
    return found(knower, known, relations=[(knower, "knows", known, text)])


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with stub_server() as server:
        server.always(told)
        yield server


def knows(count: int) -> list[str]:
    return [f"Person {number} knows Person {number + 1}." for number in range(count)]


def all_are_read() -> bool:
    return not Extraction.objects.exclude(state=State.DONE).exists()


def read(document_ids: Sequence[int]) -> int:
    try:
        outcome = extraction_worker.extract(document_ids)
        by_model = [extraction_worker.extract_with_model(pk).read for pk in outcome.for_model]
        return outcome.read + sum(by_model)
    finally:
        connections.close_all()


def is_whole() -> bool:
    """Every extracted node is mentioned, and known by a name."""
    bare = Node.objects.filter(mentions=None) | Node.objects.filter(aliases=None)
    return not bare.exists() and not Edge.objects.filter(evidence=None).exists()


@pytest.mark.nightly
def test_a_killed_worker_loses_nothing_and_nothing_is_there_twice(
    unstarted_worker_process: WorkerProcess, stub: StubServer
) -> None:
    worker = unstarted_worker_process
    options = {"model": "stub-1", "base_url": stub.url, "timeout": 30, "attempts": 1}
    worker.environment |= {"CHAT_BACKEND": CHAT, "CHAT_OPTIONS": json.dumps(options)}
    waiting(*knows(4), graph="llm")
    waiting(*knows(4))
    stub.first(Silence())
    worker.start()
    wait_until(lambda: stub.requests, what="the model is asked")
    worker.kill()
    held = Extraction.objects.filter(state=State.RUNNING)
    assert set(held.values_list("attempts", flat=True)) == {1}
    worker.start()
    wait_until(all_are_read, what="all documents are read")
    assert set(Edge.objects.values_list("source__name", "rel", "target__name")) == {
        (f"Person {number}", "KNOWS", f"Person {number + 1}") for number in range(4)
    }
    assert set(Extraction.objects.values_list("relations", "collection__graph")) == {
        (1, "llm"),
        (0, "rules"),
    }
    assert is_whole()


@pytest.mark.parametrize("graph", ["rules", "llm"])
def test_several_workers_at_once_read_each_document_once(
    stub: StubServer, settings: Any, graph: str
) -> None:
    use_chat(settings, stub.url)
    ids = [document.pk for document in waiting(*knows(12), graph=graph)]
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(read, [ids, ids[::-1], ids, ids[6:], ids[:6], ids]))
    assert sum(counts) == 12
    assert all_are_read()
    assert len(stub.requests) == (12 if graph == "llm" else 0)
    assert Edge.objects.count() == (12 if graph == "llm" else 0)
    assert Alias.objects.filter(form="person 5").count() == 1
    assert is_whole()


def test_documents_with_the_same_names_are_recorded_at_the_same_time() -> None:
    names = " met ".join(f"Person {number}" for number in range(40)) + "."
    turned = " met ".join(f"Person {number}" for number in range(39, -1, -1)) + "."
    collections = [CollectionFactory()]
    collections += [CollectionFactory(workspace=collections[0].workspace) for _ in range(3)]
    ids = [
        [document.pk for document in waiting(names, turned, collection=collection)]
        for collection in collections
    ]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, ids)) == [2, 2, 2, 2]
    assert Alias.objects.filter(form__startswith="person ").count() == 40
    assert Mention.objects.filter(node__key="ent:name:person 7").count() == 8
    assert is_whole()


def ingest(collection: Collection, number: int, text: str) -> None:
    source = text_source(f"document {number}", text)
    ingest_inline(collection=collection, sources=[source])


def test_reading_loading_and_deleting_at_once_leave_what_the_texts_say() -> None:
    collection = CollectionFactory()
    for number in range(4):
        ingest(collection, number, f"Person {number} met Grace Hopper.")

    def change(number: int) -> None:
        try:
            for turn in range(4):
                if number == 3 and turn == 3:
                    delete_documents(documents=[collection.documents.get(key="document 3")])
                elif number < 4:
                    ingest(collection, number, f"Person {number} met Person {turn} at home.")
                else:
                    reextract_collection(collection=collection)
                    read(list(collection.documents.values_list("pk", flat=True)))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(6)))
    for _ in range(3):
        read(list(collection.documents.values_list("pk", flat=True)))
    assert all_are_read()
    people = Node.objects.filter(key__startswith="ent:name:person ")
    assert set(people.values_list("name", flat=True)) == {f"Person {n}" for n in (0, 1, 2, 3)}
    assert not Node.objects.filter(key="ent:name:grace hopper").exists()
    last = Chunk.objects.get(document__key="document 0")
    assert set(Node.objects.filter(mentions__chunk=last, key__startswith="ent:name:person")) == set(
        people.filter(name__in=["Person 0", "Person 3"])
    )
    assert is_whole()
