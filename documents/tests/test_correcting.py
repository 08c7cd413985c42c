"""Title, metadata and access that people set, also over the API: passages follow, and a source does
not undo it."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from accounts.models import Change, Membership
from common.errors import InvalidInput
from documents import lexical_index
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.services import ingest_inline, update_document
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.tests.words import chunk_counts
from tests.kit import logged_in, queue_file, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "# Leave\n\nThirty days a year.\n\n# Travel\n\nTrains are booked by everybody alone."


@pytest.fixture
def collection(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, default_language="en")


def ingest(
    collection: Collection, text: str = TEXT, key: str = "guide", **options: Any
) -> Document:
    declared = {"title": "Guide", "metadata": {"year": 2025, "area": "staff"}}
    source = text_source(key, text, media_type="text/markdown", **declared)
    ingest_inline(collection=collection, sources=[source], **options)
    return Document.objects.get(collection=collection, key=key)


def passages(document: Document) -> list[Chunk]:
    return list(Chunk.objects.filter(document=document).order_by("ordinal"))


def test_a_title_goes_into_every_passage_and_is_found(collection: Collection) -> None:
    document = ingest(collection)
    before = {chunk.pk: tuple(chunk.embedding) for chunk in passages(document)}
    update_document(document=document, title="  Handbook of   everything ")
    assert document.title == "Handbook of everything"
    chunks = passages(document)
    assert [chunk.pk for chunk in chunks] == list(before)
    assert all(chunk.context.startswith("Handbook of everything") for chunk in chunks)
    assert all(tuple(chunk.embedding) != before[chunk.pk] for chunk in chunks)
    at_once = chunk_counts(collection)
    assert at_once["english", "handbook"] == len(chunks)
    lexical_index.index_pending(collection.pk)
    assert chunk_counts(collection) == at_once


def test_a_title_and_metadata_outlive_a_changed_source(collection: Collection) -> None:
    document = ingest(collection)
    update_document(
        document=document, title="Handbook", metadata={"area": "everybody", "owner": "Ada"}
    )
    ingest(collection, TEXT.replace("Thirty", "Thirty-one"))
    document.refresh_from_db()
    assert document.title == "Handbook"
    # the year was taken away, the area changed, the owner is new
    assert document.metadata == {"area": "everybody", "owner": "Ada"}
    for chunk in passages(document):
        assert chunk.metadata == document.metadata
        assert chunk.context.startswith("Handbook")


def test_passages_keep_metadata_of_their_own(collection: Collection) -> None:
    document = ingest(collection)
    first = passages(document)[0]
    Chunk.objects.filter(pk=first.pk).update(metadata={**first.metadata, "slide": 3})
    update_document(document=document, metadata={"year": 2026})
    assert passages(document)[0].metadata == {"year": 2026, "slide": 3}
    assert all(chunk.metadata == {"year": 2026} for chunk in passages(document)[1:])


def test_who_may_see_it_holds_for_its_passages_and_its_versions(
    collection: Collection, alice: Membership
) -> None:
    bob = MembershipFactory(workspace=alice.workspace)
    old = ingest(collection)
    ingest_inline(
        collection=collection, sources=[text_source("guide", "New.")], policy="new_version"
    )
    document = Document.objects.get(key="guide", is_current=True)
    update_document(document=document, access=[f"user:{alice.user.pk}"], user=alice.user)
    for row in (old, document):
        assert Document.objects.visible_to(alice.user).filter(pk=row.pk).exists()
        assert not Document.objects.visible_to(bob.user).filter(pk=row.pk).exists()
        assert not Chunk.objects.visible_to(bob.user).filter(document=row).exists()
    update_document(document=document, access=None, user=alice.user)
    assert Chunk.objects.visible_to(bob.user).filter(document=document).exists()


def test_what_was_stored_with_it_is_still_seen(collection: Collection, alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace)
    document = ingest(collection)
    copy = ingest(collection, key="copy", store_once=True)
    assert copy.is_link
    update_document(document=document, access=[f"user:{alice.user.pk}"], user=alice.user)
    copy.refresh_from_db()
    assert Chunk.objects.visible_to(bob.user).filter(document=copy.text_id).exists()
    assert not Chunk.objects.visible_to(bob.user).filter(document=document).exists()


def test_what_is_stored_with_another_is_kept_from_others_alone(
    collection: Collection, alice: Membership
) -> None:
    bob = MembershipFactory(workspace=alice.workspace)
    document = ingest(collection)
    copy = ingest(collection, key="copy", store_once=True)
    update_document(document=copy, access=[f"user:{alice.user.pk}"], user=alice.user)
    assert not copy.is_link
    assert Chunk.objects.visible_to(alice.user).filter(document=copy).exists()
    assert not Chunk.objects.visible_to(bob.user).filter(document=copy).exists()
    assert Chunk.objects.visible_to(bob.user).filter(document=document).exists()


def test_nobody_is_named_who_is_not_there_and_nobody_locks_himself_out(
    collection: Collection, alice: Membership
) -> None:
    document = ingest(collection)
    outsider = MembershipFactory()
    group = Group.objects.create(name="Editors")
    for access, problem in (
        ([], "hide it from everybody"),
        ([f"user:{outsider.user.pk}"], "nobody here"),
        (["everybody"], "nobody here"),
        (["group:999999"], "nobody here"),
        ([f"group:{group.pk}"], "not see the document any more yourself"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            update_document(document=document, access=access, user=alice.user)


def test_what_cannot_be_is_refused(collection: Collection) -> None:
    document = ingest(collection)
    for given in ({"title": " "}, {"title": "x" * 501}, {"metadata": {"a": float("nan")}}):
        with pytest.raises(InvalidInput):
            update_document(document=document, **given)  # type: ignore[arg-type]


def test_the_history_names_the_fields_and_no_text(collection: Collection) -> None:
    document = ingest(collection)
    update_document(document=document, title="Handbook", metadata={})
    change = Change.objects.get(kind="document", thing=document.pk, action="changed")
    assert change.details == {"fields": ["metadata", "title"]}
    update_document(document=document, title="Handbook")
    assert Change.objects.filter(kind="document", thing=document.pk, action="changed").count() == 1


NOTE = b"We move to the new building in March."


@pytest.fixture
def note(notes: Collection, alice: Membership) -> Document:
    name = "folder/Umzug \r\n“März”.txt"
    document = queue_file(notes, name, NOTE, user=alice.user)
    work_on(document)
    return document


def patch(client: Client, address: str, body: Any, **headers: str) -> Any:
    return client.patch(address, body, content_type="application/json", headers=headers)


def address_of(document: Document) -> str:
    return f"/api/v1/chunks/{Chunk.objects.get(document=document).pk}/"


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
