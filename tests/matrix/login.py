"""The login: as a stranger finds it, and after a wrong password."""

from playwright.sync_api import Page

from tests.matrix.states import State


def _wrong_password(page: Page) -> None:
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("guessed")
    page.get_by_role("button", name="Log in").click()


STATES = [
    State("form", lambda world: "/login/", "#id_username", login=False),
    State("asked-for", lambda world: "/runs/", "#id_username", login=False),
    State("wrong", lambda world: "/login/", "[role=alert]", login=False, act=_wrong_password),
]
