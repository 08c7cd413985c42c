"""The site in a real Chromium: with real servers, a real worker and real files."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from rag.tests.asking import document
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]
SENTENCE = "The lighthouse keeper counted seventeen cormorants at dusk."
GUIDE = f"""# Birds of the harbour

What was seen, and by whom.

## At the pier

{"Gulls, mostly, and now and then a heron that nobody had asked for. " * 30}

## At the lighthouse

{SENTENCE} They sat on the rail
until the lamp was lit.

| bird | count |
|:-----|------:|
| cormorant | 17 |
"""


@pytest.fixture
def alice() -> Membership:
    """The owner, who may use the admin."""
    return MembershipFactory(user=UserFactory(username="alice", is_superuser=True))


# --- the main job ------------------------------------------------------------------------------


@pytest.mark.usefixtures("celery_worker_process")
def test_from_a_folder_to_its_passage(visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    (folder / "old").mkdir(parents=True)
    (folder / "old" / "birds.md").write_text(GUIDE)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing more")
    page = visit.page

    page.get_by_role("link", name="Documents").first.click()
    page.get_by_label("Name").fill("Harbour log")
    page.get_by_role("button", name="Create the collection").click()
    page.get_by_label("Choose a folder").set_input_files(folder)
    expect(page.locator("[data-files] li")).to_have_count(2)
    page.get_by_role("button", name="Upload 2 files").click()

    page.wait_for_url("**/runs/*/")
    expect(page.locator("#progress")).to_have_attribute("data-state", "partial", timeout=60_000)
    expect(page.locator("#said")).to_contain_text("1 ready, 0 unchanged, 1 failed")
    first = page.locator("#files tbody tr").first
    expect(first).to_contain_text("broken.pdf")
    expect(first.locator(".why")).not_to_be_empty()
    assert visit.serious_findings() == []

    page.get_by_role("link", name="Search them").click()
    page.get_by_role("searchbox").first.fill("seventeen cormorants")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=seventeen+cormorants*")
    hit = page.locator("[data-hit]").first
    expect(hit.locator("mark").first).to_be_visible()

    page.keyboard.press("ArrowDown")
    expect(hit.get_by_role("link").first).to_be_focused()
    page.keyboard.press("e")
    expect(hit.get_by_role("table")).to_be_visible()
    page.keyboard.press("Enter")

    page.wait_for_url("**#passage")
    expect(page.locator(".passage", has_text="cormorant").first).to_be_in_viewport()
    assert SENTENCE in " ".join(" ".join(page.locator(".text .passage").all_inner_texts()).split())

    page.get_by_role("link", name="Back to the results").click()
    expect(page.get_by_role("searchbox").first).to_have_value("seventeen cormorants")


# --- what holds for all pages -------------------------------------------------------------------


@pytest.fixture
def leaflets(alice: Membership) -> Collection:
    """Enough documents for two results."""
    collection: Collection = CollectionFactory(workspace=alice.workspace, slug="leaflets")
    for number in range(3):
        document = DocumentFactory(collection=collection, title=f"Medicine {number}")
        ChunkFactory(document=document, heading_path=["Possible side effects"], page=number)
    return collection


def test_the_theme_is_remembered(visit: Visit) -> None:
    page = visit.page
    page.emulate_media(color_scheme="light")
    page.goto("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)

    page.get_by_role("button", name="Theme").click()
    dark = page.evaluate(ground)
    assert dark != light

    page.goto("/runs/")
    assert page.evaluate(ground) == dark
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate(ground) == light


def test_dropped_files_are_listed_and_those_too_large_left_out(
    visit: Visit, leaflets: Collection, settings: Any
) -> None:
    settings.MAX_UPLOAD_BYTES = 10
    page = visit.page
    page.goto("/documents/leaflets/upload/")
    transfer = page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["short"], "short.txt"));
            transfer.items.add(new File(["much too long"], "long.txt"));
            return transfer;
        }"""
    )
    page.dispatch_event("main", "dragenter", {"dataTransfer": transfer})
    expect(page.get_by_text("Drop them here")).to_be_visible()
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})

    expect(page.get_by_text("Drop them here")).to_be_hidden()
    expect(page.locator("[data-files] li")).to_have_count(2)
    expect(page.locator("[data-files] .why")).to_contain_text("too large")
    expect(page.get_by_role("button", name="Upload 1 file, 5 bytes")).to_be_visible()
    page.get_by_role("button", name="Remove short.txt").click()
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("No file is chosen")


def test_a_refusal_of_the_site_is_shown_without_losing_the_choice(
    visit: Visit, leaflets: Collection, tmp_path: Path
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("text")
    page = visit.page
    page.goto("/documents/leaflets/upload/")
    page.locator("#id_files").set_input_files([file])
    Membership.objects.update(role="viewer")
    page.get_by_role("button", name="Upload 1 file").click()

    expect(page.get_by_role("alert")).to_contain_text("Ask an owner for the editor role")
    expect(page.locator("[data-files] li")).to_have_count(1)
    visit.errors = [error for error in visit.errors if "403" not in error]


@pytest.mark.nightly
def test_the_page_to_try_the_api_works_under_its_policy(visit: Visit) -> None:
    visit.page.goto("/api/docs/")
    operation = visit.page.locator("#operations-history-changes_list")
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table")).to_contain_text("200")


# --- judging -------------------------------------------------------------------------------------

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


def search(page: Page, words: str) -> None:
    """Ask from the box that is on every page."""
    box = page.get_by_role("searchbox", name="Search").first
    box.fill(words)
    box.press("Enter")
    expect(page.get_by_role("heading", name=f"Results for “{words}”")).to_be_attached()


@pytest.mark.usefixtures("celery_worker_process")
def test_judged_hits_change_the_evaluation(visit: Visit, harbour: Collection) -> None:
    page, question = visit.page, "lighthouse keeper"
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
    expect(measuring).to_be_visible(timeout=60_000)  # a measurement that runs hides it
    measuring.click()
    if other_than:
        expect(figure).not_to_have_text(other_than, timeout=60_000)
    expect(figure).to_be_visible(timeout=60_000)
    return figure.inner_text()
