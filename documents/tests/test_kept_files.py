"""Files that commands keep: of what is more than its text, once, while the document is there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documents.ingestion import jobs, pipeline
from documents.ingestion.sources import Source
from documents.models import Collection, Document, IngestionRun
from documents.page_images import with_pages
from documents.services import (
    cancel_run,
    delete_document,
    ingest_inline,
    reingest_documents,
    sync_directory,
)
from documents.tests.factories import CollectionFactory
from reading.tests.factories_pdf import finished, page

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(default_language="en")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A PDF and its text."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "dues.pdf").write_bytes(pdf("The dues are forty crowns a day."))
    (folder / "dues.txt").write_text("The dues are forty crowns a day.")
    return folder


def pdf(text: str) -> bytes:
    document = page()
    document.cell(text=text)
    return finished(document)


def source(key: str, data: bytes) -> Source:
    return Source(key=key, name=key, size=len(data), read=lambda: data)


def files(folder: Path) -> dict[str, bytes]:
    """What is stored, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_what_has_pages_is_kept_once_and_follows_its_directory(
    collection: Collection, folder: Path, media_root: Path
) -> None:
    sync_directory(collection=collection, directory=folder)
    document = Document.objects.get(source="dues.pdf")
    assert files(media_root) == {document.file.name: (folder / "dues.pdf").read_bytes()}
    assert with_pages(list(Document.objects.values_list("pk", flat=True))) == {document.pk}
    before = document.file.name
    # Neither what is unchanged nor what is cut anew is stored again.
    assert len(sync_directory(collection=collection, directory=folder).unchanged) == 2
    ingest_inline(
        collection=collection,
        sources=[source(document.key, (folder / "dues.pdf").read_bytes())],
        policy="overwrite",
    )
    document.refresh_from_db()
    assert list(files(media_root)) == [before] == [document.file.name]

    (folder / "dues.pdf").write_bytes(pdf("The dues are fifty crowns a day."))
    sync_directory(collection=collection, directory=folder)
    document.refresh_from_db()
    assert files(media_root) == {document.file.name: (folder / "dues.pdf").read_bytes()}
    (folder / "dues.pdf").unlink()
    sync_directory(collection=collection, directory=folder, delete=True)
    assert files(media_root) == {}


def test_versions_and_links_have_files_of_their_own(
    collection: Collection, media_root: Path
) -> None:
    first, second = pdf("First."), pdf("Second.")
    for data in (first, second):
        ingest_inline(collection=collection, sources=[source("a.pdf", data)], policy="new_version")
    run = ingest_inline(collection=collection, sources=[source("b.pdf", second)], store_once=True)
    assert run.duplicates == 1
    assert sorted(files(media_root).values()) == sorted([first, second, second])
    delete_document(document=Document.objects.get(key="a.pdf", is_current=True))
    link = Document.objects.get()
    assert files(media_root) == {link.file.name: second}
    assert with_pages([link.pk]) == {link.pk}


def test_another_file_in_its_place_is_kept_or_not_as_its_type_asks(
    collection: Collection, media_root: Path
) -> None:
    ingest_inline(collection=collection, sources=[source("a", pdf("With a page."))])
    ingest_inline(collection=collection, sources=[source("a", b"Without one.")])
    assert files(media_root) == {}
    assert not Document.objects.get().file


def test_nothing_is_stored_of_a_file_whose_run_was_cancelled_meanwhile(
    collection: Collection, media_root: Path, monkeypatch: Any
) -> None:
    def cancelled(run_id: int) -> None:
        if files(media_root):
            raise jobs.RunCancelled

    monkeypatch.setattr(jobs, "lock_open_run", cancelled)
    ingest_inline(collection=collection, sources=[source("a.pdf", pdf("Too late."))])
    assert files(media_root) == {}
    assert not Document.objects.exists()


def test_workers_go_on_with_what_a_command_had_begun(
    collection: Collection, monkeypatch: Any
) -> None:
    def killed(groups: Iterator[Any], **options: Any) -> None:
        next(groups)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "load_groups", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest_inline(collection=collection, sources=[source("a.pdf", pdf("Half way."))])
    document = Document.objects.get()
    assert document.status == Document.Status.PROCESSING
    pipeline.embed_documents(pipeline.parse_documents([document.pk]))
    document.refresh_from_db()
    assert document.status == Document.Status.READY
    assert with_pages([document.pk])
    assert IngestionRun.objects.get().state == IngestionRun.State.SUCCEEDED


def test_who_cancels_reading_again_keeps_the_file(collection: Collection, media_root: Path) -> None:
    data = pdf("As it was.")
    ingest_inline(collection=collection, sources=[source("a.pdf", data)])
    cancel_run(run=reingest_documents(documents=[Document.objects.get()]).runs[0])
    document = Document.objects.get()
    assert document.status == Document.Status.READY
    assert files(media_root) == {document.file.name: data}
    assert with_pages([document.pk])
