"""Documents read and embedded again."""

import pytest
from django.core.files.base import ContentFile

from accounts.models import Change
from common.errors import Conflict
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import (
    ingest_inline,
    ingest_sources,
    reembed_collection,
    reembed_documents,
    reingest_documents,
)
from documents.tasks import reindex_documents
from documents.tests.factories import CollectionFactory
from tests.kit import process_documents

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(default_language="en")


def stored(collection: Collection, text: str = "Aspirin eases pain.") -> Document:
    """A document whose file lies here, ready."""
    ingest_inline(collection=collection, sources=[text_source("leaflet", text)])
    document = Document.objects.get(collection=collection, key="leaflet")
    document.file.save(f"{document.pk}", ContentFile(text.encode()))
    return document


def test_a_document_is_read_again_from_its_file_and_keeps_its_passages(
    collection: Collection,
) -> None:
    document = stored(collection)
    before = list(Chunk.objects.values_list("pk", "text"))

    (run,) = reingest_documents(documents=[document]).runs
    document.refresh_from_db()
    assert document.status == Document.Status.QUEUED
    process_documents()

    document.refresh_from_db()
    run.refresh_from_db()
    assert document.status == Document.Status.READY
    assert (run.state, run.total, run.ready) == (IngestionRun.State.SUCCEEDED, 1, 1)
    assert list(Chunk.objects.values_list("pk", "text")) == before


def test_a_new_chunker_cuts_anew_what_is_read_again(collection: Collection) -> None:
    sentences = "".join(f"Sentence number {n} says a little more than that. " for n in range(40))
    document = stored(collection, sentences)
    assert Chunk.objects.count() < 5
    Collection.objects.filter(pk=collection.pk).update(
        chunker="recursive", chunker_options={"max_tokens": 30, "overlap": 0}
    )
    reingest_documents(documents=[document])
    process_documents()
    assert Chunk.objects.count() > 10


def test_what_has_no_file_here_is_left_out_and_said(collection: Collection) -> None:
    here = stored(collection)
    ingest_inline(collection=collection, sources=[text_source("elsewhere", "Bread is baked.")])
    elsewhere = Document.objects.get(key="elsewhere")

    assert reingest_documents(documents=[here, elsewhere]).left_out == 1
    with pytest.raises(Conflict, match="not stored here"):
        reingest_documents(documents=[elsewhere])


def test_vectors_are_made_anew_by_a_worker(collection: Collection) -> None:
    document = stored(collection)
    right = Chunk.objects.get().embedding
    Chunk.objects.update(embedding=[0.0] * 383 + [1.0])

    assert reembed_documents(documents=[document]) == 1
    reindex_documents([document.pk])

    assert list(Chunk.objects.get().embedding) == pytest.approx(list(right), abs=1e-6)
    assert reembed_collection(collection=collection) == 1


def test_the_history_tells_of_it(collection: Collection) -> None:
    document = stored(collection)
    Change.objects.all().delete()
    reingest_documents(documents=[document])
    reembed_documents(documents=[document])
    reembed_collection(collection=collection)
    told = [(row.action, row.kind, row.thing) for row in Change.objects.order_by("pk")]
    run = IngestionRun.objects.get(source="read again")
    assert told == [
        ("ingested", "run", run.pk),
        ("reingested", "document", document.pk),
        ("reembedded", "document", document.pk),
        ("reembedded", "collection", collection.pk),
    ]


def test_sources_that_come_by_upload_can_be_read_again(collection: Collection) -> None:
    ingest_sources(collection=collection, sources=[text_source("note", "Bread is baked.")])
    process_documents()
    (run,) = reingest_documents(documents=[Document.objects.get()]).runs
    process_documents()
    run.refresh_from_db()
    assert run.state == IngestionRun.State.SUCCEEDED
