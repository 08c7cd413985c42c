"""The disk of uploaded files is full in the middle of one: the kernel really refuses to write."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from rest_framework.test import APIClient

from documents.ingestion.stored_files import StorageFull
from documents.models import Collection, Document, IngestionRun
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.validation import validate

pytestmark = pytest.mark.django_db
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


def bring(collection: Collection, *, large: bytes = LARGE) -> IngestionRun:
    files = {"a.txt": b"A small one.", "b.txt": large}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in files.items()]
    return ingest_uploads(collection=collection, uploads=uploads)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_all_of_an_upload_is_kept_or_nothing(media_root: Path) -> None:
    collection = CollectionFactory()
    with no_room(), pytest.raises(StorageFull, match="no room"):
        bring(collection)
    assert files_in(media_root) == []
    assert not Document.objects.exists()
    assert not IngestionRun.objects.exists()
    assert validate().findings == ()
    assert bring(collection).total == 2  # there is room again
    assert sorted(path.stat().st_size for path in files_in(media_root)) == [12, len(LARGE)]


def test_a_document_keeps_its_file_where_there_is_no_room_for_the_next(media_root: Path) -> None:
    collection = CollectionFactory()
    bring(collection, large=b"The first text.")
    before = files_in(media_root)
    with no_room(), pytest.raises(StorageFull):
        bring(collection)
    assert files_in(media_root) == before
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
    assert files_in(media_root) == []
