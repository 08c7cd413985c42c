"""Searching in a real Chromium: without page loads, by keyboard, and without JavaScript."""

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline
from documents.tests.factories import PASSWORD, ChunkFactory, CollectionFactory
from search.models import Judgement, SavedSearch
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root", "papers"),
]


@pytest.fixture
def papers(alice: Membership) -> Collection:
    """Twelve papers on otters, of two years, each by another author."""
    collection = CollectionFactory(
        workspace=alice.workspace,
        slug="papers",
        name="Papers",
        default_language="en",
        facets=["author"],
    )
    sources = [
        text_source(
            f"{n}.txt",
            f"Otters were counted at river {n}.",
            title=f"Paper {n:02}",
            metadata={"author": f"Author {n}", "year": 2020 + n % 2},
        )
        for n in range(12)
    ]
    ingest_inline(collection=collection, sources=sources)
    first = collection.documents.get(title="Paper 00")
    ChunkFactory(
        document=first,
        ordinal=1,
        text="Elsewhere, it is told, there may be otters too; nobody went.",
        heading_path=["Results"],
    )
    return collection


def asked(page: Page, question: str = "otters") -> None:
    page.get_by_role("searchbox", name="Search").first.fill(question)
    page.keyboard.press("Enter")
    expect(page.locator("[data-hit]").first).to_be_visible()


def loads(page: Page) -> list[str]:
    """Pages that the browser itself loads from now on."""
    seen: list[str] = []
    # A method of a list cannot carry the mark that Playwright puts on a listener.
    page.on("domcontentloaded", lambda page: seen.append(page.url))
    return seen


def test_results_change_in_their_place_and_the_back_button_goes_back(visit: Visit) -> None:
    page = visit.page
    page.goto("/")
    loaded = loads(page)
    asked(page)
    expect(page).to_have_url(f"{visit.site}/?q=otters")
    expect(page).to_have_title("otters · ragsite")
    expect(page.locator("[data-said]")).to_contain_text("12 documents")

    page.get_by_role("link", name="2021 6").click()
    expect(page.locator(".summary")).to_contain_text("6 documents")
    expect(page.get_by_role("link", name="2021 6")).to_be_focused()
    expect(page.locator(".searchbox [name=filter]")).to_have_value("dated=2021")
    page.get_by_role("link", name="Words").click()
    expect(page).to_have_url(f"{visit.site}/?q=otters&mode=lexical&filter=dated%3D2021")

    page.go_back()
    expect(page.get_by_role("link", name="Hybrid")).to_have_attribute("aria-current", "true")
    page.go_back()
    expect(page.locator(".summary")).to_contain_text("12 documents")
    expect(page.locator(".searchbox [name=filter]")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("heading", name="What are you looking for?")).to_be_visible()
    page.go_forward()
    expect(page.locator("[data-hit]")).to_have_count(10)
    assert loaded == []

    page.reload()
    expect(page.locator(".summary")).to_contain_text("12 documents")


def test_the_next_page_begins_at_its_top_and_going_back_finds_the_place(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters&sort=title")
    page.locator(".pages").scroll_into_view_if_needed()
    place = page.evaluate("scrollY")
    assert place > 0
    page.get_by_role("link", name="Next").click()
    expect(page.locator("[data-hit]")).to_have_count(2)
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator("[data-hit]")).to_have_count(10)
    assert page.evaluate("scrollY") == place


def test_a_slow_search_shows_that_it_goes_on_and_a_newer_one_replaces_it(visit: Visit) -> None:
    page = visit.page
    held: list[Route] = []
    page.route("**/?q=slow*", lambda route: held.append(route))  # noqa: PLW0108 - see above
    page.goto("/")
    page.get_by_role("searchbox").first.fill("slow")
    page.keyboard.press("Enter")
    expect(page.locator("#page[aria-busy=true] .waiting")).to_be_visible()
    asked(page)
    expect(page).to_have_url(f"{visit.site}/?q=otters")
    assert len(held) == 1
    held[0].abort()


def test_a_site_that_does_not_answer_says_so_and_can_be_asked_again(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters")
    page.route("**/?q=river*", lambda route: route.abort())
    page.get_by_role("searchbox").first.fill("river")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The site does not respond")
    page.unroute("**/?q=river*")
    page.get_by_role("link", name="Search again").click()
    expect(page.locator("[data-hit]").first).to_be_visible()
    visit.errors = [error for error in visit.errors if "ERR_FAILED" not in error]


def test_hits_are_judged_without_leaving_them(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters&sort=title")
    hit = page.locator("[data-hit]").first
    hit.hover()
    hit.get_by_role("button", name="Good").click()
    expect(hit.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "true")
    expect(hit.get_by_role("button", name="Good")).to_be_focused()
    expect(page.locator("[data-golden]")).to_contain_text("1 question judged here so far")
    assert Judgement.objects.get().document.title == "Paper 00"

    page.keyboard.press("Enter")
    expect(hit.get_by_role("button", name="Good")).to_have_attribute("aria-pressed", "false")
    assert not Judgement.objects.exists()


def test_further_passages_open_in_their_place(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters&sort=title")
    hit = page.locator("[data-hit]").first
    hit.get_by_role("link", name="1 more passage").click()
    expect(hit.locator(".further [data-hit]")).to_have_count(1)
    expect(hit.locator(".further").get_by_role("link", name="Results")).to_be_visible()
    assert visit.serious_findings() == []
    hit.get_by_role("link", name="1 more passage").click()
    expect(hit.locator(".further")).to_be_hidden()


def test_a_value_is_found_by_typing_and_chosen(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters")
    page.get_by_label("Find a value: Author").press_sequentially("author 11")
    values = page.locator("section", has_text="Author").locator("ul").first.get_by_role("link")
    expect(values).to_have_count(1)
    values.click()
    expect(page.locator("[data-hit]")).to_have_count(1)
    expect(page.locator(".chips")).to_contain_text("Author Author 11")


def test_keys_move_explain_find_similar_and_turn_the_page(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters&sort=title")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Paper 01", exact=True)).to_be_focused()
    page.keyboard.press("e")
    expect(page.locator("[data-hit]").nth(1).get_by_role("table")).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("[data-hit]")).to_have_count(2)
    page.keyboard.press("p")
    expect(page.locator("[data-hit]")).to_have_count(10)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("finds similar passages")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("s")
    page.wait_for_url("**/similar/?chunk=*")
    expect(page.get_by_role("heading", name="Similar passages")).to_be_visible()
    assert visit.serious_findings() == []


def test_a_search_is_saved_and_found_again(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=otters&filter=year%3D2021")
    page.locator("summary[aria-label='Saved searches']").click()
    page.get_by_label("Save this search").fill("Otters of 2021")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("“Otters of 2021” is saved.")
    assert SavedSearch.objects.get().parameters == "q=otters&filter=year%3D2021"

    page.goto("/")
    page.locator("summary[aria-label='Saved searches']").click()
    page.get_by_role("link", name="Otters of 2021").click()
    expect(page.locator(".summary")).to_contain_text("6 documents")
    page.locator("summary[aria-label='Saved searches']").click()
    page.get_by_role("link", name="Rename or delete").click()
    page.get_by_role("button", name="Delete Otters of 2021").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status").first).to_contain_text("is saved")


def test_without_javascript_everything_leads_on(
    browser: Browser, live_server: Any, papers: Collection
) -> None:
    visit = Visit(
        browser,
        live_server.url,
        java_script_enabled=False,
        viewport={"width": 390, "height": 844},
    )
    visit.fill_login("alice", PASSWORD)
    page = visit.page
    page.get_by_role("searchbox").fill("otters")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("[data-hit]")).to_have_count(10)
    page.get_by_role("link", name="Filters").click()
    page.get_by_role("link", name="2021 6").click()
    expect(page.locator("[data-hit]")).to_have_count(6)
    page.get_by_text("Best first").first.click()
    page.get_by_role("link", name="By title").click()
    expect(page.locator("[data-hit] h2").first).to_have_text("Paper 01")
    page.get_by_role("button", name="Best", exact=True).first.click()
    expect(page.get_by_role("status").first).to_contain_text("is judged: best")
    page.goto("/?q=otters&sort=title")
    page.get_by_role("link", name="Next").click()
    expect(page.locator("[data-hit]")).to_have_count(2)
    page.locator("[data-hit] h2 a").first.click()
    expect(page.locator("#passage")).to_be_visible()
    visit.close()
