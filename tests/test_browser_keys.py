"""The page of API keys in a real Chromium: made, copied, tried, revoked."""

import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from accounts.api_keys import authenticate_key
from accounts.models import ApiKey, Membership
from accounts.tests.keys import client_with
from tests.browser import Visit

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def visit(browser: Browser, live_server: Any, alice: Membership) -> Iterator[Visit]:
    visit = Visit(browser, live_server.url)
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.log_in("alice")
    yield visit
    visit.close()


def make_one(visit: Visit) -> None:
    """Through the form; its secret is shown afterwards."""
    page = visit.page
    page.goto("/keys/")
    if not page.get_by_label("Name").is_visible():
        page.get_by_text("Create a key").click()
    page.get_by_label("Name").fill("nightly import")
    page.get_by_label("read:").check()
    page.get_by_label("chat:").check()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name="“nightly import” is created")).to_be_visible()


def test_a_key_is_found_made_copied_and_revoked(visit: Visit, alice: Membership) -> None:
    page = visit.page
    page.locator(".rail summary").click()
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()

    make_one(visit)
    page.get_by_role("button", name="Copy the secret").click()
    expect(page.get_by_role("button", name="Copied the secret")).to_be_visible()
    secret = page.evaluate("navigator.clipboard.readText()")
    assert authenticate_key(secret) == ApiKey.objects.get()
    assert client_with(secret).get("/api/v1/collections/").status_code == 200
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_role("button", name="Copied the command")).to_be_visible()
    command = page.evaluate("navigator.clipboard.readText()")
    assert command.startswith(f"curl -H 'Authorization: Bearer {secret}' '{visit.site}/api/v1/")
    said = subprocess.run(
        shlex.split(command), capture_output=True, text=True, check=True, timeout=60
    )
    assert '"query"' in said.stdout

    page.get_by_role("link", name="Revoke nightly import").click()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("status")).to_contain_text("is revoked")
    assert authenticate_key(secret) is None
    assert not visit.errors
    assert not visit.outside
