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
from tests.kit import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def client(alice: Membership) -> APIClient:
    return client_of(alice)


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


def act(client: APIClient, run: IngestionRun, what: str, **options: Any) -> Any:
    return client.post(f"/api/v1/runs/{run.pk}/{what}/", **options)


def test_a_run_is_cancelled_once_and_answers_the_same_again(
    client: APIClient, run: IngestionRun
) -> None:
    answer = act(client, run, "cancel")
    assert answer.status_code == 200
    told = answer.json()
    assert (told["state"], told["is_finished"], told["cancelled"]) == ("cancelled", True, 1)
    assert act(client, run, "cancel").json() == told


def test_a_run_that_has_ended_answers_a_conflict(client: APIClient, run: IngestionRun) -> None:
    waiting = Document.objects.get(key="waiting.txt")
    pipeline.embed_documents(pipeline.parse_documents([waiting.id]))
    answer = act(client, run, "cancel")
    assert answer.status_code == 409
    assert "has ended already: some failed" in answer.json()["detail"]


def test_failed_files_are_retried_as_a_run(client: APIClient, run: IngestionRun) -> None:
    IngestionItem.objects.create(
        workspace=run.workspace, run=run, name="elsewhere.txt", state="failed"
    )
    answer = act(client, run, "retry")
    told = answer.json()
    assert answer.status_code == 202
    assert answer["Location"] == told["url"]
    assert (told["retry_of"], told["total"], told["state"]) == (run.pk, 1, "running")
    assert told["left_out"] == ["elsewhere.txt"]
    assert act(client, run, "retry").status_code == 409


def test_a_retry_with_a_key_is_one_retry(client: APIClient, run: IngestionRun) -> None:
    headers = {"Idempotency-Key": "nightly"}
    first = act(client, run, "retry", headers=headers)
    again = act(client, run, "retry", headers=headers)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert run.retries.count() == 1
