"""The real page of a document in a real Chromium: turned by key, marked, and on a phone."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import Membership
from documents.ingestion.sources import Source
from documents.models import Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory
from reading.tests.factories_pdf import finished, page, prose
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nightly,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root", "report"),
]


@pytest.fixture
def report(alice: Membership, settings: Any, tmp_path: Path) -> Document:
    """Two pages of Alice's; on the second, the last line is on the dues."""
    settings.PAGE_CACHE_DIR = tmp_path / "pages"
    collection = CollectionFactory(workspace=alice.workspace, slug="papers", name="Papers")
    pdf = page()
    prose(pdf, 6)
    pdf.add_page()
    prose(pdf, 6)
    pdf.cell(text="The dues are forty crowns a day.")
    data = finished(pdf)
    source = Source(key="report.pdf", name="report.pdf", size=len(data), read=lambda: data)
    ingest_inline(collection=collection, sources=[source])
    return Document.objects.get()


def test_a_hit_opens_the_page_with_its_words_marked_and_keys_turn_it(visit: Visit) -> None:
    window = visit.page
    window.goto("/?q=crowns")
    thumbnail = window.locator(".hit .thumb img").first
    expect(thumbnail).to_have_js_property("complete", True)
    assert thumbnail.evaluate("image => image.naturalWidth") == 160
    window.locator(".hit h2 a").first.click()

    shown = window.get_by_role("group", name="Page 2 of 2")
    expect(shown).to_be_visible()
    found = window.locator("#page rect.found")
    expect(found).to_have_count(1)
    expect(found).to_be_in_viewport()
    expect(window.locator("#page [role=status]")).to_contain_text("Marked on page 2")
    # The words over the picture are those that are copied, with spaces.
    copied = window.evaluate(
        "() => { getSelection().selectAllChildren(document.querySelector('#page figure svg'));"
        " return getSelection().toString(); }"
    )
    assert "The dues are forty crowns a day." in " ".join(copied.split())
    assert visit.serious_findings() == []

    shown.focus()
    window.keyboard.press("ArrowLeft")
    expect(window.get_by_role("group", name="Page 1 of 2")).to_be_focused()
    window.keyboard.press("PageDown")
    expect(window.get_by_role("group", name="Page 2 of 2")).to_be_focused()
    window.get_by_role("button", name="Larger").click()
    assert shown.evaluate("sheet => sheet.scrollWidth > sheet.clientWidth")
    expect(window.get_by_role("button", name="Fit width")).to_be_visible()

    window.set_viewport_size({"width": 390, "height": 844})
    expect(window.get_by_role("article", name="Text")).to_be_hidden()
    window.locator("[data-view=text]").click()
    expect(window.get_by_role("article", name="Text")).to_be_visible()
    expect(shown).to_be_hidden()
    assert not visit.scrolls_sideways()
    assert (visit.errors, visit.outside) == ([], [])
