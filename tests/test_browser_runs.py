"""A run in a real Chromium: followed live, cancelled, retried."""

from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest
from django.core.files.base import ContentFile
from playwright.sync_api import Browser, expect

from accounts.models import Membership
from common import sse
from documents.ingestion import pipeline
from documents.models import Document, IngestionRun
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory
from tests.browser import SIZES, Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nightly,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]


@pytest.fixture
def visit(
    browser: Browser, live_server: Any, alice: Membership, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visit]:
    closing = Event()
    monkeypatch.setattr(sse, "shutting_down", closing)
    visit = Visit(browser, live_server.url)
    visit.log_in("alice")
    yield visit
    closing.set()  # streams would ask a database that is gone
    visit.close()


@pytest.fixture
def run(alice: Membership) -> IngestionRun:
    """Three files wait, one of them broken."""
    names = {"one.txt": b"Some words.", "empty.txt": b"", "two.txt": b"More words."}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in names.items()]
    return ingest_uploads(
        collection=CollectionFactory(workspace=alice.workspace), uploads=uploads, user=alice.user
    )


def work(*keys: str) -> None:
    ids = list(Document.objects.filter(key__in=keys).values_list("id", flat=True))
    pipeline.embed_documents(pipeline.parse_documents(ids))


@pytest.mark.parametrize("streams", [8, 0])
def test_a_run_is_followed_by_its_events_or_else_by_asking(
    visit: Visit, run: IngestionRun, streams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "stream_slots", sse.StreamSlots(streams))
    page = visit.page
    with page.expect_response("**/events/") as followed:
        page.goto(f"/runs/{run.pk}/")
    assert followed.value.status == (200 if streams else 503)
    expect(page.locator("#progress")).to_contain_text("0 of 3 files")
    work("one.txt", "empty.txt")
    expect(page.locator("#progress")).to_contain_text("2 of 3 files", timeout=8_000)
    expect(page.get_by_role("button", name="Retry 1 failed")).to_be_visible()
    work("two.txt")
    expect(page.locator("#progress")).to_have_attribute("data-state", "partial", timeout=8_000)
    expect(page.locator("#said")).to_contain_text("2 ready, 0 unchanged, 1 failed")
    expect(page.get_by_role("link", name="Search them")).to_be_visible()
    if not streams:
        assert all("503" in error for error in visit.errors)
        visit.errors.clear()


def test_a_run_is_cancelled_and_its_failure_retried(visit: Visit, run: IngestionRun) -> None:
    page = visit.page
    work("one.txt", "empty.txt")
    page.goto(f"/runs/{run.pk}/")
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.serious_findings() == []
    page.get_by_role("link", name="Cancel the run").click()
    expect(page.get_by_role("main")).to_contain_text("1 waiting file is skipped")
    assert visit.serious_findings() == []
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator("#progress")).to_have_attribute("data-state", "cancelled")
    page.get_by_role("button", name="Retry 1 failed").click()
    expect(page.get_by_role("main")).to_contain_text(f"a retry of run {run.pk}")
    expect(page.locator("#progress")).to_contain_text("0 of 1 file")
    assert visit.errors == []
