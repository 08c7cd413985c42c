"""Mails with attachments become documents that belong together, and go together."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from documents import services
from documents.ingestion.sources import discover
from documents.models import Collection, Document, IngestionRun
from documents.services import SyncResult, sync_directory
from documents.tests.factories import CollectionFactory, MembershipFactory
from reading.tests.factories_mail import mail, many_attachments, nested, write_mbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="mail", default_language="en")


def ingest(collection: Collection, folder: Path, **options: Any) -> IngestionRun:
    return services.ingest_inline(collection=collection, sources=discover([folder]), **options)


def sync(collection: Collection, folder: Path) -> SyncResult:
    return sync_directory(collection=collection, directory=folder, delete=True)


def documents(collection: Collection, folder: Path) -> dict[str, Document]:
    rows = Document.objects.filter(collection=collection, is_current=True)
    return {row.key.removeprefix(f"{folder.resolve()}/"): row for row in rows}


def put(folder: Path, name: str = "a.eml", **options: Any) -> Path:
    path = folder / name
    path.write_bytes(mail(**options).as_bytes())
    return path


def test_an_attachment_is_a_document_that_knows_its_mail(
    collection: Collection, tmp_path: Path
) -> None:
    inner = mail("An older one.", subject="Older", attached={"c.txt": b"Words of c."})
    put(tmp_path, attached={"b.txt": b"Words of b.", "fwd.eml": inner})
    run = ingest(collection, tmp_path)
    assert (run.total, run.ready, run.failed) == (4, 4, 0)
    found = documents(collection, tmp_path)
    assert set(found) == {"a.eml", "a.eml!/b.txt", "a.eml!/fwd.eml", "a.eml!/fwd.eml!/c.txt"}
    assert found["a.eml"].metadata["attachments"] == ["b.txt", "fwd.eml"]
    assert found["a.eml!/b.txt"].metadata["mail"] == {
        "key": found["a.eml"].key,
        "subject": "Boiler",
        "from": "ada@example.com",
        "date": "2026-03-03T10:00:00+01:00",
    }
    assert found["a.eml!/fwd.eml!/c.txt"].metadata["mail"]["subject"] == "Older"
    assert ingest(collection, tmp_path).skipped == 4


def test_an_attachment_goes_when_the_mail_has_it_no_more_and_with_the_mail(
    collection: Collection, tmp_path: Path
) -> None:
    put(tmp_path, attached={"b.txt": b"Words of b.", "c.txt": b"Words of c."})
    ingest(collection, tmp_path)
    put(tmp_path, attached={"c.txt": b"Words of c."})
    run = ingest(collection, tmp_path)
    assert (run.ready, run.skipped) == (1, 1)
    found = documents(collection, tmp_path)
    assert set(found) == {"a.eml", "a.eml!/c.txt"}
    services.delete_document(document=found["a.eml"])
    assert documents(collection, tmp_path) == {}


def test_an_mbox_is_a_folder_of_mails(collection: Collection, tmp_path: Path) -> None:
    one = mail("First.\n\nFrom here on.", attached={"b.txt": b"Words of b."})
    two = mail("Second.", message_id="", subject="Two")
    three = mail("Third.", message_id="<m3/x@example.com>")
    write_mbox(tmp_path / "in.mbox", [one, two, three, three])
    assert ingest(collection, tmp_path).ready == 4
    found = documents(collection, tmp_path)
    assert {"in.mbox!/m1@example.com.eml", "in.mbox!/m1@example.com.eml!/b.txt"} <= set(found)
    assert "in.mbox!/m3-x@example.com.eml" in found
    text = services.document_text(found["in.mbox!/m1@example.com.eml"]).text
    assert "\nFrom here on." in text
    write_mbox(tmp_path / "in.mbox", [three, two])
    result = sync(collection, tmp_path)
    assert (len(result.unchanged), len(result.deleted), result.new) == (2, 2, [])
    assert len(documents(collection, tmp_path)) == 2


def test_sync_follows_mails_that_are_renamed_and_removed(
    collection: Collection, tmp_path: Path
) -> None:
    path = put(tmp_path, attached={"b.txt": b"Words of b."})
    (tmp_path / "other.txt").write_text("Another file.")
    assert set(sync(collection, tmp_path).new) == {"a.eml", "a.eml!/b.txt", "other.txt"}
    assert len(sync(collection, tmp_path).unchanged) == 3
    path.rename(tmp_path / "z.eml")
    assert sync(collection, tmp_path).renamed == [("a.eml", "z.eml")]
    found = documents(collection, tmp_path)
    assert set(found) == {"z.eml", "z.eml!/b.txt", "other.txt"}
    assert found["z.eml!/b.txt"].metadata["mail"]["key"] == found["z.eml"].key
    assert len(sync(collection, tmp_path).unchanged) == 3
    (tmp_path / "z.eml").write_bytes(b"\nno mail any more")
    assert sync(collection, tmp_path).failed == ["z.eml"]
    assert set(documents(collection, tmp_path)) == set(found)
    (tmp_path / "z.eml").unlink()
    assert set(sync(collection, tmp_path).deleted) == {"z.eml", "z.eml!/b.txt"}


def test_attachments_have_the_access_list_of_their_mail(
    collection: Collection, tmp_path: Path
) -> None:
    member = MembershipFactory(workspace=collection.workspace).user
    only = [f"user:{member.pk}"]
    put(tmp_path, attached={"b.txt": b"Words of b."})
    ingest(collection, tmp_path)
    services.update_document(document=documents(collection, tmp_path)["a.eml"], access=only)
    put(tmp_path, attached={"b.txt": b"Words of b.", "c.txt": b"Words of c."})
    ingest(collection, tmp_path)
    found = documents(collection, tmp_path)
    assert len(found) == 3
    assert all(document.access == only for document in found.values())


def test_nobody_puts_an_attachment_into_a_mail_that_they_may_not_see(
    collection: Collection,
) -> None:
    alice, bob = (MembershipFactory(workspace=collection.workspace).user for _ in range(2))

    def upload(user: Any, attached: dict[str, Any]) -> IngestionRun:
        file = SimpleUploadedFile("a.eml", mail(attached=attached).as_bytes())
        return services.ingest_uploads(
            collection=collection, uploads=[services.Upload("a.eml", file)], user=user
        )

    assert upload(alice, {"b.txt": b"Words of b."}).total == 2
    row = Document.objects.get(collection=collection, key="a.eml")
    services.update_document(document=row, access=[f"user:{alice.pk}"], user=alice)
    run = upload(bob, {"c.txt": b"Words of c."})
    assert (run.total, run.failed) == (2, 2)
    keys = Document.objects.filter(collection=collection).values_list("key", flat=True)
    assert set(keys) == {"a.eml", "a.eml!/b.txt"}
    assert upload(alice, {"c.txt": b"Words of c."}).failed == 0
    keys = Document.objects.filter(collection=collection).values_list("key", flat=True)
    assert set(keys) == {"a.eml", "a.eml!/c.txt"}


@pytest.mark.nightly
def test_hostile_mails_are_named_and_nothing_else_stops(
    collection: Collection, tmp_path: Path
) -> None:
    (tmp_path / "deep.eml").write_bytes(nested(50))
    (tmp_path / "many.eml").write_bytes(many_attachments(1_001).replace(b"Note.", b" "))
    (tmp_path / "noise.msg").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 600)
    put(tmp_path, "good.eml", attached={"photo.bin": b"\x00\x01\x02", "b.txt": b"Words of b."})
    run = ingest(collection, tmp_path)
    failed = dict(run.items.filter(state="failed").values_list("name", "error"))
    deep = [error for name, error in failed.items() if name.startswith("deep.eml!/Level 48.eml!/")]
    assert any("nested more than 8 levels deep" in error for error in deep)
    assert "more than 1,000 attachments" in failed["many.eml!/…"]
    assert "damaged" in failed["noise.msg"]
    assert "good.eml!/photo.bin" in failed
    found = documents(collection, tmp_path)
    assert {"good.eml", "good.eml!/b.txt", "many.eml", "deep.eml"} <= set(found)
