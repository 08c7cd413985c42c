"""Versions and duplicates, as people see them."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from documents.ingestion.sources import text_source
from documents.models import Collection, Document, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import UserFactory
from documents.tests.views.reading import href, parse, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def ingest(collection: Collection, key: str, text: str, **options: Any) -> None:
    options = {"policy": IngestionRun.Policy.NEW_VERSION, **options}
    ingest_inline(collection=collection, sources=[text_source(key, text)], **options)


@pytest.fixture
def versions(notes: Collection) -> list[Document]:
    """Three versions of a note, oldest first."""
    for text in ("The first text.", "The second text.", "The third text."):
        ingest(notes, "note", text)
    return list(Document.objects.order_by("version"))


def test_a_superseded_version_says_so_and_leads_to_the_current_one(
    client: Client, versions: list[Document]
) -> None:
    tree = parse(client.get(f"/documents/notes/{versions[1].pk}/"))
    said = words(tree)
    assert "version 2 of 3" in said
    assert "Version 2 is superseded. It can be read here but is not searched." in said
    assert "The second text." in said
    assert href(tree, "Read the current version 3") == f"/documents/notes/{versions[2].pk}/"
    assert href(tree, "Version 1") == f"/documents/notes/{versions[0].pk}/"


def test_the_current_version_leads_to_the_others(client: Client, versions: list[Document]) -> None:
    said = words(parse(client.get(f"/documents/notes/{versions[2].pk}/")))
    assert "version 3 of 3" in said
    assert "superseded" not in said


def test_a_document_without_other_versions_says_nothing(client: Client, letter: Document) -> None:
    assert "Version 1" not in words(parse(client.get(f"/documents/notes/{letter.pk}/")))


def test_lists_and_counts_know_the_current_version_only(
    client: Client, versions: list[Document]
) -> None:
    listed = parse(client.get("/documents/notes/")).findall(".//tbody/tr")
    assert len(listed) == 1
    assert client.get("/api/v1/collections/notes/").json()["document_count"] == 1
    answer = client.get("/api/v1/documents/?collection=notes").json()
    assert [row["version"] for row in answer["results"]] == [3]


def test_the_api_lists_and_opens_all_versions(client: Client, versions: list[Document]) -> None:
    answer = client.get("/api/v1/documents/?collection=notes&key=note&versions=all").json()
    assert [(row["version"], row["is_current"]) for row in answer["results"]] == [
        (3, True),
        (2, False),
        (1, False),
    ]
    (chunk,) = client.get(f"/api/v1/documents/{versions[0].pk}/chunks/").json()["results"]
    assert chunk["text"] == "The first text."


def test_a_link_shows_the_text_of_its_original(client: Client, notes: Collection) -> None:
    ingest(notes, "first.txt", "Dear reader, all is well.")
    ingest(notes, "second.txt", "Dear reader, all is well.", store_once=True)
    first, second = Document.objects.order_by("pk")
    tree = parse(client.get(f"/documents/notes/{second.pk}/"))
    assert "Dear reader, all is well." in words(tree)
    assert "stored and found only there" in words(tree)
    assert href(tree, "First") == f"/documents/notes/{first.pk}/"
    shown = client.get(f"/api/v1/documents/{second.pk}/").json()
    assert (shown["duplicate_of"], shown["chunk_count"], shown["is_searchable"]) == (
        *(first.pk, 0),
        True,
    )
    (chunk,) = client.get(f"/api/v1/documents/{second.pk}/chunks/").json()["results"]
    assert chunk["text"] == "Dear reader, all is well."


def test_an_original_that_one_may_not_see_is_not_named(client: Client, notes: Collection) -> None:
    ingest(notes, "first.txt", "Dear reader, all is well.")
    ingest(notes, "second.txt", "Dear reader, all is well.")
    first, second = Document.objects.order_by("pk")
    assert "The same file as First" in words(parse(client.get(f"/documents/notes/{second.pk}/")))
    Document.objects.filter(pk=first.pk).update(access=["user:0"])
    assert "First" not in words(parse(client.get(f"/documents/notes/{second.pk}/")))


def test_deletion_tells_of_all_versions_and_deletes_them(
    client: Client, versions: list[Document]
) -> None:
    path = f"/documents/notes/{versions[2].pk}/delete/"
    said = words(parse(client.get(path)))
    assert "all 3 versions" in said
    assert "3 passages" in said
    client.post(path)
    assert not Document.objects.exists()


def test_the_upload_form_keeps_versions_and_stores_once(client: Client, notes: Collection) -> None:
    client.post(
        "/documents/notes/upload/",
        {
            "files": SimpleUploadedFile("note.txt", b"Some text."),
            "versions": "on",
            "store_once": "on",
        },
    )
    run = IngestionRun.objects.get()
    assert (run.policy, run.store_once) == ("new_version", True)


def test_the_admin_lists_current_documents_and_prunes_versions(
    client: Client, versions: list[Document]
) -> None:
    client.force_login(UserFactory(is_superuser=True))
    path = reverse("admin:documents_document_changelist")
    counts = {
        asked: client.get(path, {"versions": asked} if asked else {}).context["cl"].result_count
        for asked in ("", "superseded", "all")
    }
    assert counts == {"": 1, "superseded": 2, "all": 3}
    client.post(path, {"action": "prune_versions", "_selected_action": [versions[2].pk]})
    assert list(Document.objects.all()) == [versions[2]]
