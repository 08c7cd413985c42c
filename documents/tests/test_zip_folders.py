"""ZIP archives become documents as folders do, and what is hostile in them is named."""

import random
import stat
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from documents import services
from documents.ingestion import pipeline
from documents.ingestion.sources import discover
from documents.models import Collection, Document, IngestionRun
from documents.services import archives, sync_directory
from documents.tests.factories import CollectionFactory, MembershipFactory
from reading.parsers.base import WINDOW_BYTES
from reading.parsers.zip_folder import unpack_zip
from reading.tests.factories_mail import mail
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(slug="archive", default_language="en")


def zipped(members: dict[str, str | bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def ingest(collection: Collection, folder: Path) -> IngestionRun:
    return services.ingest_inline(collection=collection, sources=discover([folder]))


def documents(collection: Collection, folder: Path | str = "") -> dict[str, Document]:
    start = f"{Path(folder).resolve()}/" if folder else ""
    rows = Document.objects.filter(collection=collection, is_current=True)
    return {row.key.removeprefix(start): row for row in rows}


def upload(collection: Collection, members: dict[str, str | bytes]) -> IngestionRun:
    file = SimpleUploadedFile("large.zip", zipped(members))
    return services.ingest_uploads(
        collection=collection, uploads=[services.Upload(name="large.zip", file=file)]
    )


def work_through(archive: int) -> None:
    """What the workers do with an archive, and with the parts that come out of it."""
    while not archives.take_out_parts(archive):
        pass
    ids = list(Document.objects.exclude(status="ready").values_list("pk", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_worker_takes_the_files_out_of_a_large_archive(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "BATCH_PARTS", 20)
    monkeypatch.setattr(archives, "SLICE_SECONDS", 0.0)
    notes: dict[str, str | bytes] = {f"{n:02}.txt": f"Words of note {n}." for n in range(45)}
    run = upload(collection, notes | {"empty.txt": b"", "../out.txt": b"x"})
    assert (run.total, Document.objects.count()) == (1, 1)
    archive = Document.objects.get()
    # In slices, each of which may be the last that a worker does.
    assert archives.take_out_parts(archive.pk) is False
    run.refresh_from_db()
    assert (run.total, run.is_finished) == (21, False)
    work_through(archive.pk)
    run.refresh_from_db()
    assert (run.state, run.total, run.ready, run.failed) == ("partial", 48, 46, 2)
    archive.refresh_from_db()
    assert "unpack_later" not in archive.declared
    assert archives.take_out_parts(archive.pk) is None
    # The same archive without one file.
    del notes["00.txt"]
    run = upload(collection, notes)
    work_through(archive.pk)
    run.refresh_from_db()
    assert (run.state, run.ready, run.skipped) == ("succeeded", 1, 44)
    assert set(documents(collection)) == {"large.zip", *(f"large.zip!/{name}" for name in notes)}


@pytest.mark.django_db(transaction=True)
def test_nothing_comes_out_of_an_archive_whose_run_was_cancelled(
    collection: Collection, media_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "SLICE_SECONDS", 0.0)
    run = upload(collection, {f"{n:02}.txt": f"Words of note {n}." for n in range(120)})
    archive = Document.objects.get()
    assert archives.take_out_parts(archive.pk) is False
    services.cancel_run(run=run)
    assert archives.take_out_parts(archive.pk) is None
    assert not Document.objects.exists()
    assert not [path for path in media_root.rglob("*") if path.is_file()]


def test_files_of_an_archive_are_documents_and_follow_it(
    collection: Collection, tmp_path: Path
) -> None:
    note = mail(attached={"b.txt": b"Words of b."}).as_bytes()
    inner = zipped({"deep/c.md": "# C\n\nWords of c."})
    path = tmp_path / "box.zip"
    path.write_bytes(
        zipped({"a/one.md": "# One", "a/note.eml": note, "in.zip": inner, "a/two.txt": "Two."})
    )
    run = ingest(collection, tmp_path)
    assert (run.ready, run.failed) == (7, 0)
    found = documents(collection, tmp_path)
    assert set(found) == {
        "box.zip",
        "box.zip!/a/note.eml",
        "box.zip!/a/note.eml!/b.txt",
        "box.zip!/a/one.md",
        "box.zip!/a/two.txt",
        "box.zip!/in.zip",
        "box.zip!/in.zip!/deep/c.md",
    }
    assert "- a/one.md" in services.document_text(found["box.zip"]).text
    assert found["box.zip!/a/note.eml!/b.txt"].metadata["mail"]["subject"] == "Boiler"
    assert ingest(collection, tmp_path).skipped == 7
    path.write_bytes(zipped({"a/one.md": "# One, again", "a/two.txt": "Two."}))
    assert (run := ingest(collection, tmp_path)).ready == 2, run.failed
    again = documents(collection, tmp_path)
    assert set(again) == {"box.zip", "box.zip!/a/one.md", "box.zip!/a/two.txt"}
    assert again["box.zip!/a/two.txt"].pk == found["box.zip!/a/two.txt"].pk
    path.rename(tmp_path / "new.zip")
    result = sync_directory(collection=collection, directory=tmp_path, delete=True)
    assert (len(result.renamed), result.new, result.deleted) == (3, [], [])
    services.delete_document(document=documents(collection, tmp_path)["new.zip"])
    assert documents(collection, tmp_path) == {}


def test_files_of_an_uploaded_archive_have_its_access_list(collection: Collection) -> None:
    member = MembershipFactory(workspace=collection.workspace).user
    only = [f"user:{member.pk}"]

    def upload(members: dict[str, str | bytes], **options: list[str]) -> IngestionRun:
        file = SimpleUploadedFile("box.zip", zipped(members))
        uploads = [services.Upload("box.zip", file)]
        return services.ingest_uploads(
            collection=collection, uploads=uploads, user=member, **options
        )

    assert upload({"a.txt": "A.", "in.zip": zipped({"b.txt": "B."})}, access=only).total == 4
    upload({"a.txt": "A.", "in.zip": zipped({"b.txt": "B.", "c.txt": "C."})})
    found = documents(collection)
    assert set(found) == {
        "box.zip",
        "box.zip!/a.txt",
        "box.zip!/in.zip",
        "box.zip!/in.zip!/b.txt",
        "box.zip!/in.zip!/c.txt",
    }
    assert all(document.access == only for document in found.values())

    def page(name: str) -> str:
        client = logged_in(member)
        address = reverse("document", args=[collection.slug, found[name].pk])
        return client.get(address).content.decode()

    def link(name: str) -> str:
        return f'href="{reverse("document", args=[collection.slug, found[name].pk])}"'

    assert link("box.zip!/in.zip") in page("box.zip")
    assert link("box.zip!/in.zip!/c.txt") not in page("box.zip")
    assert link("box.zip!/in.zip") in page("box.zip!/in.zip!/c.txt")
    Document.objects.filter(pk=found["box.zip"].pk).update(access=["user:0"])
    assert link("box.zip") not in page("box.zip!/a.txt")


def test_hostile_archives_are_named_and_nothing_else_stops(
    collection: Collection, tmp_path: Path
) -> None:
    link = zipfile.ZipInfo("link.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        for name in (
            "../out.txt",
            "/abs.txt",
            "C:\\win.txt",
            "good.txt",
            ".hidden",
            "x/.git/a.txt",
        ):
            archive.writestr(name, f"Words of {name}.")
        archive.writestr("__MACOSX/._good.txt", b"\x00\x05\x16\x07")
        archive.writestr("locked.txt", "Words of locked.")
        archive.writestr("torn.txt", "Words of torn.")
    data = bytearray(file.getvalue())
    central = data.rindex(b"PK\x01\x02", 0, data.rindex(b"locked.txt"))
    data[central + 8] |= 1
    data[data.index(b"Words of torn")] ^= 1
    (tmp_path / "odd.zip").write_bytes(data)
    deep = zipped({"x.txt": "Innermost."})
    for level in range(12):
        deep = zipped({f"{level}.zip": deep})
    (tmp_path / "deep.zip").write_bytes(deep)
    (tmp_path / "many.zip").write_bytes(zipped({f"{n}.txt": "" for n in range(20_001)}))
    (tmp_path / "bomb.zip").write_bytes(zipped({"zeros.txt": bytes(20_000_000)}))
    (tmp_path / "half.zip").write_bytes(zipped({"a.txt": "A."})[:60])
    (tmp_path / "none.zip").write_bytes(zipped({}))
    run = ingest(collection, tmp_path)
    failed = dict(run.items.filter(state="failed").values_list("name", "error"))
    for name in ("odd.zip!/../out.txt", "odd.zip!/abs.txt", "odd.zip!/C:/win.txt"):
        assert "points outside the archive" in failed.pop(name)
    assert "link" in failed.pop("odd.zip!/link.txt")
    assert "password" in failed.pop("odd.zip!/locked.txt")
    assert "CRC" in failed.pop("odd.zip!/torn.txt")
    assert "more than 20,000 parts" in failed.pop("many.zip")
    assert "grows too large" in failed.pop("bomb.zip")
    assert "ends too early" in failed.pop("half.zip")
    assert "no files" in failed.pop("none.zip")
    ((name, error),) = failed.items()
    assert name.startswith("deep.zip!/11.zip")
    assert "nested more than 8 levels deep" in error
    found = documents(collection, tmp_path)
    assert {name for name in found if name.startswith("odd")} == {"odd.zip", "odd.zip!/good.txt"}


def test_names_are_decoded_and_none_comes_twice() -> None:
    data = zipped({"Büro/ä.txt": "First.", "Buuro/aa.txt": "Second."})
    # As an old packer writes it: UTF-8 that is not said to be.
    data = data.replace(b"Buuro/aa.txt", "Büro/ä.txt".encode())
    paths = [part.path for part in unpack_zip(data, name="a.zip").parts]
    assert paths == ["Büro/ä (2).txt", "Büro/ä.txt"]


def test_large_archives_are_unpacked_window_by_window() -> None:
    noise = random.Random(1).randbytes(WINDOW_BYTES // 2 - 1000)
    data = zipped({f"{n}.bin": noise for n in range(4)})
    first, later = (unpack_zip(data, name="a.zip", first=first) for first in (0, 2))
    assert [part.data is not None for part in first.parts] == [True, True, False, False]
    assert [part.data is not None for part in later.parts] == [False, False, True, True]
    assert {part.size for part in first.parts} == {len(noise)}
