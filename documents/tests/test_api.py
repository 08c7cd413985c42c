"""The API of collections, documents, chunks and runs."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
    WorkspaceFactory,
)
from tests.kit import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
COLLECTIONS = "/api/v1/collections/"
DOCUMENTS = "/api/v1/documents/"
RUNS = "/api/v1/runs/"


@pytest.fixture
def viewer(alice: Membership) -> APIClient:
    """Bob may read."""
    return client_of(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


# --- who may what ------------------------------------------------------------------------------


def test_access_lists_hide_documents_and_chunks(
    api: APIClient, viewer: APIClient, alice: Membership, notes: Collection
) -> None:
    secret = DocumentFactory(collection=notes, access=[f"user:{alice.user.pk}"])
    ChunkFactory(document=secret)
    assert api.get(f"{DOCUMENTS}{secret.pk}/chunks/").status_code == 200
    assert viewer.get(f"{DOCUMENTS}{secret.pk}/").status_code == 404
    assert viewer.get(f"{DOCUMENTS}{secret.pk}/chunks/").status_code == 404
    assert viewer.get(f"{COLLECTIONS}notes/").json()["document_count"] == 0
    assert api.get(f"{COLLECTIONS}notes/").json()["document_count"] == 1


# --- workspaces --------------------------------------------------------------------------------


@pytest.fixture
def second(alice: Membership) -> Collection:
    """A collection of Alice's other workspace."""
    workspace = WorkspaceFactory(slug="second")
    MembershipFactory(user=alice.user, workspace=workspace)
    return CollectionFactory(workspace=workspace, slug="elsewhere")


def test_the_workspace_is_the_first_or_the_named_one(
    api: APIClient, notes: Collection, second: Collection
) -> None:
    def slugs(url: str = COLLECTIONS, **headers: str) -> list[str]:
        return [row["slug"] for row in api.get(url, headers=headers).json()["results"]]

    assert slugs() == ["notes"]
    assert slugs(f"{COLLECTIONS}?workspace=second") == ["elsewhere"]
    assert slugs(**{"X-Workspace": "second"}) == ["elsewhere"]


def test_an_id_needs_no_workspace_but_obeys_a_named_one(
    api: APIClient, notes: Collection, second: Collection
) -> None:
    document = DocumentFactory(collection=second)
    url = f"{DOCUMENTS}{document.pk}/"
    assert api.get(url).status_code == 200
    assert api.get(url, {"workspace": "second"}).status_code == 200
    assert api.get(url, {"workspace": notes.workspace.slug}).status_code == 404


# --- collections -------------------------------------------------------------------------------


def test_a_collection_is_made_changed_and_deleted(api: APIClient) -> None:
    made = api.post(
        COLLECTIONS,
        {
            "name": "Package leaflets",
            "language": "de",
            "chunker": "recursive",
            "chunker_options": {"max_tokens": 200},
            "reranker": "none",
            "rerank_instruction": "Prefer doses.",
            "fusion": {"method": "rrf", "rrf_k": 9},
        },
        format="json",
    )
    assert made.status_code == 201
    body = made.json()
    assert (body["reranker"], body["rerank_instruction"]) == ("none", "Prefer doses.")
    assert body["fusion"] == {"method": "rrf", "rrf_k": 9}
    assert body["slug"] == "package-leaflets"
    assert body["chunker_options"] == {"max_tokens": 200}
    assert body["space"]["dimensions"] == 384
    assert body["document_count"] == 0
    assert api.get(body["url"]).json() == body

    changed = api.patch(body["url"], {"name": "Leaflets", "description": "Of medicines"})
    assert changed.status_code == 200
    assert changed.json()["name"] == "Leaflets"
    assert changed.json()["language"] == "de"
    assert changed.json()["graph"] == "rules"
    assert api.patch(body["url"], {"graph": "off"}).json()["graph"] == "off"

    assert api.delete(body["url"]).status_code == 204
    assert api.get(body["url"]).status_code == 404
    assert not Collection.objects.exists()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Größe & Maße", "grosse-masse"),
        ("x" * 62 + " y" * 60, "x" * 62),
    ],
)
def test_a_slug_is_made_of_any_name_with_letters(api: APIClient, name: str, slug: str) -> None:
    answer = api.post(COLLECTIONS, {"name": name})
    assert (answer.status_code, answer.json()["slug"]) == (201, slug)


def test_another_chunker_begins_with_its_own_defaults(api: APIClient, notes: Collection) -> None:
    address = f"{COLLECTIONS}notes/"
    api.patch(address, {"chunker_options": {"max_tokens": 200}})
    api.patch(address, {"chunker": "auto", "description": "The same chunker"})
    assert api.get(address).json()["chunker_options"] == {"max_tokens": 200}

    body = api.patch(address, {"chunker": "parent_child"}).json()
    assert (body["chunker"], body["chunker_options"]) == ("parent_child", {})
    refused = api.patch(address, {"chunker_options": {"parent_tokens": 100}})
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["attr"] == "chunker_options.parent_tokens"
    assert "at least max_tokens" in refused.json()["errors"][0]["detail"]
    assert api.get(address).json() == body


# --- documents ---------------------------------------------------------------------------------


def test_a_text_is_queued_as_a_run(api: APIClient, notes: Collection) -> None:
    answer = api.post(
        DOCUMENTS,
        {
            "collection": "notes",
            "key": "meeting-1",
            "title": "Meeting",
            "text": "# Decisions\n\nWe move in March.",
            "media_type": "text/markdown",
            "metadata": {"year": 2026},
        },
    )
    assert answer.status_code == 202
    run = IngestionRun.objects.get()
    assert answer.json()["id"] == run.pk
    assert answer.json()["state"] == "running"
    assert answer.json()["total"] == 1
    assert answer.json()["url"] == answer.headers["Location"]
    assert api.get(answer.json()["url"]).json()["items"][0]["state"] == "waiting"
    found = api.get(DOCUMENTS, {"collection": "notes", "key": "meeting-1"}).json()["results"]
    assert [row["status"] for row in found] == ["queued"]


def test_files_are_queued_with_their_paths_as_keys(api: APIClient, notes: Collection) -> None:
    answer = api.post(
        DOCUMENTS,
        {
            "collection": "notes",
            "files": [
                SimpleUploadedFile("a.txt", b"The first text."),
                SimpleUploadedFile("a.txt", b"The second text."),
            ],
            "paths": ["one/a.txt", "two/a.txt"],
            "metadata": '{"year": 2026}',
        },
        format="multipart",
    )
    assert answer.status_code == 202
    assert answer.json()["total"] == 2
    assert set(Document.objects.values_list("key", flat=True)) == {"one/a.txt", "two/a.txt"}


def test_a_file_without_a_path_is_known_by_its_name(api: APIClient, notes: Collection) -> None:
    file = SimpleUploadedFile("../../etc/note.txt", b"A text.")
    answer = api.post(DOCUMENTS, {"collection": "notes", "files": file}, format="multipart")
    assert answer.status_code == 202
    assert Document.objects.get().key == "note.txt"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": " \n "}, "text"),
        ({"key": "\U0001f600" * 1000}, "key"),
        ({"media_type": "text"}, "media_type"),
        ({"media_type": "a/b"}, "media_type"),
        ({"metadata": {"a": "\x00"}}, "metadata.a"),
        ({"metadata": {"\x00": 1}}, "metadata"),
        ({"metadata": {"a": "x" * 20_001}}, "metadata"),
        ({"title\x00": 1}, None),
    ],
)
def test_a_text_that_cannot_be_is_refused_by_name(
    api: APIClient, notes: Collection, body: dict[str, Any], field: str | None
) -> None:
    body = {"collection": "notes", "key": "k", "text": "t", **body}
    answer = api.post(DOCUMENTS, body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["attr"] == field
    assert not Document.objects.exists()


def test_an_unknown_collection_is_not_found_and_those_there_are_named(
    api: APIClient, notes: Collection
) -> None:
    body = {"collection": "note", "key": "k", "text": "t"}
    for answer in (api.post(DOCUMENTS, body), api.get(DOCUMENTS, {"collection": "note"})):
        assert answer.status_code == 404
        assert "notes" in answer.json()["detail"]


def test_a_form_that_cannot_be_is_refused_by_name(api: APIClient, notes: Collection) -> None:
    file = SimpleUploadedFile("a.txt", b"text")
    for form, field in [
        ({"collection": "notes"}, "files"),
        ({"collection": "notes", "files": "no file"}, "files.0"),
        ({"files": file}, "collection"),
        ({"collection": "notes", "files": file, "paths": ["a", "b"]}, "paths"),
        ({"collection": "notes", "files": file, "paths": ["a\x00"]}, "paths.0"),
        ({"collection": "notes", "files": file, "metadata": "{"}, "metadata"),
        ({"collection": "notes", "files": file, "metadata": "[1]"}, "metadata"),
        ({"collection": "notes", "files": file, "metadata": '{"a": "\\u0000"}'}, "metadata"),
        ({"collection": "notes", "files": file, "metadata": '{"a":' * 9000}, "metadata"),
        ({"collection": "notes", "files": file, "text": "both"}, "text"),
    ]:
        answer = api.post(DOCUMENTS, form, format="multipart")
        assert answer.status_code == 400, form
        assert answer.json()["errors"][0]["attr"] == field
    assert not Document.objects.exists()


def test_lists_are_narrowed_by_what_the_query_names(
    api: APIClient, alice: Membership, notes: Collection
) -> None:
    other = CollectionFactory(workspace=alice.workspace)
    ready = DocumentFactory(collection=notes, key="same")
    failed = DocumentFactory(
        collection=other,
        key="same",
        status=Document.Status.FAILED,
        error_code="encrypted",
        error="The file is encrypted. Remove the password.",
        media_type="application/pdf",
    )
    DocumentFactory(collection=notes, key="old", is_current=False)

    def ids(**parameters: str) -> list[int]:
        return [row["id"] for row in api.get(DOCUMENTS, parameters).json()["results"]]

    assert ids() == [failed.pk, ready.pk]
    assert ids(collection="notes") == [ready.pk]
    assert ids(key="same", collection=other.slug) == [failed.pk]
    assert ids(status="failed") == ids(media_type="application/pdf") == [failed.pk]
    assert ids(key="nobody") == []
    assert api.get(f"{DOCUMENTS}{failed.pk}/").json()["error"] == {
        "code": "encrypted",
        "message": "The file is encrypted. Remove the password.",
    }
    assert api.get(f"{DOCUMENTS}{ready.pk}/").json()["error"] is None


def test_chunks_come_in_the_order_of_the_text(api: APIClient, notes: Collection) -> None:
    document = DocumentFactory(collection=notes, media_type="application/pdf")
    chunks = [ChunkFactory(document=document, page=number) for number in range(1, 6)]
    url: str | None = f"{DOCUMENTS}{document.pk}/chunks/?page_size=2"
    seen = []
    while url:
        page = api.get(url).json()
        seen += page["results"]
        url = page["next"]
    assert [row["id"] for row in seen] == [chunk.pk for chunk in chunks]
    assert seen[0]["text"] == chunks[0].text
    assert (seen[1]["start"], seen[1]["end"]) == (chunks[1].start, chunks[1].end)
    assert [row["location"] for row in seen] == [f"page {number}" for number in range(1, 6)]
    assert not {"embedding", "search_vector"} & seen[0].keys()


# --- runs --------------------------------------------------------------------------------------


def test_a_run_shows_its_failures_first_and_why(api: APIClient, notes: Collection) -> None:
    run = RunFactory(collection=notes, total=2, ready=1, failed=1, timings={"parse": 0.5})
    document = DocumentFactory(collection=notes)
    ItemFactory(run=run, name="good.txt", state=IngestionItem.State.READY, document=document)
    ItemFactory(
        run=run,
        name="bad.pdf",
        state=IngestionItem.State.FAILED,
        error_code="encrypted",
        error="The file is encrypted. Remove the password.",
    )

    answer = api.get(f"{RUNS}{run.pk}/").json()
    assert [item["name"] for item in answer["items"]] == ["bad.pdf", "good.txt"]
    assert answer["items"][0]["error"] == {
        "code": "encrypted",
        "message": "The file is encrypted. Remove the password.",
    }
    assert answer["items"][1]["document"] == document.pk
    assert answer["items"][1]["error"] is None
    assert (answer["settled"], answer["is_finished"]) == (2, False)
    assert answer["timings"] == {"parse": 0.5}

    failed = api.get(answer["items_url"], {"state": "failed"}).json()["results"]
    assert [item["name"] for item in failed] == ["bad.pdf"]


def test_runs_are_narrowed_by_collection_and_state(
    api: APIClient, alice: Membership, notes: Collection
) -> None:
    run = RunFactory(collection=notes, state=IngestionRun.State.PARTIAL)
    RunFactory(collection=CollectionFactory(workspace=alice.workspace))
    for parameters in ({"collection": "notes"}, {"state": "partial"}):
        rows = api.get(RUNS, parameters).json()["results"]
        assert [row["id"] for row in rows] == [run.pk]


def test_a_run_of_many_files_shows_the_first_and_pages_through_all(
    api: APIClient, notes: Collection
) -> None:
    run = RunFactory(collection=notes)
    IngestionItem.objects.bulk_create(
        IngestionItem(workspace=notes.workspace, run=run, name=f"{n}.txt") for n in range(250)
    )
    answer = api.get(f"{RUNS}{run.pk}/").json()
    assert len(answer["items"]) == 200
    first = api.get(answer["items_url"], {"page_size": 200}).json()
    second = api.get(first["next"]).json()
    assert len({item["id"] for item in first["results"] + second["results"]}) == 250


# --- lists -------------------------------------------------------------------------------------


def test_pages_are_stable_while_rows_are_added(api: APIClient, notes: Collection) -> None:
    old = [DocumentFactory(collection=notes).pk for _ in range(4)]
    first = api.get(DOCUMENTS, {"page_size": 2}).json()
    DocumentFactory(collection=notes)
    second = api.get(first["next"]).json()
    assert [row["id"] for row in first["results"] + second["results"]] == old[::-1]
    assert second["next"] is None
    assert api.get(second["previous"]).json()["results"] == first["results"]


@pytest.mark.parametrize("url", [COLLECTIONS, DOCUMENTS, RUNS])
def test_twenty_rows_cost_as_many_queries_as_one(
    api: APIClient, alice: Membership, url: str
) -> None:
    def grow() -> None:
        collection = CollectionFactory(workspace=alice.workspace)
        DocumentFactory(collection=collection)
        RunFactory(collection=collection)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert api.get(url).status_code == 200
        return len(captured)

    grow()
    queries()  # the first request of a process reads what it keeps
    before = queries()
    for _ in range(20):
        grow()
    assert queries() == before <= 6


def test_items_and_chunks_cost_no_query_each(api: APIClient, notes: Collection) -> None:
    document, run = DocumentFactory(collection=notes), RunFactory(collection=notes)

    def queries(url: str) -> int:
        ChunkFactory(document=document)
        ItemFactory(run=run, document=document)
        with CaptureQueriesContext(connection) as captured:
            assert api.get(url).status_code == 200
        return len(captured)

    for url in (
        f"{DOCUMENTS}{document.pk}/chunks/",
        f"{RUNS}{run.pk}/items/",
        f"{RUNS}{run.pk}/",
    ):
        assert queries(url) == queries(url) == queries(url)


def test_lists_never_read_vectors(api: APIClient, notes: Collection) -> None:
    document = DocumentFactory(collection=notes)
    ChunkFactory(document=document)
    with CaptureQueriesContext(connection) as captured:
        api.get(f"{DOCUMENTS}{document.pk}/chunks/")
    assert not [query for query in captured if '"embedding"' in query["sql"]]
