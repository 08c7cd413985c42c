"""What people come for, done as somebody does who never saw the site: by what stands on the page.

Every step is a link, a button or a field found by its visible name; each task takes few of them.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import PASSWORD, CollectionFactory
from rag.tests.asking import document
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]

KEEPER = "The lighthouse keeper counted seventeen cormorants at dusk."
LOG = """---
title: {title}
language: {language}
year: {year}
---
# {title}

{text}
"""
#: Title, language, year, text.
LOGS = [
    ("Birds of the harbour", "en", 2023, f"Gulls, mostly. {KEEPER} They sat on the rail."),
    ("Boats of the harbour", "en", 2022, "The lighthouse keeper noted nine trawlers at the pier."),
    ("Vögel am Hafen", "de", 2023, "Der Leuchtturm stand im Nebel, und man sah drei Kormorane."),
    ("Schiffe am Hafen", "de", 2022, "Am Leuchtturm lagen zwei Kutter, und Kormorane sah man nie."),
]


@pytest.fixture
def harbour(alice: Membership) -> Collection:
    """Log books in two languages and of two years."""
    collection: Collection = CollectionFactory(
        workspace=alice.workspace, slug="harbour", name="Harbour"
    )
    for title, language, year, text in LOGS:
        said = LOG.format(title=title, language=language, year=year, text=text)
        document(collection, f"{title}.md", said)
    return collection


@pytest.fixture
def page(browser: Browser, live_server: Any, alice: Membership, harbour: Any) -> Iterator[Page]:
    """Alice's window, logged in."""
    visit = Visit(browser, live_server.url, reduced_motion="reduce")
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.log_in("alice")
    yield visit.page
    visit.close()


def search(page: Page, words: str) -> Locator:
    """The hits, the first of which is there."""
    box = page.get_by_role("searchbox", name="Search").first
    box.fill(words)
    box.press("Enter")
    hits = page.get_by_role("region", name="Results").get_by_role("listitem")
    expect(page.get_by_role("heading", name=f"Results for “{words}”")).to_be_attached()
    return hits


def test_find_a_passage_and_open_it_in_its_document(page: Page) -> None:
    search(page, "how many cormorants did the keeper count")
    page.get_by_role("link", name="Birds of the harbour").first.click()

    expect(page.get_by_role("heading", name="Birds of the harbour").first).to_be_visible()
    expect(page.locator(".passage", has_text="seventeen cormorants").first).to_be_in_viewport()
    page.get_by_role("link", name="Back to the results").click()
    expect(page.get_by_role("link", name="Birds of the harbour").first).to_be_visible()


def test_without_javascript_one_logs_in_searches_turns_the_page_and_reads(
    browser: Browser, live_server: Any, harbour: Collection
) -> None:
    for number in range(12):
        document(harbour, f"log-{number}.md", f"# Log {number}\n\nFog over pier {number}.")
    visit = Visit(browser, live_server.url, java_script_enabled=False)
    visit.fill_login("alice", PASSWORD)
    page = visit.page
    box = page.get_by_role("searchbox", name="Search").first
    box.fill("fog over the pier")
    page.get_by_role("button", name="Search", exact=True).first.click()

    titles = page.get_by_role("heading", level=2).get_by_role("link")
    expect(titles).to_have_count(10)
    first = titles.all_inner_texts()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Next").click()
    expect(page.get_by_role("heading", level=2).get_by_role("link").first).to_be_visible()
    second = titles.all_inner_texts()
    assert second
    assert not set(first) & set(second)
    titles.first.click()
    expect(page.locator(".passage").filter(has_text=second[0]).first).to_be_visible()
    visit.close()


def test_restrict_to_a_language_and_a_year(page: Page) -> None:
    search(page, "Leuchtturm Kormorane lighthouse keeper")
    filters = page.get_by_role("complementary", name="Filters")
    filters.get_by_role("link", name="German").click()
    expect(page.get_by_role("link", name="Birds of the harbour")).to_have_count(0)
    filters.get_by_role("link", name="2023").click()

    expect(page.get_by_role("heading", level=2).get_by_role("link")).to_have_text(
        ["Vögel am Hafen"]
    )
    active = page.get_by_role("list", name="Active filters")
    expect(active.get_by_role("listitem").filter(has_text="Remove this filter")).to_have_count(2)
    active.get_by_role("link", name="2023").click()
    expect(page.get_by_role("heading", level=2).get_by_role("link")).to_have_count(2)


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


def test_see_why_a_hit_ranked_first(page: Page) -> None:
    search(page, "seventeen cormorants")
    page.get_by_text("Why?").first.click()

    why = page.get_by_role("table").first
    expect(why).to_be_visible()
    expect(why.get_by_role("rowheader", name="Words")).to_be_visible()
    expect(why.get_by_role("rowheader", name="Meaning")).to_be_visible()
    expect(why).to_contain_text("1")


def test_ask_and_check_a_citation(page: Page) -> None:
    page.get_by_role("link", name="Chat").first.click()
    expect(page.locator("[data-composer][data-ready]")).to_be_visible()
    page.get_by_label("Your question").fill("How many cormorants did the lighthouse keeper count?")
    page.get_by_role("button", name="Ask", exact=True).click()

    turn = page.locator(".turn").last
    expect(turn).to_have_attribute("data-state", "answered")
    expect(turn.locator(".said")).to_contain_text("seventeen")
    turn.locator(".said").get_by_role("link").first.click()
    expect(page.get_by_role("mark").first).to_contain_text("seventeen cormorants")


def test_forget_a_fact(page: Page) -> None:
    page.get_by_role("link", name="Memory").first.click()
    page.get_by_label("Topic").first.fill("Favourite bird")
    page.get_by_label("Value").first.fill("cormorant")
    page.get_by_role("button", name="Remember it").click()
    expect(page.get_by_role("main")).to_contain_text("cormorant")

    page.get_by_role("link", name="Forget: Favourite bird").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("status").first).to_be_visible()
    page.get_by_role("link", name="Memory").first.click()
    expect(page.get_by_role("main")).not_to_contain_text("cormorant")


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


def test_make_a_key_and_call_the_api_with_the_line_that_is_shown(page: Page) -> None:
    page.get_by_text("alice").first.click()
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("my script")
    page.get_by_label("read:").check()
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("button", name="Copy the command").click()
    command = page.evaluate("navigator.clipboard.readText()")

    said = subprocess.run(
        shlex.split(command), capture_output=True, text=True, check=True, timeout=60
    )
    assert '"slug":"harbour"' in said.stdout.replace(" ", "")
