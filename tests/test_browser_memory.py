"""The pages of memory in a real Chromium: read, corrected, searched, forgotten, erased."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, expect

from accounts.models import Membership
from memory import services
from memory.models import Context, ExtractionItem, Pruning
from memory.scopes import UserScope, account_id
from memory.tests.factories import make_scope, remember
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nightly,
    pytest.mark.django_db(transaction=True),
]

LONG = "w" * 200
HOSTILE = f"a/b\"'><img src=x onerror=alert(1)> \u202egnp.exe אבג {LONG}"[:255]


@pytest.fixture
def scope(alice: Membership) -> UserScope:
    """Alice's memory, with something on each page."""
    scope = UserScope(alice.workspace.pk, account_id(alice.user))
    now = timezone.now()
    for number in range(30):
        said = f"Turn {number} about the allotment and its plums"
        remember(scope, said, f"Answer {number}. {LONG}", at=now - timedelta(hours=7 * number))
    source = Context.objects.latest("pk")
    for age, city in [(900, "Lisbon"), (400, "Munich"), (30, "Berlin")]:
        at = now - timedelta(days=age)
        services.set_fact(scope=scope, key="home_city", value=city, at=at, source=source)
    for number in range(24):
        services.set_fact(scope=scope, key=f"note_{number}", value=f"{number} {LONG}")
    services.set_fact(scope=scope, key="car", value="a red one")
    services.clear_fact(scope=scope, key="car")
    whose: dict[str, Any] = {"workspace": alice.workspace, "user_id": scope.user_id}
    waiting = [{"content": f"I live in {LONG}", "at": now.isoformat()}]
    for state in ("dead", "running", "waiting"):
        ExtractionItem.objects.create(
            **whose, key=f"{state} {LONG}", state=state, messages=waiting, error=f"No. {LONG}"
        )
    Pruning.objects.create(**whose, reason="user", rows=12, bytes=2048, until=now)
    services.set_fact(scope=make_scope(HOSTILE, workspace=alice.workspace), key="a", value=HOSTILE)
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
