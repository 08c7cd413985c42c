"""The same bytes under several keys: named, and stored once where asked."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db.models import Count

from documents import lexical_index, services
from documents.ingestion import pipeline
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionRun, Posting
from documents.services import Upload, ingest_inline, ingest_uploads
from documents.tests.factories import CollectionFactory
from search.query_options import site_scope
from search.services import search

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "Ibuprofen eases pain and lowers a fever within an hour or two. "
LONG = "\n\n".join(f"Paragraph {n} speaks of topic{n} at some length. " * 25 for n in range(6))


def ingest(collection: Collection, texts: dict[str, str], **options: Any) -> IngestionRun:
    sources = [text_source(key, text) for key, text in texts.items()]
    return ingest_inline(collection=collection, sources=sources, **options)


def upload(collection: Collection, files: dict[str, str], **options: Any) -> IngestionRun:
    """Queue the files, without any worker."""
    uploads = [
        Upload(name=name, file=ContentFile(text.encode(), name=name))
        for name, text in files.items()
    ]
    return ingest_uploads(collection=collection, uploads=uploads, **options)


def work(*runs: IngestionRun) -> None:
    """What the two queues do with all files of the runs together."""
    ids = list(Document.objects.filter(items__run__in=runs).values_list("id", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))
    for run in runs:
        run.refresh_from_db()


def document(key: str) -> Document:
    return Document.objects.current().get(key=key)


def assert_whole(collection: Collection) -> None:
    """Every current document is ready and its text can be found and read."""
    found = {
        hit.document_id
        for hit in search("a", scope=site_scope(workspace=collection.workspace), k=100).hits
    }
    for row in Document.objects.current():
        assert row.status == "ready"
        assert row.chunks.count() == row.chunk_count
        original = Document.objects.get(pk=row.text_id)
        assert original.is_current
        assert original.chunk_count > 0
        assert not original.is_link
        assert services.document_text(row).text.strip()
        assert original.chunks.filter(is_current=True).count() == original.chunk_count
    ordinals = Chunk.objects.values("document", "ordinal").annotate(n=Count("id"))
    assert not ordinals.filter(n__gt=1).exists()
    assert found <= set(Document.objects.current().values_list("pk", flat=True))


def test_the_second_document_with_the_same_bytes_names_the_first(collection: Collection) -> None:
    ingest(collection, {"alpha": TEXT})
    run = ingest(collection, {"bravo": TEXT, "charlie": "Another text."})
    assert run.duplicates == 1
    assert document("bravo").duplicate_of == document("alpha")
    assert document("charlie").duplicate_of is None
    assert document("alpha").duplicate_of is None
    assert document("bravo").chunk_count == 1
    assert Chunk.objects.filter(text=TEXT.strip()).count() == 2


def test_duplicates_within_one_run_are_named(collection: Collection) -> None:
    run = ingest(collection, {"alpha": TEXT, "bravo": TEXT, "charlie": TEXT})
    assert run.duplicates == 2
    assert {document(key).duplicate_of for key in ("bravo", "charlie")} == {document("alpha")}


def test_the_same_bytes_in_another_collection_are_no_duplicate(collection: Collection) -> None:
    ingest(CollectionFactory(workspace=collection.workspace), {"alpha": TEXT})
    run = ingest(collection, {"bravo": TEXT})
    assert run.duplicates == 0
    assert document("bravo").duplicate_of is None


def test_a_document_that_changes_is_no_duplicate_any_more(collection: Collection) -> None:
    ingest(collection, {"alpha": TEXT, "bravo": TEXT, "charlie": TEXT})
    ingest(collection, {"alpha": "Another text."})
    assert document("alpha").duplicate_of is None
    assert document("bravo").duplicate_of is None
    assert document("charlie").duplicate_of == document("bravo")
    ingest(collection, {"charlie": "A third text."})
    assert document("charlie").duplicate_of is None


def test_stored_once_it_is_a_link(collection: Collection) -> None:
    ingest(collection, {"alpha.txt": LONG})
    run = ingest(collection, {"bravo.txt": LONG}, store_once=True)
    first, second = document("alpha.txt"), document("bravo.txt")
    assert (run.state, run.ready, run.duplicates, run.chunks, run.embedded) == (
        *("succeeded", 1, 1, 0),
        0,
    )
    assert (second.status, second.chunk_count, second.is_link) == ("ready", 0, True)
    assert second.is_searchable
    assert second.title == "Bravo"
    assert services.document_text(second).text == services.document_text(first).text
    assert Chunk.objects.count() == first.chunk_count
    again = ingest(collection, {"bravo.txt": LONG}, store_once=True)
    assert (again.skipped, again.duplicates) == (1, 0)
    assert_whole(collection)


def test_an_upload_is_linked_at_once(collection: Collection) -> None:
    work(upload(collection, {"alpha.txt": TEXT}))
    run = upload(collection, {"bravo.txt": TEXT}, store_once=True)
    assert (run.state, run.ready, run.duplicates) == ("succeeded", 1, 1)
    assert document("bravo.txt").duplicate_of == document("alpha.txt")
    assert document("bravo.txt").is_link
    assert_whole(collection)


@pytest.mark.parametrize("at_once", [True, False])
def test_uploads_that_are_new_together_are_stored_once(
    collection: Collection, at_once: bool
) -> None:
    runs = [
        upload(collection, {"alpha.txt": TEXT}, store_once=True),
        upload(collection, {"bravo.txt": TEXT, "charlie.txt": TEXT}, store_once=True),
    ]
    for batch in [runs] if at_once else [[run] for run in runs]:
        work(*batch)
    assert sum(run.duplicates for run in runs) == 2
    assert [run.state for run in runs] == ["succeeded", "succeeded"]
    assert Chunk.objects.count() == 1
    assert Document.objects.filter(chunk_count=0, status="ready").count() == 2
    assert_whole(collection)


def test_another_access_list_or_other_metadata_is_stored_as_usual(collection: Collection) -> None:
    ingest(collection, {"alpha": TEXT})
    Document.objects.update(access=["user:7"])
    Chunk.objects.update(access=["user:7"])
    ingest(collection, {"bravo": TEXT}, store_once=True)
    assert document("bravo").chunk_count == 1
    ingest_inline(
        collection=collection,
        sources=[text_source("charlie", TEXT, metadata={"year": 2020})],
        store_once=True,
    )
    assert document("charlie").chunk_count == 1
    assert document("charlie").duplicate_of is not None


def test_a_text_that_reads_otherwise_under_another_suffix_is_stored(collection: Collection) -> None:
    ingest(collection, {"alpha.txt": "# A title\n\nSome text."})
    ingest(collection, {"bravo.md": "# A title\n\nSome text."}, store_once=True)
    assert document("bravo.md").chunk_count == 1
    assert document("bravo.md").title == "A title"


def test_a_document_with_a_text_of_its_own_keeps_its_chunks(collection: Collection) -> None:
    ingest(collection, {"alpha": TEXT, "bravo": "Another text."})
    ingest(collection, {"bravo": TEXT}, store_once=True)
    assert document("bravo").chunk_count == 1
    assert document("bravo").duplicate_of == document("alpha")
    assert_whole(collection)


@pytest.fixture
def linked(collection: Collection) -> Collection:
    """A long text under three keys, stored once."""
    ingest(collection, {"alpha.txt": LONG, "bravo.txt": LONG, "charlie.txt": LONG}, store_once=True)
    assert [document(key).is_link for key in ("alpha.txt", "bravo.txt", "charlie.txt")] == [
        *(False, True),
        True,
    ]
    return collection


def test_a_deleted_original_leaves_its_chunks_to_the_oldest_link(linked: Collection) -> None:
    before = list(document("alpha.txt").chunks.values_list("text", "start", "end", "token_count"))
    services.delete_document(document=document("alpha.txt"))
    heir = document("bravo.txt")
    assert list(heir.chunks.values_list("text", "start", "end", "token_count")) == before
    assert heir.duplicate_of is None
    assert document("charlie.txt").duplicate_of == heir
    assert {chunk.context for chunk in heir.chunks.all()} == {"Bravo"}
    lexical_index.index_pending(linked.pk)
    assert not Posting.objects.filter(lexeme="alpha").exists()
    assert_whole(linked)
    services.delete_document(document=heir)
    assert_whole(linked)
    services.delete_document(document=document("charlie.txt"))
    assert not Chunk.objects.exists()


@pytest.mark.parametrize("policy", ["skip_if_unchanged", "new_version"])
def test_a_changed_original_leaves_its_text_to_the_oldest_link(
    linked: Collection, policy: str
) -> None:
    run = ingest(linked, {"alpha.txt": LONG.replace("topic5", "subject")}, policy=policy)
    assert run.state == "succeeded"
    assert 1 <= run.embedded <= 3
    assert "subject" in services.document_text(document("alpha.txt")).text
    assert "subject" not in services.document_text(document("bravo.txt")).text
    assert "topic5" in services.document_text(document("charlie.txt")).text
    assert document("charlie.txt").duplicate_of == document("bravo.txt")
    assert_whole(linked)


def test_an_original_that_fails_keeps_its_text_and_its_links(linked: Collection) -> None:
    work(upload(linked, {"alpha.txt": "\x00\x01\x02" * 100}))
    original = document("alpha.txt")
    assert (original.status, original.chunk_count > 0) == ("failed", True)
    assert document("bravo.txt").duplicate_of == original
    assert "topic5" in services.document_text(document("bravo.txt")).text


@pytest.mark.parametrize("policy", ["overwrite", "new_version"])
def test_a_link_that_changes_gets_chunks_of_its_own(linked: Collection, policy: str) -> None:
    ingest(linked, {"bravo.txt": "A text of its own."}, policy=policy)
    assert services.document_text(document("bravo.txt")).text == "A text of its own."
    assert document("charlie.txt").duplicate_of == document("alpha.txt")
    assert_whole(linked)


def test_a_superseded_link_stays_readable_when_its_original_goes(linked: Collection) -> None:
    for key in ("bravo.txt", "charlie.txt"):
        ingest(linked, {key: f"A text of {key}."}, policy="new_version")
    services.delete_document(document=document("alpha.txt"))
    for key in ("bravo.txt", "charlie.txt"):
        old = Document.objects.get(key=key, version=1)
        assert "topic5" in services.document_text(old).text
    assert not Chunk.objects.filter(is_current=True, text__contains="topic5").exists()
    assert_whole(linked)


def test_cutting_an_original_anew_keeps_its_links(linked: Collection) -> None:
    linked.chunker_options = {"max_tokens": 64, "overlap": 0}
    linked.save()
    ingest(linked, {"alpha.txt": LONG})
    assert document("bravo.txt").duplicate_of == document("alpha.txt")
    assert document("bravo.txt").is_link
    assert_whole(linked)


def test_a_deleted_duplicate_changes_nothing_for_the_original(linked: Collection) -> None:
    before = document("alpha.txt").chunk_count
    services.delete_document(document=document("bravo.txt"))
    assert document("alpha.txt").chunks.count() == before
    assert_whole(linked)
