"""The pages of memory in a real Chromium: read, corrected, searched, forgotten, erased."""

from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from accounts.models import Membership
from memory.scopes import UserScope, account_id
from memory.tests.factories import HOSTILE, fill_pages
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nightly,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def scope(alice: Membership) -> UserScope:
    """Alice's memory, with something on each page."""
    scope = UserScope(alice.workspace.pk, account_id(alice.user))
    fill_pages(scope, alice.workspace, turns=30, notes=24)
    return scope


@pytest.mark.parametrize("scripts", [True, False])
def test_a_fact_from_its_first_value_to_forgetting(
    browser: Browser, live_server: Any, alice: Membership, *, scripts: bool
) -> None:
    visit = Visit(browser, live_server.url, java_script_enabled=scripts)
    visit.log_in("alice")
    page = visit.page
    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_role("heading", name="The memory is empty")).to_be_visible()

    for city in ("Munich", "Berlin"):
        if page.locator("#new:not([open])").count():
            page.get_by_text("Add or correct a fact").click()
        page.get_by_label("Topic").fill("home city")
        page.get_by_label("Value").fill(city)
        page.get_by_role("button", name="Remember it").click()
        expect(page.get_by_role("status").first).to_contain_text(f"“{city}”")
    row = page.locator(".fact")
    expect(row.locator(".value")).to_have_text("Berlin")
    row.get_by_text("1 former value").click()
    expect(row.get_by_text("Munich")).to_be_visible()

    page.get_by_role("button", name="No longer true: Home city").click()
    expect(page.get_by_role("status").first).to_contain_text("no longer true")
    expect(row).to_have_count(0)
    page.get_by_role("link", name="No longer true").click()
    page.get_by_role("link", name="Forget: Home city").click()
    expect(page.get_by_role("main")).to_contain_text("permanently deletes all its 2 values")
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("heading", name="The memory is empty")).to_be_visible()
    visit.close()


def test_the_keyboard_reaches_a_search_and_what_it_found(visit: Visit, scope: UserScope) -> None:
    page = visit.page
    page.goto("/memory/contexts/")
    page.get_by_label("Search in conversations").focus()
    page.keyboard.type("allotment plums turn 7")
    page.keyboard.press("Enter")
    page.wait_for_url("**find=allotment*")
    title = page.locator(".turn h3 a").first
    title.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/memory/contexts/*/")
    expect(page.get_by_role("article")).to_contain_text("allotment and its plums")


def test_everything_is_exported_and_erased(visit: Visit, scope: UserScope) -> None:
    page = visit.page
    page.goto("/memory/storage/")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export everything").click()
    assert download.value.suggested_filename.endswith(".jsonl")
    kept = download.value.path().read_text()
    assert "Lisbon" in kept
    assert HOSTILE not in kept

    page.get_by_role("link", name="Erase everything").click()
    page.get_by_label("Word").fill("erase")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_role("status").first).to_contain_text("Facts: 28")
    expect(page.get_by_role("heading", name="The memory is empty")).to_be_visible()
