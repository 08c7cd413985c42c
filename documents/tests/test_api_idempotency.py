"""`Idempotency-Key` on what the API makes."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import idempotency
from accounts.models import IdempotencyRecord, Membership, Role
from documents.models import Collection, Document, IngestionRun
from documents.tests.factories import MembershipFactory
from tests.kit import at_once, client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
COLLECTIONS = "/api/v1/collections/"
DOCUMENTS = "/api/v1/documents/"
TEXT = {"collection": "notes", "key": "k", "text": "Some words."}


def post(api: APIClient, url: str, body: Any, key: str = "one", **options: Any) -> Any:
    return api.post(url, body, headers={"Idempotency-Key": key}, **options)


@pytest.mark.parametrize("change", [{"text": "Other words."}, {"title": "New"}])
def test_another_body_with_the_key_is_refused(
    api: APIClient, notes: Collection, change: dict[str, str]
) -> None:
    post(api, DOCUMENTS, TEXT)
    answer = post(api, DOCUMENTS, TEXT | change)
    assert answer.status_code == 422
    assert answer.json()["code"] == "idempotency_key_reused"
    assert "new key" in answer.json()["detail"]
    assert IngestionRun.objects.count() == 1


def form(content: bytes = b"words", name: str = "a.txt", **fields: str) -> dict[str, Any]:
    return {
        "collection": "notes",
        "files": [SimpleUploadedFile(name, content), SimpleUploadedFile("b.txt", b"more")],
        **fields,
    }


def test_a_form_is_known_by_its_fields_and_files(api: APIClient, notes: Collection) -> None:
    first = post(api, DOCUMENTS, form(), format="multipart")
    again = post(api, DOCUMENTS, form(), format="multipart")
    assert first.status_code == 202
    assert again.content == first.content
    for other in (form(b"Words"), form(name="c.txt"), form(policy="overwrite")):
        assert post(api, DOCUMENTS, other, format="multipart").status_code == 422
    assert IngestionRun.objects.count() == 1
    assert Document.objects.get(key="a.txt").file.read() == b"words"


def test_a_refusal_comes_again_too(api: APIClient, notes: Collection) -> None:
    first = post(api, COLLECTIONS, {"name": "Notes", "slug": "notes"})
    notes.delete()
    again = post(api, COLLECTIONS, {"name": "Notes", "slug": "notes"})
    assert (first.status_code, again.status_code) == (409, 409)
    assert again.content == first.content
    assert not Collection.objects.exists()


def test_a_failure_of_the_site_is_not_kept(
    api: APIClient, notes: Collection, settings: Any, tmp_path: Path
) -> None:
    media_root = settings.MEDIA_ROOT
    settings.MEDIA_ROOT = tmp_path / "no-folder"
    settings.MEDIA_ROOT.touch()
    api.raise_request_exception = False
    assert post(api, DOCUMENTS, TEXT).status_code == 500
    assert not IdempotencyRecord.objects.exists()
    settings.MEDIA_ROOT = media_root
    assert post(api, DOCUMENTS, TEXT).status_code == 202


def test_who_becomes_an_editor_is_not_told_the_old_refusal(alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    api = client_of(bob)
    assert post(api, COLLECTIONS, {"name": "New"}).status_code == 403
    Membership.objects.filter(pk=bob.pk).update(role=Role.EDITOR)
    assert post(api, COLLECTIONS, {"name": "New"}).status_code == 201


def test_a_body_that_cannot_be_read_takes_no_key(api: APIClient, notes: Collection) -> None:
    broken = api.post(
        DOCUMENTS, "{", content_type="application/json", headers={"Idempotency-Key": "one"}
    )
    assert broken.status_code == 400
    assert post(api, DOCUMENTS, TEXT).status_code == 202


def test_while_the_first_is_worked_on_the_second_is_told_when_to_come(
    api: APIClient, notes: Collection
) -> None:
    post(api, DOCUMENTS, TEXT)
    lease = timezone.now() + idempotency.LEASE
    IdempotencyRecord.objects.update(status=None, leased_until=lease)
    answer = post(api, DOCUMENTS, TEXT)
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_in_use")
    assert int(answer["Retry-After"]) > 0
    assert IngestionRun.objects.count() == 1


def test_answers_hold_no_text_of_a_document(api: APIClient, notes: Collection) -> None:
    post(api, DOCUMENTS, TEXT | {"text": "unicorns everywhere"})
    url = f"{COLLECTIONS}notes/store/items/"
    post(api, url, {"items": [{"id": "i", "text": "unicorns in a store"}]}, "two")
    assert IdempotencyRecord.objects.count() == 2
    kept = json.dumps(list(IdempotencyRecord.objects.values("body", "location", "fingerprint")))
    assert "unicorn" not in kept


@pytest.mark.django_db(transaction=True)
def test_of_uploads_at_once_with_one_key_one_is_done(alice: Membership, notes: Collection) -> None:
    def send() -> int:
        return post(client_of(alice), DOCUMENTS, form(), format="multipart").status_code

    statuses = at_once(*[send] * 4)
    assert set(statuses) <= {202, 409}
    assert 202 in statuses
    assert IngestionRun.objects.count() == 1
    assert Document.objects.count() == 2
