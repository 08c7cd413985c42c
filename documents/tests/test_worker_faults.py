"""A real worker is killed in the middle; nothing is lost and nothing is there twice."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.db import connection

from documents import lexical_differences, lexical_index, tasks
from documents.ingestion.embedding import LONG_DOCUMENT_CHUNKS
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    PendingChunk,
    RemovedChunk,
    StagedDocument,
    StagedVectors,
)
from documents.services import Upload, ingest_uploads
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.words import scores
from documents.validation import validate
from tests.plugin import WorkerProcess, database_url_of_tests, wait_until
from tests.schedules.embedder import calls_file

pytestmark = pytest.mark.django_db(transaction=True)

FILES = 24


def upload(collection: Collection) -> IngestionRun:
    uploads = [
        Upload(
            name=f"file-{number}.txt",
            file=ContentFile(
                (f"File {number} tells of subject{number} in many words. " * 90).encode()
            ),
        )
        for number in range(FILES)
    ]
    return ingest_uploads(collection=collection, uploads=uploads)


@pytest.fixture
def embedder(unstarted_worker_process: WorkerProcess, tmp_path: Path) -> Path:
    """A file by which the worker's embedder is made slow, or taken away."""
    state = tmp_path / "embedder"
    unstarted_worker_process.environment |= {
        "EMBEDDER_BACKEND": "tests.schedules.embedder.FaultyEmbedder",
        "EMBEDDER_OPTIONS": json.dumps({"state": str(state)}),
    }
    return state


def some_are_being_embedded() -> bool:
    embedding = IngestionItem.objects.filter(state="embedding", document__attempts__gt=0)
    return embedding.exists() and StagedDocument.objects.count() >= FILES // 2


def test_every_document_is_ready_exactly_once_after_a_worker_was_killed(
    unstarted_worker_process: WorkerProcess, embedder: Path
) -> None:
    worker = unstarted_worker_process
    embedder.write_text("slow")
    run = upload(CollectionFactory())
    worker.start()
    wait_until(some_are_being_embedded, what="the worker is in the middle")
    worker.kill()
    assert Document.objects.exclude(status="ready").exists()
    embedder.unlink()
    worker.start()
    wait_until(lambda: has_ended(run), what="the run is finished", seconds=180)
    assert_each_once(run)


def test_a_long_document_goes_on_from_its_last_slice_after_a_worker_was_killed(
    unstarted_worker_process: WorkerProcess, embedder: Path
) -> None:
    worker, calls = unstarted_worker_process, calls_file(embedder)
    calls.touch()
    embedder.write_text("slow")
    book = "\n\n".join(f"Part {number} tells of subject{number}. " * 60 for number in range(400))
    upload = Upload(name="book.txt", file=ContentFile(book.encode()))
    run = ingest_uploads(collection=CollectionFactory(), uploads=[upload])
    worker.start()
    wait_until(lambda: StagedVectors.objects.count() >= 2, what="two slices are kept")
    worker.kill()
    assert not Chunk.objects.exists()
    embedder.unlink()
    worker.start()
    wait_until(lambda: has_ended(run), what="the run is finished", seconds=180)
    assert (run.state, run.ready, run.embedded) == ("succeeded", 1, run.chunks)
    assert run.chunks == Chunk.objects.count() > LONG_DOCUMENT_CHUNKS
    assert not StagedVectors.objects.exists()
    assert validate().findings == ()
    slices = [json.loads(line) for line in calls.read_text().splitlines()]
    made = Counter(text for each in slices for text in each if text != "warm up")
    assert set(made) == {f"{chunk.context}\n{chunk.text}" for chunk in Chunk.objects.all()}
    assert max(made.values()) <= 2  # only what was under way
    assert sum(count - 1 for count in made.values()) <= 2 * max(map(len, slices[:-1]))


#: Where a worker is when it waits for a lock on the table: about to hand over what it parsed, in
#: the middle of loading chunks, about to say which are not in the index yet, and moving them there.
STAGES = [
    "documents_stageddocument",
    "documents_chunk",
    "documents_pendingchunk",
    "documents_lexicalsegment",
    "documents_posting",
]


@pytest.mark.nightly
def test_a_worker_killed_inside_any_transaction_leaves_nothing_half_done(
    unstarted_worker_process: WorkerProcess,
) -> None:
    worker = unstarted_worker_process
    run = upload(CollectionFactory())
    for table in STAGES:
        with held_up(worker, table):
            worker.kill()
    worker.start()
    wait_until(lambda: not PendingChunk.objects.exists(), what="all chunks are in the index")
    wait_until(lambda: has_ended(run), what="the run is finished", seconds=120)
    assert_each_once(run)


@pytest.mark.nightly
def test_a_worker_that_is_asked_to_end_ends_what_it_is_at_and_leaves_the_rest(
    unstarted_worker_process: WorkerProcess,
) -> None:
    worker = unstarted_worker_process
    run = upload(CollectionFactory())
    for table in STAGES[:2]:
        with held_up(worker, table):
            worker.ask_to_end()
            assert not worker.has_ended_within(0.5)  # it does not leave what it began
        assert worker.stop() == 0
        assert not Document.objects.filter(claimed_by__isnull=False).exists()
    worker.start()
    wait_until(lambda: has_ended(run), what="the run is finished", seconds=120)
    assert_each_once(run)


@pytest.mark.nightly
def test_two_workers_share_the_work_and_do_none_of_it_twice(
    celery_worker_process: WorkerProcess,
) -> None:
    other = WorkerProcess(celery_worker_process.environment)
    other.environment = other.environment | {"SCHEDULE": other.environment["SCHEDULE"] + "2"}
    other.start()
    try:
        run = upload(CollectionFactory())
        # Every message a second time, as a broker may deliver it.
        tasks.enqueue(list(Document.objects.values_list("id", flat=True)))
        wait_until(lambda: has_ended(run), what="the run is finished", seconds=120)
    finally:
        other.stop()
    assert_each_once(run)


#: The last table that each writes, after all others; and one in between that is copied into.
@pytest.mark.parametrize(
    ("work", "table"),
    [
        ("index_pending(pk)", "documents_posting"),
        ("index_pending(pk)", "documents_removedchunk"),
        ("merge_segments(pk, everything=True)", "documents_posting"),
    ],
)
def test_a_process_killed_while_it_writes_the_index_changes_nothing_that_is_found(
    work: str, table: str
) -> None:
    collection = half_indexed()
    before = scores(collection, "otter heron")
    superseded = scores(collection, "otter heron", superseded=True)
    code = f"from documents import lexical_index; pk = {collection.pk}; lexical_index.{work}"
    with locked(table):
        process = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "-v0", "--no-imports", "-c", code],
            env=os.environ | {"DATABASE_URL": database_url_of_tests()},
        )
        wait_until(lambda: waiting(table), what=f"it waits for {table}")
        killed = waiting(table)
        process.kill()
        process.wait()
        assert scores(collection, "otter heron") == before
    wait_until(lambda: not connected(killed), what="the server has noticed that it is gone")
    for _ in range(2):
        assert lexical_differences.find_differences(collection.pk, sample=1000) == []
        assert scores(collection, "otter heron") == before
        assert scores(collection, "otter heron", superseded=True) == superseded
        lexical_index.index_pending(collection.pk)
        lexical_index.merge_segments(collection.pk, everything=True)
    assert not PendingChunk.objects.exists()
    assert not RemovedChunk.objects.exists()


def half_indexed() -> Collection:
    """Chunks in two segments and in none, removed ones and superseded ones among all of them."""
    collection = CollectionFactory()
    for batch in range(3):
        document = DocumentFactory(collection=collection)
        for number in range(4):
            ChunkFactory(document=document, text=f"otter {'heron ' * number} of batch {batch}")
        if batch < 2:
            lexical_index.index_pending(collection.pk)
        document.chunks.filter(ordinal=0).delete()
        document.chunks.filter(ordinal=1).update(is_current=False)
    return collection


def connected(processes: list[int]) -> bool:
    """Whether the server still works for one of these of its processes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ANY(%s))", [processes]
        )
        return bool(cursor.fetchone()[0])


@contextmanager
def held_up(worker: WorkerProcess, table: str) -> Iterator[None]:
    """The worker is started, and in the middle: it waits for the table."""
    with locked(table):
        worker.start()
        wait_until(lambda: waiting(table), what=f"the worker waits for {table}")
        yield


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Nobody else writes to the table. The lock has a connection of its own."""
    with connection.Database.connect(**connection.get_connection_params()) as other:
        other.execute(f'LOCK TABLE "{table}" IN EXCLUSIVE MODE')
        yield


def waiting(table: str) -> list[int]:
    """The server processes that wait for a lock on the table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_locks JOIN pg_database AS here ON here.oid = database"
            " WHERE datname = current_database() AND relation = %s::regclass AND NOT granted",
            [table],
        )
        return [pid for (pid,) in cursor.fetchall()]


def has_ended(run: IngestionRun) -> bool:
    run.refresh_from_db()
    return run.is_finished


def assert_each_once(run: IngestionRun) -> None:
    assert (run.state, run.ready, run.failed, run.total) == ("succeeded", FILES, 0, FILES)
    assert Document.objects.filter(status="ready").count() == FILES
    assert run.chunks == Chunk.objects.count() > 0
    assert run.items.filter(state="ready").count() == FILES
    assert validate().findings == ()


def test_uploads_wait_for_a_model_that_is_away_and_say_so(
    unstarted_worker_process: WorkerProcess, embedder: Path
) -> None:
    embedder.write_text("down")
    run = upload(CollectionFactory())
    unstarted_worker_process.start()
    waiting = Document.objects.filter(error_code="model_unavailable")
    wait_until(waiting.exists, what="a document says that the model is away")
    assert not Document.objects.filter(status="failed").exists()
    embedder.unlink()
    wait_until(lambda: has_ended(run), what="the run is finished", seconds=120)
    assert (run.state, run.ready, run.failed) == ("succeeded", FILES, 0)
    assert not waiting.exists()
