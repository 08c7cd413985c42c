"""What tests of whole pages share."""

import os
from collections.abc import Iterator
from pathlib import Path
from time import time
from typing import Any

import pytest
from playwright.sync_api import Browser

from accounts.models import Membership
from documents.tests.factories import MembershipFactory
from tests.access.report import SUMMARY
from tests.browser import Visit, chromium

_BEGAN = time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Tell whom the walk through all doors saw let in, if this run made it and nothing failed:
    what failed is not to be looked for above it."""
    from django.conf import settings  # not before the servers of the tests are named

    told = Path(settings.VAR_DIR) / SUMMARY
    if (
        exitstatus == pytest.ExitCode.OK
        and told.is_file()
        and told.stat().st_mtime >= _BEGAN
        and not hasattr(terminalreporter.config, "workerinput")
    ):
        terminalreporter.section("who was let in: doors of each group that were open")
        terminalreporter.write(told.read_text())
        terminalreporter.write_line(f"each door: {told.with_name('access-matrix.md')}")


@pytest.fixture
def alice() -> Membership:
    """The owner of a workspace, who logs in as “alice”."""
    return MembershipFactory(user__username="alice")


@pytest.fixture
def visit(browser: Browser, live_server: Any, alice: Membership) -> Iterator[Visit]:
    """Alice's window, logged in."""
    visit = Visit(browser, live_server.url)
    visit.log_in("alice")
    yield visit
    visit.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A running Chromium; no longer than a module, because it keeps an event loop in this thread,
    which Django would take for async code and other libraries for one of theirs."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with chromium() as started:
        yield started
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
