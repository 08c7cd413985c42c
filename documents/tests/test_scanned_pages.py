"""Documents whose pages are pictures: read page by page, each once, and found afterwards."""

import hashlib
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from PIL import Image

from documents import services
from documents.ingestion import jobs, pipeline
from documents.ingestion.scanned_pages import ClaimLost, PageReading
from documents.ingestion.sources import Source, content_from_bytes
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun, ScannedPage
from documents.run_progress import progress_event
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from reading.tests.factories_pictures import picture_file, receipt_picture
from tests.kit import logged_in, queue_file, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

RECEIPT = picture_file(receipt_picture([("2 x Milchkaffee", "7,80"), ("SUMME", "12,30")]))


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(default_language="de")


def fax(*shades: int) -> bytes:
    """A TIFF of blank pages."""
    pages = [Image.new("L", (40, 40), shade) for shade in shades]
    return picture_file(pages[0], "tiff", save_all=True, append_images=pages[1:])


def source(key: str, data: bytes) -> Source:
    return Source(key=key, name=key, size=len(data), read=lambda: data)


def worked(document: Document) -> Document:
    work_on(document)
    return document


def keep(document: Document, data: bytes, page: int, text: str, **values: Any) -> ScannedPage:
    """A page that was read before."""
    return ScannedPage.objects.create(
        workspace=document.workspace,
        document=document,
        source_sha256=hashlib.sha256(data).hexdigest(),
        page=page,
        engine="PP-OCRv6",
        text=text,
        confidence=values.pop("confidence", 0.99),
        **values,
    )


@pytest.mark.parametrize("is_queued", [True, False])
def test_a_picture_is_found_by_what_stands_in_it(collection: Collection, is_queued: bool) -> None:
    if is_queued:
        document = worked(queue_file(collection, "receipt.png", RECEIPT))
    else:
        run = ingest_inline(collection=collection, sources=[source("receipt.png", RECEIPT)])
        assert (run.state, run.total, run.ready) == ("succeeded", 1, 1)
        document = Document.objects.get()
    assert document.status == "ready"
    assert document.metadata["ocr"]["pages"] == 1
    assert not document.metadata["ocr"]["hard_to_read"]
    assert Chunk.objects.get().text == "2 x Milchkaffee | 7,80\nSUMME | 12,30"
    page = ScannedPage.objects.get()
    assert [word for line in page.lines for word, *_ in line["words"]][-1] == "12,30"
    item = IngestionItem.objects.get()
    assert (item.state, item.pages_read, item.pages_to_read) == ("ready", 1, 1)


def test_pages_that_were_read_before_are_not_read_again(collection: Collection) -> None:
    data = fax(250, 240, 230)
    document = queue_file(collection, "fax.tif", data)
    for page in (1, 2):
        keep(document, data, page, f"Read before: page {page}.")
    worked(document)
    # The third page is blank, and was read now.
    assert list(document.scanned_pages.values_list("page", "text")) == [
        (1, "Read before: page 1."), (2, "Read before: page 2."), (3, ""),
    ]  # fmt: skip
    assert [chunk.page for chunk in document.chunks.all()] == [1]
    assert services.document_text(document).text == "Read before: page 1.\n\nRead before: page 2."


def test_equal_bytes_are_read_once_in_a_workspace(collection: Collection) -> None:
    data = fax(250)
    first = queue_file(collection, "a.tif", data)
    keep(first, data, 1, "Only once.", lines=[{"box": [0, 0, 1, 1], "words": []}])
    other = CollectionFactory(workspace=collection.workspace)
    ingest_inline(collection=other, sources=[source("b.tif", data)])
    copy = ScannedPage.objects.get(document__collection=other)
    assert (copy.text, copy.lines[0]["box"]) == ("Only once.", [0, 0, 1, 1])
    elsewhere = CollectionFactory()
    run = ingest_inline(collection=elsewhere, sources=[source("c.tif", data)])
    assert (run.state, run.failed) == ("failed", 1)
    document = Document.objects.get(collection=elsewhere)
    assert document.error.startswith("No text was recognized in the picture.")


def test_new_bytes_replace_what_was_read_of_the_old_ones(collection: Collection) -> None:
    old, new = fax(250), fax(240)
    document = queue_file(collection, "a.tif", old)
    keep(document, old, 1, "The old page.")
    worked(document)
    queue_file(collection, "a.tif", new)
    keep(document, new, 1, "The new page.")
    assert document.scanned_pages.count() == 2
    worked(document)
    assert document.scanned_pages.get().text == Chunk.objects.get().text == "The new page."


def test_versions_keep_their_own_pages(collection: Collection) -> None:
    for text, data in (("First.", fax(250)), ("Second.", fax(240))):
        document = queue_file(collection, "a.tif", data, policy="new_version")
        keep(document, data, 1, text)
        worked(document)
    rows = Document.objects.order_by("version")
    assert [row.scanned_pages.get().text for row in rows] == ["First.", "Second."]
    services.delete_document(document=rows[1])
    assert not ScannedPage.objects.exists()


def test_whoever_lost_the_document_stops(collection: Collection) -> None:
    document = queue_file(collection, "receipt.png", RECEIPT)
    run = IngestionRun.objects.get()
    token, (document,) = jobs.claim([document.pk])
    content = content_from_bytes(RECEIPT)
    services.cancel_run(run=run)
    assert not Document.objects.exists()
    with pytest.raises(ClaimLost):
        PageReading(document, content, name="a", token=token).read([1])
    assert not ScannedPage.objects.exists()


def test_another_workers_page_is_not_kept(collection: Collection) -> None:
    document = queue_file(collection, "receipt.png", RECEIPT)
    jobs.claim([document.pk])
    reading = PageReading(document, content_from_bytes(RECEIPT), name="a", token=uuid4())
    with pytest.raises(ClaimLost):
        reading.read([1])
    assert not ScannedPage.objects.exists()


def test_too_many_pages_are_refused_before_any_is_read(
    collection: Collection, settings: Any
) -> None:
    settings.OCR_MAX_PAGES = 2
    document = worked(queue_file(collection, "fax.tif", fax(1, 2, 3)))
    assert (document.status, document.error_code) == ("failed", "too_large")
    assert "3 pages that need OCR" in document.error
    assert not ScannedPage.objects.exists()


def test_pages_of_one_document_do_not_hold_back_others(
    collection: Collection, monkeypatch: Any
) -> None:
    """Another one in its message goes before, and whatever comes between two of its pages."""
    monkeypatch.setattr(pipeline, "OCR_SLICE_SECONDS", 0.0)
    scan = queue_file(collection, "fax.tif", fax(250, 240, 230))
    note = queue_file(collection, "note.txt", b"Short.")
    deferred: list[int] = []
    assert pipeline.parse_documents([scan.pk, note.pk], defer=deferred.append) == [note.pk]
    assert deferred == [scan.pk]
    assert not ScannedPage.objects.exists()
    for pages in (1, 2):
        assert not pipeline.parse_documents([scan.pk], defer=deferred.append)
        scan.refresh_from_db()
        assert (scan.claimed_by, scan.attempts, scan.scanned_pages.count()) == (None, 0, pages)
        item = IngestionItem.objects.get(document=scan)
        assert (item.state, item.pages_read, item.pages_to_read) == ("parsing", pages, 3)
    assert deferred == [scan.pk] * 3
    keep(scan, fax(250, 240, 230), 3, "Read.")
    assert pipeline.parse_documents([scan.pk], defer=deferred.append) == [scan.pk]


def test_progress_names_the_page(collection: Collection) -> None:
    document = queue_file(collection, "fax.tif", fax(1, 2, 3))
    run = IngestionRun.objects.get()
    IngestionItem.objects.update(state="parsing", pages_read=1, pages_to_read=3)
    figures = progress_event(run)[1]
    assert (figures["pages_read"], figures["pages_to_read"]) == (1, 3)
    member = MembershipFactory(workspace=document.workspace)
    client = logged_in(member)
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "page 2 of 3" in page


def test_what_is_hard_to_read_says_so_and_the_admin_lists_it(
    collection: Collection, admin_client: Client
) -> None:
    data, clear = fax(250), fax(240)
    for name, content, confidence in (("hard", data, 0.7), ("clear", clear, 0.97)):
        document = queue_file(collection, f"{name}.tif", content)
        keep(document, content, 1, f"The {name} one.", confidence=confidence)
        worked(document)
    hard = Document.objects.get(key="hard.tif")
    assert hard.metadata["ocr"] == {
        "engine": "PP-OCRv6", "pages": 1, "confidence": 0.7, "hard_to_read": True,
    }  # fmt: skip
    member = MembershipFactory(workspace=collection.workspace)
    client = logged_in(member)
    address = reverse("document", args=[collection.slug, hard.pk])
    assert "Low quality" in client.get(address).content.decode()
    listed = admin_client.get("/admin/documents/document/?ocr=hard").content.decode()
    assert "Hard" in listed
    assert "clear.tif" not in listed
