"""Requests that name pages and directories reach what the operator allows, and nothing else."""

from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.models import Collection, Document, IngestionRun

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
SYNC = "/api/v1/collections/notes/sync/"
DOCUMENTS = "/api/v1/documents/"


@pytest.fixture
def root(tmp_path: Path, settings: Any) -> Path:
    """A directory that may be read, beside one that may not."""
    for name in ("allowed/one.txt", "allowed/deep/two.txt", "secret/three.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"This is what {name} says of the matter.")
    settings.INGEST_ROOTS = [str(tmp_path / "allowed")]
    return tmp_path / "allowed"


def test_a_directory_is_queued(api: APIClient, notes: Collection, root: Path) -> None:
    answer = api.post(DOCUMENTS, {"collection": "notes", "directory": str(root)})
    assert (answer.status_code, answer.json()["total"]) == (202, 2)
    keys = set(Document.objects.values_list("key", flat=True))
    assert keys == {f"{root}/one.txt", f"{root}/deep/two.txt"}


def test_a_glob_narrows_it(api: APIClient, notes: Collection, root: Path) -> None:
    body = {"collection": "notes", "directory": str(root), "glob": "*.txt"}
    assert api.post(DOCUMENTS, body).json()["total"] == 1
    refused = api.post(DOCUMENTS, {**body, "glob": "*.pdf"}).json()["errors"][0]
    assert (refused["attr"], "“*.pdf”" in refused["detail"]) == ("glob", True)


def test_without_roots_no_directory_is_read(
    api: APIClient, notes: Collection, root: Path, settings: Any
) -> None:
    settings.INGEST_ROOTS = []
    for url, body in (
        (DOCUMENTS, {"collection": "notes", "directory": str(root)}),
        (SYNC, {"directory": str(root)}),
    ):
        answer = api.post(url, body)
        assert answer.status_code == 403
        assert "RAGSITE_INGEST_ROOTS" in answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("directory", "status"),
    [
        ("{root}/../secret", 400),
        ("{root}/deep/../../secret", 400),
        ("allowed", 400),
        ("{root}/absent", 400),
        ("{root}/one.txt", 400),
        ("{root}-2", 403),
        ("{parent}/secret", 403),
        ("{parent}", 403),
        ("/", 403),
        ("/etc", 403),
        ("/nowhere/at/all", 403),
        ("{root}/link-out", 403),
        ("{root}/link-out/deeper", 403),
    ],
)
def test_nothing_outside_of_a_root_is_read(
    api: APIClient, notes: Collection, root: Path, directory: str, status: int
) -> None:
    (root / "link-out").symlink_to(root.parent / "secret")
    named = directory.format(root=root, parent=root.parent)
    for url, body in (
        (DOCUMENTS, {"collection": "notes", "directory": named}),
        (SYNC, {"directory": named}),
    ):
        assert api.post(url, body).status_code == status
    assert not Document.objects.exists()


def test_links_out_of_a_root_fail_and_those_within_it_are_read(
    api: APIClient, notes: Collection, root: Path
) -> None:
    (root / "out.txt").symlink_to(root.parent / "secret" / "three.txt")
    (root / "out_chunk_001.json").symlink_to(root.parent / "secret" / "three.txt")
    (root / "within.txt").symlink_to(root / "one.txt")
    answer = api.post(DOCUMENTS, {"collection": "notes", "directory": str(root)})
    run = IngestionRun.objects.get(pk=answer.json()["id"])
    failed = dict(run.items.filter(state="failed").values_list("name", "error"))
    assert failed.keys() == {"out.txt", "out_chunk_001.json"}
    assert all("leads out" in reason for reason in failed.values())
    assert not any("secret" in key for key in Document.objects.values_list("key", flat=True))


def test_a_sync_names_what_became_of_each_file(
    api: APIClient, notes: Collection, root: Path
) -> None:
    answer = api.post(SYNC, {"directory": str(root)})
    assert answer.status_code == 202
    assert set(answer.json()["new"]) == {"one.txt", "deep/two.txt"}
    assert answer.json()["run"]["total"] == 2
    Document.objects.update(status="ready")
    (root / "one.txt").unlink()
    body = {"directory": str(root), "delete": True, "dry_run": True}
    answer = api.post(SYNC, body)
    assert (answer.status_code, answer.json()["deleted"]) == (200, ["one.txt"])
    assert (answer.json()["run"], Document.objects.count()) == (None, 2)
    answer = api.post(SYNC, {**body, "dry_run": False})
    assert (answer.status_code, answer.json()["deletions_applied"]) == (202, True)
    assert Document.objects.get().key == f"{root}/deep/two.txt"


def test_a_directory_that_is_suddenly_empty_changes_nothing(
    api: APIClient, notes: Collection, root: Path
) -> None:
    api.post(SYNC, {"directory": str(root)})
    root.rename(root.with_name("unmounted"))
    root.mkdir()
    body = {"directory": str(root), "delete": True}
    answer = api.post(SYNC, body)
    assert answer.status_code == 400
    assert "set `allow_empty`" in answer.json()["errors"][0]["detail"]
    answer = api.post(SYNC, {**body, "dry_run": True})
    assert answer.status_code == 200
    assert len(answer.json()["deleted"]) == 2
    assert answer.json()["refused"]["option"] == "allow_empty"
    assert Document.objects.count() == 2


def test_pages_are_fetched_only_where_that_is_switched_on(
    api: APIClient, notes: Collection, settings: Any
) -> None:
    body = {"collection": "notes", "url": "http://127.0.0.1:9/"}
    assert api.post(DOCUMENTS, body).status_code == 403
    settings.URL_INGESTION = True
    answer = api.post(DOCUMENTS, body)
    assert (answer.status_code, answer.json()["state"]) == (202, "failed")
    item = IngestionRun.objects.get().items.get()
    assert (item.name, item.error_code) == ("http://127.0.0.1:9/", "forbidden_address")
    assert api.post(DOCUMENTS, {**body, "url": "file:///etc/passwd"}).status_code == 400
    assert api.post(DOCUMENTS, {**body, "text": "both"}).status_code == 400
