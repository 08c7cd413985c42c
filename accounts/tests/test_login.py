"""Logging in and out in the browser."""

import pytest
from django.test import Client

from accounts.models import Membership, User, Workspace

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quick_passwords")]
PASSWORD = "correct horse battery staple"


@pytest.fixture
def user() -> User:
    """Somebody who belongs to no workspace."""
    return User.objects.create_user("dora", password=PASSWORD)


@pytest.fixture
def alice() -> User:
    """The owner of a workspace."""
    user = User.objects.create_user("alice", password=PASSWORD)
    workspace = Workspace.objects.create(slug="lab", name="The lab")
    Membership.objects.create(user=user, workspace=workspace, role="owner")
    return user


def log_in(client: Client, username: str, *, password: str = PASSWORD, **extra: str) -> object:
    return client.post("/login/", {"username": username, "password": password, **extra})


@pytest.mark.parametrize("path", ["/", "/documents/", "/documents/x/", "/documents/x/1/", "/runs/"])
def test_a_stranger_is_asked_to_log_in_and_comes_back_to_the_page(
    client: Client, user: User, path: str
) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.url) == (302, f"/login/?next={path}")
    assert log_in(client, user.username, next=path).url == path


def test_the_right_password_leads_to_search(client: Client, alice: User) -> None:
    assert log_in(client, "alice").url == "/"
    assert "The lab" in client.get("/").text


def test_a_wrong_password_says_so_and_keeps_the_name(client: Client, user: User) -> None:
    answer = log_in(client, user.username, password="wrong")

    assert answer.status_code == 200
    assert "Please enter a correct username and password" in answer.text
    assert f'value="{user.username}"' in answer.text


def test_an_inactive_user_stays_outside(client: Client, user: User) -> None:
    User.objects.update(is_active=False)

    log_in(client, user.username)

    assert client.get("/").status_code == 302


def test_nobody_is_led_to_another_site(client: Client, user: User) -> None:
    assert log_in(client, user.username, next="https://elsewhere.example/").url == "/"


def test_who_is_logged_in_needs_no_login_page(client: Client, user: User) -> None:
    client.force_login(user)

    assert client.get("/login/").url == "/"


def test_logging_out_takes_a_form_and_ends_the_session(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert client.get("/logout/").status_code == 405
    assert client.get("/").status_code == 200
    assert client.post("/logout/").url == "/login/"
    assert client.get("/").status_code == 302


def test_who_belongs_to_no_workspace_is_told_what_to_do(client: Client, user: User) -> None:
    client.force_login(user)

    answer = client.get("/")

    assert answer.status_code == 404
    assert "You are not in a workspace yet" in answer.text
    assert "Ask the operator of this site to add" in answer.text


def test_the_admin_is_offered_to_staff_only(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "/admin/" not in client.get("/").text

    User.objects.update(is_staff=True)
    assert "/admin/" in client.get("/").text


def test_a_form_without_its_token_is_refused_in_words() -> None:
    answer = log_in(Client(enforce_csrf_checks=True), "alice")

    assert answer.status_code == 403
    assert "reload the page" in answer.text
