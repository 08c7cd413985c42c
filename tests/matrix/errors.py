"""What the site says when something went wrong: pages of their own, and a notice on the others."""

from playwright.sync_api import Page

from accounts.models import Membership, Role
from documents.tests.factories import RunFactory
from tests.matrix.states import State, World

BROKEN = "tests.test_pages"  # its addresses are the site's, and some that do not work


def _broken(world: World) -> None:
    world.settings.ROOT_URLCONF = BROKEN


def _without_workspace(world: World) -> None:
    world.membership.delete()


def _viewer(world: World) -> None:
    Membership.objects.update(role=Role.VIEWER)


def _running(world: World) -> None:
    Membership.objects.update(role=Role.OWNER)
    RunFactory(collection=world.leaflets, total=4, ready=1)


def _without_token(page: Page) -> None:
    page.get_by_label("Name").fill("nightly import")
    page.context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Create", exact=True).click()


def _unreachable(page: Page) -> None:
    page.route("**/runs/", lambda route: route.abort())


def _offline(page: Page) -> None:
    page.context.set_offline(True)


NOTICE = "[data-notice]:not(:empty)"

STATES = [
    State("not-found", lambda world: "/nowhere/", "h1", status=404),
    State("not-found-stranger", lambda world: "/nowhere/", "h1", login=False, status=404),
    State("mistake", lambda world: "/broken/", "h1", prepare=_broken, status=500),
    State("database", lambda world: "/without-database/", "h1", prepare=_broken, status=503),
    State(
        "form-out-of-date",
        lambda world: "/keys/",
        "text=The form has expired",
        act=_without_token,
        expected=("status of 403",),
    ),
    State("offline", lambda world: "/keys/", NOTICE, act=_offline),
    State(
        "part-unreachable",
        lambda world: "/runs/",
        NOTICE,
        prepare=_running,
        act=_unreachable,
        expected=("ERR_FAILED", "htmx:"),
    ),
    State(
        "forbidden",
        lambda world: "/documents/leaflets/upload/",
        "h1",
        prepare=_viewer,
        status=403,
    ),
    State("no-workspace", lambda world: "/chat/", "h1", prepare=_without_workspace, status=404),
]
