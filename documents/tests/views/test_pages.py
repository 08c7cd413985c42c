"""The real page of a document: who sees it, what is marked on it, and when there is none."""

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from PIL import Image

from accounts.models import Membership
from accounts.tests.keys import client_of_key
from documents.ingestion.sources import Source
from documents.ingestion.stored_files import store_file
from documents.models import Collection, Document, ScannedPage
from documents.page_cache import page_cache
from documents.services import delete_document, ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from documents.tests.views.reading import parse
from reading.parsers import ParseError
from reading.parsers.page_image import render_page
from reading.tests.factories_pdf import finished, page
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root", "cache")]


@pytest.fixture
def cache(settings: Any, tmp_path: Path) -> Path:
    settings.PAGE_CACHE_DIR = tmp_path / "pages"
    return tmp_path / "pages"


def ingested(collection: Collection, name: str, data: bytes) -> Document:
    source = Source(key=name, name=name, size=len(data), read=lambda: data)
    ingest_inline(collection=collection, sources=[source])
    return Document.objects.get(key=name)


@pytest.fixture
def report(alice: Membership) -> Document:
    """Two pages; the second has a sentence on the dues."""
    collection = CollectionFactory(workspace=alice.workspace, slug="reports")
    pdf = page()
    pdf.cell(text="The harbour was closed in March because of the ice.")
    pdf.add_page()
    pdf.cell(text="The dues are forty crowns a day.")
    return ingested(collection, "report.pdf", finished(pdf))


def address(document: Document, number: int = 1) -> str:
    return f"/documents/reports/{document.pk}/pages/{number}/image/"


def test_a_page_is_an_image_of_the_next_width_and_kept_for_the_next_visitor(
    client: Client, report: Document, cache: Path
) -> None:
    answer = client.get(address(report), {"width": 700})

    image = Image.open(BytesIO(answer.content))
    assert (image.format, image.width) == ("WEBP", 800)
    assert answer["Cache-Control"] == "private, no-cache"
    assert [file.name for file in cache.rglob("*.webp")] == ["1-800-0.webp"]
    again = client.get(address(report), {"width": 800}, headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_cached_page_is_shown_to_nobody_who_may_not_see_the_document(
    client: Client, bob: Client, alice: Membership, report: Document
) -> None:
    answer = client.get(address(report))
    stranger = logged_in(MembershipFactory())
    Document.objects.filter(pk=report.pk).update(access=[f"user:{alice.user.pk}"])

    assert client.get(address(report)).status_code == 200
    for other in (bob, stranger):
        headers = {"If-None-Match": answer["ETag"]}
        assert other.get(address(report), headers=headers).status_code == 404


def test_programs_see_pages_too_and_are_told_of_those_that_are_not_there(
    alice: Membership, report: Document
) -> None:
    api = client_of_key(alice, "read")
    path = f"/api/v1/documents/{report.pk}/pages"

    answer = api.get(f"{path}/2/image/", {"width": 160})
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/webp")
    assert api.get(f"{path}/3/image/").status_code == 404
    assert api.get(f"{path}/2/image/", {"width": 99999}).status_code == 400


def test_the_passage_is_marked_on_its_page_with_the_words_to_be_selected(
    client: Client, report: Document
) -> None:
    chunk = report.chunks.get()
    start = chunk.text.index("The dues")
    where = {"chunk": chunk.pk, "quote": f"{start}-{chunk.end}", "words": "crowns"}
    tree = parse(client.get(f"/documents/reports/{report.pk}/", where))

    assert tree.find(".//input[@name='page_number']").get("value") == "2"
    assert [mark.get("class") for mark in tree.iterfind(".//rect")] == ["mark", "found"]
    line = tree.find(".//svg/text").text_content().split()
    assert line == ["The", "dues", "are", "forty", "crowns", "a", "day."]
    assert "The dues are forty crowns a day." in tree.find(".//figure/img").get("alt")
    assert tree.find(".//a[@rel='prev']").get("href").endswith("page_number=1#page")


def test_without_the_file_that_was_read_no_page_is_shown_and_the_text_is(
    client: Client, report: Document
) -> None:
    with report.file.storage.open(report.file.name, "wb") as file:
        file.write(finished(page()))
    answer = client.get(address(report))
    assert answer["Content-Type"] == "image/svg+xml"
    tree = parse(client.get(f"/documents/reports/{report.pk}/"))
    assert tree.find(".//figure") is None
    assert "no longer the one that the text is from" in tree.text_content()
    assert "forty crowns" in tree.find(".//article").text_content()

    Document.objects.filter(pk=report.pk).update(file="")
    tree = parse(client.get(f"/documents/reports/{report.pk}/"))
    assert tree.find(".//*[@id='page']") is None


def test_the_pages_go_with_the_document_and_the_longest_unseen_first(
    client: Client,
    report: Document,
    cache: Path,
    settings: Any,
    django_capture_on_commit_callbacks: Any,
) -> None:
    client.get(address(report))
    client.get(address(report, 2))
    assert len(list(cache.rglob("*.webp"))) == 2
    settings.PAGE_CACHE_BYTES = 1
    page_cache.trim()
    assert not list(cache.rglob("*.webp"))

    settings.PAGE_CACHE_BYTES = 10**9
    client.get(address(report))
    with django_capture_on_commit_callbacks(execute=True):
        delete_document(document=report)
    assert not list(cache.rglob("*"))


def test_words_of_a_scan_on_its_side_are_marked_on_the_upright_page(
    client: Client, alice: Membership
) -> None:
    """A receipt that was put in turned by a quarter, as OCR reads it."""
    collection = CollectionFactory(workspace=alice.workspace, slug="reports")
    document = ingested(collection, "receipt.txt", b"Total 6.50 EUR")
    picture = BytesIO()
    Image.new("RGB", (300, 200), "white").save(picture, "PNG")
    sha256 = hashlib.sha256(picture.getvalue()).hexdigest()
    document.media_type, document.source_sha256 = "image/png", sha256
    document.save()
    store_file(document, BytesIO(picture.getvalue()))
    ScannedPage.objects.create(
        workspace=alice.workspace,
        document=document,
        source_sha256=sha256,
        page=1,
        engine="test",
        text="Total 6.50 EUR",
        confidence=0.99,
        rotation=90,
        lines=[
            {
                "box": [0.4, 0.5, 0.5, 0.9],
                "confidence": 0.99,
                "words": [
                    ["Total", 0.4, 0.75, 0.5, 0.9],
                    ["6.50", 0.4, 0.6, 0.5, 0.7],
                    ["EUR", 0.4, 0.5, 0.5, 0.58],
                ],
            }
        ],
    )
    chunk = document.chunks.get()
    tree = parse(client.get(f"/documents/reports/{document.pk}/", {"chunk": chunk.pk}))

    (mark,) = tree.iterfind(".//rect")
    # As wide as the word's height on the page that lies on its side, from its foot.
    assert 80 < float(mark.get("x")) < 105
    assert 390 < float(mark.get("width")) < 440
    image = Image.open(BytesIO(client.get(address(document)).content))
    assert (image.width, image.height) == (200, 300)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "AVIF"])
def test_pictures_of_every_format_are_rendered(kind: str) -> None:
    picture = BytesIO()
    Image.new("RGB", (300, 200), "white").save(picture, kind)

    image = Image.open(BytesIO(render_page(picture.getvalue(), page=1, width=160)))
    assert image.size == (160, 107)
    with pytest.raises(ParseError, match="cannot be shown"):
        render_page(picture.getvalue()[:12], page=1, width=160)
