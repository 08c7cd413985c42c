"""A host whose clock is wrong works along with the others: leases end by the database's time."""

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from common.leases import MAX_CLOCK_SKEW, database_now
from documents.ingestion import jobs
from documents.models import Chunk, Document, IngestionRun
from documents.services import Upload, ingest_uploads
from documents.tasks import recover_documents
from documents.tests.factories import CollectionFactory, DocumentFactory
from documents.validation import validate
from tests.plugin import WorkerProcess, wait_until

SHIFTED = Path(__file__).resolve().parent / "shifted"
FILES = 6
HOURS = [2, -2]


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("hours", HOURS)
def test_a_worker_whose_clock_is_wrong_does_the_work_once(
    unstarted_worker_process: WorkerProcess, hours: int
) -> None:
    worker = unstarted_worker_process
    collection = CollectionFactory()
    held = DocumentFactory(collection=collection, status="queued")
    token, _ = jobs.claim([held.pk])  # by a worker that is well, and goes on renewing
    uploads = [
        Upload(name=f"{n}.txt", file=ContentFile(f"Text number {n}.".encode()))
        for n in range(FILES)
    ]
    run = ingest_uploads(collection=collection, uploads=uploads)
    worker.environment |= {
        "PYTHONPATH": os.pathsep.join([str(SHIFTED), os.environ.get("PYTHONPATH", "")]),
        "CLOCK_SHIFT_SECONDS": str(hours * 3600),
        "RAGSITE_INGESTION_LEASE_SECONDS": "60",
    }
    worker.start()

    def has_ended() -> bool:
        run.refresh_from_db()
        return run.is_finished

    wait_until(has_ended, what="the run is finished")
    shift = run.finished_at - database_now() if run.finished_at else timedelta()
    assert abs(shift - timedelta(hours=hours)) < timedelta(minutes=5), "the clock is shifted"
    assert (run.state, run.ready) == ("succeeded", FILES)
    assert Chunk.objects.count() == FILES
    # Its recovery ran as it started, and took nothing from whoever is alive.
    held.refresh_from_db()
    assert (held.claimed_by, held.attempts) == (token, 1)
    held.delete()
    assert validate().findings == ()


@pytest.mark.django_db
@pytest.mark.parametrize("hours", HOURS)
def test_what_is_held_when_the_databases_own_clock_is_set_comes_back(hours: int) -> None:
    document = DocumentFactory(status="queued")
    jobs.claim([document.pk])
    assert jobs.claim([document.pk])[1] == []
    Document.objects.update(claimed_until=F("claimed_until") - timedelta(hours=hours))
    assert jobs.claim([document.pk])[1] == [document]


@pytest.mark.django_db
@pytest.mark.parametrize("hours", HOURS)
def test_what_was_written_before_the_clock_was_set_is_sent_again(hours: int) -> None:
    document = DocumentFactory(status="queued")
    assert recover_documents() == 0
    Document.objects.filter(pk=document.pk).update(updated_at=Now() - timedelta(hours=hours))
    assert recover_documents() == 1


@pytest.mark.django_db
def test_clocks_that_differ_a_little_change_nothing() -> None:
    document = DocumentFactory(status="queued")
    jobs.claim([document.pk])
    Document.objects.update(claimed_until=F("claimed_until") + MAX_CLOCK_SKEW / 2)
    assert jobs.claim([document.pk])[1] == []
    assert abs(database_now() - timezone.now()) < MAX_CLOCK_SKEW
    assert not IngestionRun.objects.exists()
