"""The login: as a stranger finds it, and after one wrong password or too many."""

from playwright.sync_api import Page

from tests.matrix.states import State, World


def _wrong_password(page: Page) -> None:
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("guessed")
    page.get_by_role("button", name="Log in").click()


def _one_attempt(world: World) -> None:
    world.settings.LOGIN_RATE = "1/hour"


def _wrong_twice(page: Page) -> None:
    for _ in range(2):
        _wrong_password(page)
        page.get_by_role("alert").wait_for()


STATES = [
    State("asked-for", lambda world: "/runs/", "#id_username", login=False),
    State("wrong", lambda world: "/login/", "[role=alert]", login=False, act=_wrong_password),
    State(
        "too-many",
        lambda world: "/login/",
        "[role=alert]",
        login=False,
        prepare=_one_attempt,
        act=_wrong_twice,
        expected=("status of 429",),
    ),
]
