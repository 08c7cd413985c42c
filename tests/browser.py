"""Driving a real Chromium: what it said, what it asked for, what it weighs, what axe finds."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Response,
    Route,
    expect,
    sync_playwright,
)

from accounts.models import User

# The shell first: the same browser without its windows and menus, which need as much work again.
PROGRAMS = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)
# Without a sandbox, because tests may run as root; without anything that calls home.
ARGUMENTS = [
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCREENSHOTS = settings.VAR_DIR / "screenshots"
SIZES = {390: 844, 820: 1180, 1440: 900}
SCHEMES = ("light", "dark")

# The default of five seconds is too short where all cores are busy.
expect.set_options(timeout=30_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser; a test without one fails and says how to get it."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail(
            "No Chromium on the PATH. Run scripts/chromium, which `make test` does, or install it"
            " (Debian: apt-get install chromium-headless-shell)."
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


#: Requests that wait. Playwright keeps a task for each; one that no answer ends would be destroyed
#: in the midst of whatever runs when Python next looks for garbage.
_HELD: list[Route] = []


def hold(page: Page, address: str) -> None:
    """Answer no request for the address until the window is closed."""
    # A method of a list cannot carry the mark that Playwright puts on a handler.
    page.route(address, lambda route: _HELD.append(route))  # noqa: PLW0108


class Visit:
    """One person's browser window on the site, and everything that went wrong in it."""

    def __init__(self, browser: Browser, site: str, **options: Any) -> None:
        self.site = site
        self.context: BrowserContext = browser.new_context(base_url=site, **options)
        self.context.set_default_timeout(30_000)
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.context.on("request", lambda request: self._note_request(request.url))
        self.context.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.context.on("weberror", lambda error: self.errors.append(str(error.error)))
        self.page: Page = self.context.new_page()

    def _note_request(self, url: str) -> None:
        if not url.startswith((self.site, "data:", "blob:")):
            self.outside.append(url)

    def log_in(self, username: str) -> None:
        """Show the first page to somebody who is logged in; the form has tests of its own."""
        self.begin_session(User.objects.get(username=username))
        self.page.goto("/")

    def begin_session(self, user: User) -> None:
        """As the login form would."""
        client = Client()
        client.force_login(user)
        cookie = client.cookies["sessionid"].value
        self.context.add_cookies([{"name": "sessionid", "value": cookie, "url": self.site}])

    def fill_login(self, username: str, password: str) -> None:
        """Log in through the form, as a person does."""
        self.page.goto("/login/")
        self.page.get_by_label("Username").fill(username)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(lambda url: "/login/" not in url)

    def serious_findings(self) -> list[str]:
        """What axe calls serious or critical on the page that is shown."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{entry['id']}: {node['target']} {node['failureSummary']}"
            for entry in found
            if entry["impact"] in {"serious", "critical"}
            for node in entry["nodes"]
        ]

    def scrolls_sideways(self) -> bool:
        """Whether the page is wider than its window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def weight(self, path: str) -> int:
        """Bytes of a page and everything it loads, uncompressed and with an empty cache.

        Without streams of events, which have no end.
        """
        bodies: list[int] = []
        page = self.context.new_page()
        page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})

        def weigh(response: Response) -> None:
            if response.request.resource_type != "eventsource":
                bodies.append(len(response.body()))

        page.on("response", weigh)
        page.goto(path, wait_until="networkidle")
        page.close()
        return sum(bodies)

    def leave(self) -> None:
        """Close the window, whatever went wrong in it."""
        while _HELD:
            with suppress(Error):  # the page itself may have given it up
                _HELD.pop().abort()
        self.context.close()

    def close(self) -> None:
        """Close the window; nothing may have gone wrong in it."""
        self.leave()
        assert self.errors == []
        assert self.outside == []
