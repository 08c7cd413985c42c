"""What tests of whole pages share."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A running Chromium; no longer than a module, because it keeps an event loop in this thread,
    which Django would take for async code and other libraries for one of theirs."""
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with chromium() as started:
        yield started
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
