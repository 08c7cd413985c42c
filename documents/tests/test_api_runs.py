"""Cancelling and retrying over the API."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.ingestion import pipeline
from documents.models import Document, IngestionItem, IngestionRun
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def run(alice: Membership) -> IngestionRun:
    """One file is ready, one has failed, one waits."""
    names = {"ready.txt": b"Some words.", "empty.txt": b"", "waiting.txt": b"More words."}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in names.items()]
    collection = CollectionFactory(workspace=alice.workspace)
    run = ingest_uploads(collection=collection, uploads=uploads)
    worked = Document.objects.exclude(key="waiting.txt").values_list("id", flat=True)
    pipeline.embed_documents(pipeline.parse_documents(list(worked)))
    return run


def act(api: APIClient, run: IngestionRun, what: str, **options: Any) -> Any:
    return api.post(f"/api/v1/runs/{run.pk}/{what}/", **options)


def test_a_run_is_cancelled_once_and_answers_the_same_again(
    api: APIClient, run: IngestionRun
) -> None:
    answer = act(api, run, "cancel")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["state"], told["is_finished"], told["cancelled"]) == ("cancelled", True, 1)
    assert act(api, run, "cancel").json() == told


def test_a_run_that_has_ended_answers_a_conflict(api: APIClient, run: IngestionRun) -> None:
    waiting = Document.objects.get(key="waiting.txt")
    pipeline.embed_documents(pipeline.parse_documents([waiting.id]))
    answer = act(api, run, "cancel")
    assert answer.status_code == 409
    assert "has ended already: some failed" in answer.json()["detail"]


def test_failed_files_are_retried_as_a_run(api: APIClient, run: IngestionRun) -> None:
    IngestionItem.objects.create(
        workspace=run.workspace, run=run, name="elsewhere.txt", state="failed"
    )
    answer = act(api, run, "retry")
    told = answer.json()
    assert answer.status_code == 202
    assert answer["Location"] == told["url"]
    assert (told["retry_of"], told["total"], told["state"]) == (run.pk, 1, "running")
    assert told["left_out"] == ["elsewhere.txt"]
    assert act(api, run, "retry").status_code == 409
