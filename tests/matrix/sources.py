"""Sources: none, the forms of kinds with many options, refused, one with a note of its last run."""

from typing import Any

from django.utils import timezone
from playwright.sync_api import Page

from sources.models import DataSource, DataSourceItem, DataSourceRun
from tests.matrix.states import State, World


def _source(world: World) -> None:
    source = DataSource.objects.create(
        workspace=world.workspace,
        collection=world.office,
        name="Handbook of " + "w" * 100,
        connector="web",
        options={"url": "https://example.org/handbook/", "files": True, "depth": 3},
        schedule="60",
        due_at=timezone.now(),
        error="It has more than 1,000 pages; the others are left out. Allow more, or choose paths.",
    )
    DataSourceItem.objects.create(
        workspace=world.workspace,
        source=source,
        key="https://example.org/handbook/plan.pdf",
        name="handbook/plan.pdf",
        version="unread",
        failures=1,
        error="The server answers 500. The next run tries again.",
    )
    DataSourceRun.objects.create(
        workspace=world.workspace,
        source=source,
        state=DataSourceRun.State.PARTIAL,
        listed=1000,
        new=1000,
        failed=1,
        error=source.error,
        finished_at=timezone.now(),
    )


def _address(world: World) -> str:
    return f"/sources/{DataSource.objects.get().pk}/"


def _more(page: Page) -> None:
    page.get_by_text("More options").click()


def _wrong(page: Page) -> None:
    page.get_by_label("Name").fill("Handbook")
    page.get_by_label("Address").fill("ftp://example.org/")
    page.get_by_text("More options").click()
    page.get_by_label("Collection").select_option(index=1)
    page.get_by_role("button", name="Test and save").click()


def _new(kind: str) -> Any:
    return lambda world: f"/sources/new/{kind}/"


STATES = [
    State("none", lambda world: "/sources/", "text=No sources yet"),
    State("web", _new("web"), "text=Link depth", act=_more),
    State("refused", _new("web"), ".errorlist", act=_wrong, expected=("status of 400",)),
    State("ragsite", _new("ragsite"), "text=API key"),
    State("one", _address, "text=more than 1,000 pages", prepare=_source),
    State("some", lambda world: "/sources/", "text=Handbook of"),
    State("change", lambda world: _address(world) + "change/", "text=Save changes", act=_more),
]
