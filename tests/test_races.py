"""Two at once on the same documents: real connections, and no row is there twice or lost."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Barrier, Thread
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import connection, connections, transaction
from django.db.models import Count

from common.errors import NotFound
from documents import lexical_differences, services
from documents.ingestion import pipeline, reembed
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionRun,
    Lexeme,
    PendingChunk,
    Posting,
    StagedDocument,
)
from documents.services import Upload, ingest_inline, ingest_uploads
from documents.tests.factories import CollectionFactory
from search.query_options import site_scope
from search.services import search
from tests.kit import hashing, use_models
from tests.plugin import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

AT_ONCE = 5
LONG = "\n\n".join(f"Paragraph {n} speaks of topic{n} at some length. " * 25 for n in range(6))
HASHING = "inference.backends.hashing.HashingEmbedder"
POLICIES = IngestionRun.Policy.values


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(default_language="en")


class Raced(Thread):
    """A thread with a database connection of its own; `result` raises what it raised."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self._returned: Any = None
        self.start()

    def run(self) -> None:
        try:
            self._returned = self._work()
        except BaseException as error:
            self._error = error
        finally:
            connections.close_all()

    def result(self) -> Any:
        self.join(timeout=60)
        assert not self.is_alive(), "it waits for ever"
        if self._error is not None:
            raise self._error
        return self._returned


def all_at_once(*works: Callable[[], Any]) -> list[Any]:
    barrier = Barrier(len(works))

    def started(work: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            barrier.wait(timeout=30)
            return work()

        return run

    threads = [Raced(started(work)) for work in works]
    return [thread.result() for thread in threads]


def blocked(count: int) -> Callable[[], bool]:
    """Whether so many connections wait for a lock: those of this test, the only ones of its
    database."""

    def is_so() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND pid IN"
                " (SELECT pid FROM pg_locks JOIN pg_database AS here ON here.oid = database"
                "  WHERE datname = current_database())"
            )
            return bool(cursor.fetchone()[0] >= count)

    return is_so


@contextmanager
def nobody_writes(table: str) -> Iterator[None]:
    """Whoever comes to write into the table waits until the block ends."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f'LOCK TABLE "{table}" IN SHARE MODE')
        yield


def upload(collection: Collection, text: str, *, key: str = "note.txt", **options: Any) -> int:
    """Queue a text; the id of the row that it goes into."""
    run = ingest_uploads(
        collection=collection,
        uploads=[Upload(name=key, file=ContentFile(text.encode(), name=key))],
        **options,
    )
    return int(run.items.values_list("document_id", flat=True).get())


def work() -> None:
    """What a worker does with everything that waits."""
    ids = list(Document.objects.values_list("id", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))


def assert_true(collection: Collection) -> None:
    """One current version a key, chunks as their documents say, runs and items settled."""
    current = Document.objects.filter(is_current=True)
    keys = Document.objects.values("collection", "key").distinct().count()
    assert current.values("collection", "key").distinct().count() == current.count() == keys
    for row in Document.objects.all():
        assert (row.status, row.claimed_by) == ("ready", None)
        assert row.chunks.count() == row.chunk_count
        assert not row.chunks.exclude(is_current=row.is_current).exists()
    ordinals = Chunk.objects.values("document", "ordinal").annotate(n=Count("id"))
    assert not ordinals.filter(n__gt=1).exists()
    assert not StagedDocument.objects.exists()
    for run in IngestionRun.objects.all():
        assert (run.state, run.total) == ("succeeded", run.ready + run.skipped)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("is_new", [True, False])
def test_uploads_of_one_key_at_once_leave_one_current_version(
    collection: Collection, policy: str, is_new: bool
) -> None:
    if not is_new:
        upload(collection, "The first text.")
        work()
    texts = [f"Text number {n}." for n in range(AT_ONCE)]
    all_at_once(
        *(lambda text=text: upload(collection, text, policy=policy) for text in texts)  # type: ignore[misc]
    )
    all_at_once(work, work)
    assert_true(collection)
    document = Document.objects.current().get()
    with document.file.open("rb") as file:
        stored = file.read().decode()
    assert stored in texts
    assert services.document_text(document).text == stored
    assert Document.objects.count() == (2 if policy == "new_version" and not is_new else 1)
    assert IngestionRun.objects.filter(state="succeeded").count() == AT_ONCE + (not is_new)


@pytest.mark.parametrize("policy", POLICIES)
def test_uploads_and_workers_at_once_end_with_the_newest_text(
    collection: Collection, policy: str
) -> None:
    upload(collection, "The first text.")
    work()

    def bring(number: int) -> None:
        upload(collection, f"Text number {number}.", policy=policy)
        work()

    all_at_once(*(lambda n=n: bring(n) for n in range(AT_ONCE)))  # type: ignore[misc]
    work()  # what a worker passed over, because another one had it just then
    assert_true(collection)
    document = Document.objects.current().get()
    with document.file.open("rb") as file:
        assert services.document_text(document).text == file.read().decode()
    versions = list(Document.objects.order_by("version").values_list("version", flat=True))
    assert versions == list(range(1, len(versions) + 1))


def test_the_first_who_need_a_space_of_another_model_agree_on_one() -> None:
    EmbeddingSpace.objects.update(model_name="the-former-one")
    spaces = all_at_once(*[services.default_space] * AT_ONCE)
    assert {space.pk for space in spaces} == {EmbeddingSpace.objects.get(is_default=True).pk}


def test_commands_at_once_on_the_same_files_leave_each_once(collection: Collection) -> None:
    sources = [text_source(f"d{n}", f"Text number {n}. {LONG[:300]}") for n in range(8)]
    all_at_once(
        lambda: ingest_inline(collection=collection, sources=sources),
        lambda: ingest_inline(collection=collection, sources=sources[::-1]),
    )
    assert Document.objects.count() == 8
    assert set(Document.objects.values_list("status", flat=True)) == {"ready"}
    assert Chunk.objects.count() == 8
    assert all(run.is_finished for run in IngestionRun.objects.all())


def test_uploads_of_the_same_files_in_another_order_do_not_lock_each_other_out(
    collection: Collection,
) -> None:
    names = [f"file-{n}.txt" for n in range(12)]

    def bring(order: list[str], text: str) -> None:
        uploads = [Upload(name=name, file=ContentFile(text.encode())) for name in order]
        ingest_uploads(collection=collection, uploads=uploads)

    all_at_once(
        *(
            lambda turn=turn: bring(names[::turn], f"Text {turn}.")  # type: ignore[misc]
            for turn in (1, -1, 1, -1)
        )
    )
    all_at_once(work, work)
    assert_true(collection)
    assert Document.objects.count() == len(names)


def test_the_same_bytes_under_two_keys_at_once_are_stored_once(collection: Collection) -> None:
    keys = [f"copy-{n}.txt" for n in range(AT_ONCE)]
    all_at_once(
        *(lambda key=key: upload(collection, LONG, key=key, store_once=True) for key in keys)  # type: ignore[misc]
    )
    ids = list(Document.objects.order_by("id").values_list("id", flat=True))
    all_at_once(*(lambda pk=pk: work_on(pk) for pk in ids))  # type: ignore[misc]
    assert_true(collection)
    original = Document.objects.get(chunk_count__gt=0)
    links = Document.objects.exclude(pk=original.pk)
    assert {link.duplicate_of_id for link in links} == {original.pk}
    assert sum(IngestionRun.objects.values_list("duplicates", flat=True)) == AT_ONCE - 1


def work_on(document_id: int) -> None:
    pipeline.embed_documents(pipeline.parse_documents([document_id]))


def test_the_same_bytes_in_two_runs_at_once_are_named_once(collection: Collection) -> None:
    texts = [text_source("alpha", LONG)], [text_source("bravo", LONG)]
    all_at_once(
        *(lambda sources=sources: ingest_inline(collection=collection, sources=sources)  # type: ignore[misc]
          for sources in texts)
    )  # fmt: skip
    assert sum(IngestionRun.objects.values_list("duplicates", flat=True)) == 1
    assert Document.objects.filter(duplicate_of=None).count() == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_a_document_deleted_while_it_is_loaded_is_gone(collection: Collection, policy: str) -> None:
    upload(collection, "The first text.")
    work()
    document_id = upload(collection, LONG, policy=policy)
    staged = pipeline.parse_documents([document_id])
    document = Document.objects.current().get()
    with nobody_writes("documents_pendingchunk"):
        loading = Raced(lambda: pipeline.embed_documents(staged))
        wait_until(blocked(1), what="loading is in its transaction")
        deleting = Raced(lambda: services.delete_document(document=document))
        wait_until(blocked(2), what="the deletion waits for it")
    loading.result()
    deleting.result()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()
    assert not Posting.objects.filter(lexeme="topic5").exists()
    assert all(run.is_finished for run in IngestionRun.objects.all())


def test_a_document_deleted_before_it_is_loaded_is_not_loaded(collection: Collection) -> None:
    document_id = upload(collection, LONG)
    staged = pipeline.parse_documents([document_id])
    with nobody_writes("documents_ingestionitem"):
        deleting = Raced(
            lambda: services.delete_document(document=Document.objects.get(pk=document_id))
        )
        wait_until(blocked(1), what="the deletion is in its transaction")
        loading = Raced(lambda: pipeline.embed_documents(staged))
    deleting.result()
    loading.result()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


def test_a_version_registered_while_its_document_is_deleted_begins_anew(
    collection: Collection,
) -> None:
    upload(collection, "The first text.")
    work()
    document = Document.objects.get()
    with nobody_writes("documents_ingestionitem"):
        deleting = Raced(lambda: services.delete_document(document=document))
        wait_until(blocked(1), what="the deletion is in its transaction")
        uploading = Raced(lambda: upload(collection, "The second text.", policy="new_version"))
        wait_until(blocked(2), what="the upload waits for it")
    deleting.result()
    uploading.result()
    work()
    row = Document.objects.get()
    assert (row.version, row.is_current, row.status) == (1, True, "ready")
    assert services.document_text(row).text == "The second text."


def test_a_collection_deleted_while_it_is_loaded_is_gone(collection: Collection) -> None:
    staged = pipeline.parse_documents([upload(collection, LONG)])
    with nobody_writes("documents_pendingchunk"):
        loading = Raced(lambda: pipeline.embed_documents(staged))
        wait_until(blocked(1), what="loading is in its transaction")
        deleting = Raced(lambda: services.delete_collection(collection=collection))
        wait_until(blocked(2), what="the deletion waits for it")
    loading.result()
    deleting.result()
    for model in (Collection, Document, Chunk, IngestionRun, Posting, StagedDocument):
        assert not model.objects.exists()


def test_an_upload_into_a_collection_that_is_deleted_just_now_says_so(
    collection: Collection, media_root: Any
) -> None:
    upload(collection, "The first text.")
    with nobody_writes("documents_chunk"):
        deleting = Raced(lambda: services.delete_collection(collection=collection))
        wait_until(blocked(1), what="the deletion is in its transaction")
        uploading = Raced(lambda: upload(collection, "The second text."))
        wait_until(blocked(2), what="the upload waits for it")
    deleting.result()
    with pytest.raises(NotFound, match="is gone"):
        uploading.result()
    assert not [path for path in media_root.rglob("*") if path.is_file()]


def test_a_command_whose_collection_is_deleted_says_so(collection: Collection) -> None:
    def sources() -> Iterator[Any]:
        yield text_source("first", LONG)
        services.delete_collection(collection=collection)
        yield text_source("second", LONG)

    with pytest.raises(NotFound, match="is gone"):
        ingest_inline(collection=collection, sources=sources())
    assert not Document.objects.exists()


def test_words_of_a_document_deleted_while_they_are_indexed_do_not_stay(
    collection: Collection,
) -> None:
    staged = pipeline.parse_documents([upload(collection, LONG)])
    with nobody_writes("documents_posting"):
        indexing = Raced(lambda: pipeline.embed_documents(staged))
        wait_until(blocked(1), what="the words are being indexed")
        document = Document.objects.get()
        deleting = Raced(lambda: services.delete_document(document=document))
        wait_until(blocked(2), what="the deletion waits for that")
    indexing.result()
    deleting.result()
    assert lexical_differences.find_differences(collection.pk) == []
    assert not Posting.objects.exists()
    assert not Lexeme.objects.exists()


def test_a_version_that_comes_while_chunks_move_to_another_model_moves_too(
    collection: Collection, settings: Any
) -> None:
    wide = {"BACKEND": HASHING, "OPTIONS": {"dimensions": 768}}
    use_models(settings, embedder={"default": hashing(), "wide": wide})
    space, _ = services.add_space(name="wide", embedder="wide")
    ingest_inline(collection=collection, sources=[text_source("note", LONG)])
    row = reembed.start_reembedding(target=space, collection=collection)
    token = reembed.take_over(row)
    cursor = reembed.move_batch(row, token=token, cursor=(0, 2))
    collection.refresh_from_db()
    run = ingest_inline(
        collection=collection,
        sources=[text_source("note", LONG.replace("topic5", "something new"))],
        policy=IngestionRun.Policy.NEW_VERSION,
    )
    assert 1 <= run.embedded <= 3
    spaces = set(Chunk.objects.filter(is_current=True).values_list("space_id", flat=True))
    assert len(spaces) == 2
    scope = site_scope(workspace=collection.workspace)
    assert search("something new", scope=scope, mode="vector").hits[0].version == 2
    while cursor is not None:
        cursor = reembed.move_batch(row, token=token, cursor=cursor)
    collection.refresh_from_db()
    assert collection.former_spaces == []
    assert set(Chunk.objects.values_list("space_id", flat=True)) == {space.pk}
    assert {len(chunk.embedding) for chunk in Chunk.objects.all()} == {768}
    assert EmbeddingSpace.objects.get(pk=row.sources[0]).pk != space.pk
    hits = search("something new", scope=scope, mode="vector").hits
    assert {hit.version for hit in hits} == {2}


def test_large_batches_of_items_are_stored_at_once_with_the_same_words(
    collection: Collection,
) -> None:
    vector = [1.0] * collection.space.dimensions

    def store(name: str) -> Callable[[], Any]:
        words = ["otter heron", "salmon beaver"][:: 1 if name < "c" else -1]
        items = [Item(f"{name}{number}", words[number % 2], vector) for number in range(300)]
        return lambda: services.store_items(collection=collection, items=items)

    results = all_at_once(*map(store, "abcd"))
    assert [len(result.ids) for result in results] == [300] * 4
    assert not PendingChunk.objects.exists()
    assert not lexical_differences.find_differences(collection.pk, sample=10**6)
