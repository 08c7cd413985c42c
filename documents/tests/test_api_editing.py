"""Passages and documents changed over the API, and originals downloaded."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from accounts.models import Membership
from documents.models import Chunk, ChunkEdit, Collection, Document
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

NOTE = b"We move to the new building in March."


@pytest.fixture
def notes(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, slug="notes", default_language="en")


@pytest.fixture
def note(notes: Collection, alice: Membership) -> Document:
    from documents.ingestion import pipeline

    name = "folder/Umzug \r\n“März”.txt"
    upload = Upload(name=name, file=ContentFile(NOTE, name="note.txt"))
    run = ingest_uploads(collection=notes, uploads=[upload], user=alice.user)
    document = run.items.get().document
    assert document is not None
    pipeline.embed_documents(pipeline.parse_documents([document.pk]))
    return document


def patch(client: Client, address: str, body: Any, **headers: str) -> Any:
    return client.patch(address, body, content_type="application/json", headers=headers)


def address_of(document: Document) -> str:
    return f"/api/v1/chunks/{Chunk.objects.get(document=document).pk}/"


def test_a_change_of_nothing_changes_nothing(alice: Membership, note: Document) -> None:
    client, address = logged_in(alice), address_of(note)
    before = client.get(address).json()
    answer = patch(client, address, {})
    assert (answer.status_code, answer.json()) == (200, before)
    assert not ChunkEdit.objects.exists()


def test_a_passage_is_read_changed_and_given_back(alice: Membership, note: Document) -> None:
    client = logged_in(alice)
    address = address_of(note)
    read = client.get(address)
    assert read.json()["text"] == NOTE.decode()
    tag = read.headers["ETag"]
    assert client.get(address, headers={"If-None-Match": tag}).status_code == 304
    changed = patch(client, address, {"text": "We move in April."}, **{"If-Match": tag})
    assert changed.status_code == 200
    assert (changed.json()["text"], changed.json()["end"]) == ("We move in April.", 17)
    late = patch(client, address, {"text": "We move in May."}, **{"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "precondition_failed")
    [edit] = client.get(f"/api/v1/documents/{note.pk}/edits/").json()["results"]
    assert (edit["before"], edit["after"]) == (NOTE.decode(), "We move in April.")
    assert edit["user"] == alice.user.username
    undone = client.post(f"/api/v1/edits/{edit['id']}/undo/")
    assert undone.json()["state"] == "undone"
    assert client.get(address).json()["text"] == NOTE.decode()
    again = client.post(f"/api/v1/edits/{edit['id']}/undo/")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_title_metadata_and_access_are_set(alice: Membership, note: Document) -> None:
    client = logged_in(alice)
    body = {"title": "Moving", "metadata": {"year": 2026}, "access": [f"user:{alice.user.pk}"]}
    answer = patch(client, f"/api/v1/documents/{note.pk}/", body)
    assert answer.status_code == 200
    assert (answer.json()["title"], answer.json()["metadata"]) == ("Moving", {"year": 2026})
    assert Chunk.objects.get(document=note).access == [f"user:{alice.user.pk}"]
    for wrong_metadata in ([], 0, False):
        refused = patch(client, f"/api/v1/documents/{note.pk}/", {"metadata": wrong_metadata})
        assert (refused.status_code, refused.json()["errors"][0]["attr"]) == (400, "metadata")
    emptied = patch(client, f"/api/v1/documents/{note.pk}/", {"metadata": {}})
    assert (emptied.status_code, emptied.json()["metadata"]) == (200, {})
    bob = logged_in(MembershipFactory(workspace=alice.workspace))
    assert bob.get(address_of(note)).status_code == 404
    wrong = patch(client, f"/api/v1/documents/{note.pk}/", {"access": ["nobody"]})
    assert (wrong.status_code, wrong.json()["errors"][0]["attr"]) == (400, "access")


def test_the_original_comes_as_it_was_brought_under_a_safe_name(
    alice: Membership, note: Document
) -> None:
    answer = logged_in(alice).get(f"/api/v1/documents/{note.pk}/file/")
    assert b"".join(answer.streaming_content) == NOTE
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"].endswith("sandbox")
    disposition = answer.headers["Content-Disposition"]
    assert disposition.startswith("attachment; filename*=utf-8''Umzug")
    assert "folder" not in disposition
    Document.objects.filter(pk=note.pk).update(file="")
    gone = logged_in(alice).get(f"/api/v1/documents/{note.pk}/file/")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
