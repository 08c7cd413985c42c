"""Uploaded files go with their documents, whatever dies in between or finds no room; those that
are named, or may yet be, stay."""

import logging
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.db import DatabaseError, OperationalError, connection
from django.utils import timezone
from rest_framework.test import APIClient

from documents import tasks
from documents.ingestion import stored_files
from documents.ingestion.stored_files import StorageFull
from documents.models import Collection, Document, IngestionRun
from documents.services import Upload, delete_document, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.validation import validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
MINUTE = 60.0


def bring(collection: Collection, *names: str, text: str = "It waits.") -> None:
    files = [Upload(name=name, file=ContentFile(text.encode())) for name in names]
    ingest_uploads(collection=collection, uploads=files)


def orphan(media_root: Path, *, minutes: float, name: str = "999999") -> Path:
    """A file of no document that was written so long ago."""
    file = media_root / "documents" / "2026" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"of nobody")
    written = time() - minutes * MINUTE
    os.utime(file, (written, written))
    return file


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def make_old(folder: Path) -> None:
    for name in files_in(folder):
        os.utime(folder / name, (0, 0))


@contextmanager
def committing(outcome: str) -> Iterator[None]:
    """At the next commit the connection is cut, after it was carried out or before."""
    commit = connection._commit  # type: ignore[attr-defined]

    def cut() -> None:
        if outcome == "done":
            commit()
        connection.close()
        raise OperationalError("server closed the connection unexpectedly")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "_commit", cut)
        yield


def test_the_sweep_removes_what_is_an_hour_old(
    collection: Collection, media_root: Path, caplog: Any
) -> None:
    bring(collection, "a.txt")
    old, new = orphan(media_root, minutes=61), orphan(media_root, minutes=59, name="7")
    with caplog.at_level(logging.INFO, logger="documents"):
        assert tasks.sweep_files() == 1
    assert (old.exists(), new.exists()) == (False, True)
    assert "removed 1 stored files" in caplog.text
    assert validate().findings == ()  # the new one may be of an upload, and a.txt is there
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="documents"):
        assert tasks.sweep_files() == 0
    assert not caplog.records
    assert stored_files.remove_orphaned_files(age=timedelta(0)) == 1
    assert files_in(media_root) == {Document.objects.get().file.name}


@pytest.mark.parametrize("whose", ["host", "database"])
def test_a_clock_that_is_ahead_makes_no_file_old(
    collection: Collection, media_root: Path, monkeypatch: Any, whose: str
) -> None:
    bring(collection, "a.txt")
    orphan(media_root, minutes=1)
    ahead = timezone.now() + timedelta(hours=2)
    if whose == "host":
        monkeypatch.setattr(timezone, "now", lambda: ahead)
    else:
        monkeypatch.setattr(stored_files, "database_now", lambda: ahead)
    assert tasks.sweep_files() == 0


def test_the_folder_of_another_database_is_left_alone(media_root: Path, caplog: Any) -> None:
    """An empty database, such as one that is being restored, names no file at all."""
    file = orphan(media_root, minutes=61)
    assert tasks.sweep_files() == 0
    assert "is MEDIA_ROOT the folder of this database?" in caplog.text
    assert file.exists()
    assert [finding.check.name for finding in validate().findings] == ["file_unknown"]
    assert validate(fix=True).is_clean  # who says so is asked no more
    assert not file.exists()


def test_without_a_media_folder_nothing_is_swept() -> None:
    assert tasks.sweep_files() == 0


@pytest.mark.django_db(transaction=True)
def test_an_upload_that_fails_leaves_no_file(collection: Collection, media_root: Path) -> None:
    """Though the database is away from then on."""

    def away(*args: Any) -> None:
        raise OperationalError("connection refused")

    def cut(document_ids: list[int], **_: Any) -> None:
        assert len(files_in(media_root)) == 2
        connection.connection.close()
        patch.setattr(connection, "connect", away)
        connection.cursor().execute("SELECT 1")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("documents.tasks.enqueue", cut)
        with pytest.raises(DatabaseError):
            bring(collection, "a.txt", "b.txt")
    assert files_in(media_root) == set()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("outcome", ["done", "lost"])
def test_an_upload_whose_commit_nobody_answered_keeps_its_file_while_it_may_be_there(
    collection: Collection, media_root: Path, outcome: str
) -> None:
    bring(collection, "before.txt")
    with committing(outcome), pytest.raises(DatabaseError):
        bring(collection, "a.txt")
    assert len(files_in(media_root)) == 2
    assert validate().findings == ()
    make_old(media_root)
    assert tasks.sweep_files() == (1 if outcome == "lost" else 0)
    assert files_in(media_root) == set(Document.objects.values_list("file", flat=True))


@pytest.mark.django_db(transaction=True)
def test_a_deletion_whose_commit_nobody_answered_is_carried_out_by_the_sweep(
    collection: Collection, media_root: Path
) -> None:
    bring(collection, "a.txt", "b.txt")
    with committing("done"), pytest.raises(DatabaseError):
        delete_document(document=Document.objects.get(key="b.txt"))
    assert not Document.objects.filter(key="b.txt").exists()
    assert len(files_in(media_root)) == 2
    make_old(media_root)
    assert tasks.sweep_files() == 1
    assert files_in(media_root) == {Document.objects.get(key="a.txt").file.name}


ROOM = 64 * 1024
LARGE = b"All that is to be kept. " * (ROOM // 8)


@contextmanager
def no_room() -> Iterator[None]:
    """No file may become larger than ROOM."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def bring_large(collection: Collection, *, large: bytes = LARGE) -> IngestionRun:
    files = {"a.txt": b"A small one.", "b.txt": large}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in files.items()]
    return ingest_uploads(collection=collection, uploads=uploads)


def paths_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_all_of_an_upload_is_kept_or_nothing(media_root: Path) -> None:
    collection = CollectionFactory()
    with no_room(), pytest.raises(StorageFull, match="no room"):
        bring_large(collection)
    assert paths_in(media_root) == []
    assert not Document.objects.exists()
    assert not IngestionRun.objects.exists()
    assert validate().findings == ()
    assert bring_large(collection).total == 2  # there is room again
    assert sorted(path.stat().st_size for path in paths_in(media_root)) == [12, len(LARGE)]


def test_a_document_keeps_its_file_where_there_is_no_room_for_the_next(media_root: Path) -> None:
    collection = CollectionFactory()
    bring_large(collection, large=b"The first text.")
    before = paths_in(media_root)
    with no_room(), pytest.raises(StorageFull):
        bring_large(collection)
    assert paths_in(media_root) == before
    document = Document.objects.get(key="b.txt")
    with document.file.open("rb") as file:
        assert file.read() == b"The first text."


def test_who_uploads_is_told(media_root: Path) -> None:
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace)
    api = APIClient(raise_request_exception=False)
    api.force_login(member.user)
    with no_room():
        sent = {"collection": collection.slug, "files": ContentFile(LARGE, "b.txt")}
        answer = api.post("/api/v1/documents/", sent, format="multipart")
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
    assert paths_in(media_root) == []
