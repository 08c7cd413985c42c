"""A real worker is killed in the middle; nothing is lost and nothing is there twice."""

from collections.abc import Callable

import pytest
from django.core.files.base import ContentFile
from django.db.models import Count

from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
    StagedDocument,
)
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory
from ragsite.testing import WorkerProcess, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

FILES = 48
#: The real model, so that the kill meets work that takes time.
MODEL = "inference.backends.transformers_local.TransformersEmbedder"


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


def some_are_staged() -> bool:
    return StagedDocument.objects.exists()


def some_are_being_embedded() -> bool:
    embedding = IngestionItem.objects.filter(state="embedding", document__attempts__gt=0)
    return embedding.exists() and StagedDocument.objects.count() >= FILES // 2


@pytest.mark.model
@pytest.mark.parametrize("in_the_middle", [some_are_staged, some_are_being_embedded])
def test_every_document_is_ready_exactly_once_after_a_worker_was_killed(
    celery_worker_process: WorkerProcess, in_the_middle: Callable[[], bool]
) -> None:
    worker = celery_worker_process
    worker.stop()
    worker.environment["EMBEDDER_BACKEND"] = MODEL
    EmbeddingSpace.objects.update(model_name="all-MiniLM-L6-v2")
    run = upload(CollectionFactory())
    worker.start()
    wait_until(in_the_middle, what="the worker is in the middle")
    worker.kill()
    assert Document.objects.exclude(status="ready").exists()
    worker.start()

    def is_finished() -> bool:
        run.refresh_from_db()
        return run.is_finished

    wait_until(is_finished, what="the run is finished", seconds=180)
    assert (run.state, run.ready, run.failed, run.total) == ("succeeded", FILES, 0, FILES)
    assert Document.objects.filter(status="ready").count() == FILES
    assert not StagedDocument.objects.exists()
    twice = Chunk.objects.values("document", "ordinal").annotate(n=Count("id")).filter(n__gt=1)
    assert not twice.exists()
    for document in Document.objects.all():
        assert document.chunks.count() == document.chunk_count > 0
        assert document.claimed_by is None
    assert run.chunks == Chunk.objects.count()


def test_uploads_wait_for_a_model_that_is_away_and_say_so(
    celery_worker_process: WorkerProcess,
) -> None:
    worker = celery_worker_process
    worker.stop()
    present = dict(worker.environment)
    worker.environment |= {
        "EMBEDDER_BACKEND": MODEL,
        "EMBEDDER_OPTIONS": '{"model": "nobody/has-fetched-this"}',
    }
    run = upload(CollectionFactory())
    worker.start()
    waiting = Document.objects.filter(error_code="model_unavailable")
    wait_until(waiting.exists, what="a document says that the model is away")
    assert not Document.objects.filter(status="failed").exists()
    worker.stop()
    worker.environment = present
    worker.start()

    def is_finished() -> bool:
        run.refresh_from_db()
        return run.is_finished

    wait_until(is_finished, what="the run is finished", seconds=120)
    assert (run.state, run.ready, run.failed) == ("succeeded", FILES, 0)
    assert not waiting.exists()
