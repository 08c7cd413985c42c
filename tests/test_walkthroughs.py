"""What people come for, done as somebody does who never saw the site: by what stands on the page.

Every step is a link, a button or a field found by its visible name; each task takes few of them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import CollectionFactory
from rag.tests.asking import document
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]

LOGS = {
    "Birds of the harbour": "Gulls, mostly. The lighthouse keeper counted seventeen cormorants.",
    "Boats of the harbour": "The lighthouse keeper noted nine trawlers at the pier.",
    "Vögel am Hafen": "Der Leuchtturm stand im Nebel, und man sah drei Kormorane.",
    "Schiffe am Hafen": "Am Leuchtturm lagen zwei Kutter, und Kormorane sah man nie.",
}


@pytest.fixture
def harbour(alice: Membership) -> Collection:
    """Log books in two languages."""
    collection: Collection = CollectionFactory(
        workspace=alice.workspace, slug="harbour", name="Harbour"
    )
    for title, text in LOGS.items():
        document(collection, f"{title}.md", f"# {title}\n\n{text}")
    return collection


@pytest.fixture
def page(browser: Browser, live_server: Any, alice: Membership, harbour: Any) -> Iterator[Page]:
    """Alice's window, logged in."""
    visit = Visit(browser, live_server.url, reduced_motion="reduce")
    visit.log_in("alice")
    yield visit.page
    visit.close()


def search(page: Page, words: str) -> None:
    """Ask from the box that is on every page."""
    box = page.get_by_role("searchbox", name="Search").first
    box.fill(words)
    box.press("Enter")
    expect(page.get_by_role("heading", name=f"Results for “{words}”")).to_be_attached()


@pytest.mark.usefixtures("celery_worker_process")
def test_upload_a_folder_and_watch_it(page: Page, tmp_path: Path) -> None:
    folder = tmp_path / "leaflets"
    (folder / "old").mkdir(parents=True)
    (folder / "tides.md").write_text("# Tides\n\nHigh water was at noon.")
    (folder / "old" / "ropes.txt").write_text("Ropes are kept in the shed.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")

    page.get_by_role("link", name="Documents").first.click()
    page.get_by_role("link", name="Harbour").first.click()
    page.get_by_role("link", name="Upload").first.click()
    page.get_by_label("Choose a folder").set_input_files(folder)
    page.get_by_role("button", name="Upload 3 files").click()

    page.wait_for_url("**/runs/*/")
    expect(page.get_by_role("main")).to_contain_text("2 ready", timeout=60_000)
    expect(page.get_by_role("main")).to_contain_text("1 failed")
    page.get_by_role("link", name="Search them").click()
    search(page, "where are ropes kept")
    expect(page.get_by_role("heading", level=2).get_by_role("link").first).to_have_text("Ropes")


@pytest.mark.usefixtures("celery_worker_process")
def test_judge_hits_and_see_the_evaluation_change(page: Page) -> None:
    question = "lighthouse keeper"
    search(page, question)
    judge(page, "Birds of the harbour", "Good")
    before = measured(page, "1 judgement")

    search(page, question)
    judge(page, "Birds of the harbour", "Bad")
    judge(page, "Schiffe am Hafen", "Good")
    after = measured(page, "2 judgements", other_than=before)

    assert float(after) < float(before)
    if not page.url.endswith("/quality/harbour/"):  # where “Measure now” leads
        page.get_by_role("link", name="Harbour").first.click()
    expect(page.get_by_role("region", name="Question by question")).to_contain_text(question)


def judge(page: Page, title: str, grade: str) -> None:
    hit = page.locator("[data-hit]", has=page.get_by_role("link", name=title, exact=True))
    button = hit.get_by_role("button", name=grade, exact=True)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def measured(page: Page, judgements: str, *, other_than: str = "") -> str:
    """nDCG@10 on the page of quality, as soon as it is there: the page shows it by itself."""
    page.get_by_role("link", name=re.compile("how good")).click()
    expect(page.get_by_role("main")).to_contain_text(judgements)
    measuring = page.get_by_role("button", name="Measure now")
    figure = page.locator(".measures strong").first
    if measuring.is_visible():
        measuring.click()
    if other_than:
        expect(figure).not_to_have_text(other_than, timeout=60_000)
    expect(figure).to_be_visible(timeout=60_000)
    return figure.inner_text()
