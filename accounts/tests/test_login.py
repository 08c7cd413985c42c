"""Logging in and out in the browser, and choosing a workspace."""

import pytest
from django.test import Client

from accounts.models import Membership, Role, User, Workspace
from documents.tests.factories import CollectionFactory, MembershipFactory, WorkspaceFactory

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


def test_the_admin_is_offered_to_staff_only(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert "/admin/" not in client.get("/").text

    User.objects.update(is_staff=True)
    assert "/admin/" in client.get("/").text


CHOOSE = "/workspaces/choose/"


@pytest.fixture
def lab() -> Membership:
    return MembershipFactory(workspace__slug="lab", workspace__name="The lab")


@pytest.fixture
def harbour(lab: Membership) -> Membership:
    """The second workspace of the same person, who may only read there."""
    workspace = WorkspaceFactory(slug="harbour", name="Harbour office")
    return MembershipFactory(user=lab.user, workspace=workspace, role=Role.VIEWER)


@pytest.fixture
def member(client: Client, lab: Membership) -> Client:
    client.force_login(lab.user)
    return client


def test_the_chosen_workspace_stays_for_all_pages(member: Client, harbour: Membership) -> None:
    CollectionFactory(workspace=harbour.workspace, name="Logs of the pilots")
    assert "Logs of the pilots" not in member.get("/documents/").text

    answer = member.post(CHOOSE, {"workspace": "harbour", "next": "/documents/"}, follow=True)

    assert answer.redirect_chain == [("/documents/", 302)]
    assert "Logs of the pilots" in answer.text
    assert "The workspace is now Harbour office. You may read it" in answer.text
    assert "Logs of the pilots" in member.get("/documents/").text


def test_a_page_of_one_thing_is_left_for_the_start(member: Client, harbour: Membership) -> None:
    CollectionFactory(workspace=Membership.objects.get(role="owner").workspace, slug="papers")

    assert 'name="next" value="/documents/"' in member.get("/documents/").text
    form = member.get("/documents/papers/").text.split(f'action="{CHOOSE}"')[1].split("</form>")[0]
    assert 'name="next"' not in form
    assert member.post(CHOOSE, {"workspace": "harbour"}).url == "/"


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)"]
)
def test_nobody_is_sent_to_another_site(member: Client, target: str) -> None:
    assert member.post(CHOOSE, {"workspace": "lab", "next": target}).url == "/"


def test_a_workspace_of_others_is_not_there(member: Client) -> None:
    WorkspaceFactory(slug="secret", name="The secret project")

    answer = member.post(CHOOSE, {"workspace": "secret"})

    assert answer.status_code == 404
    assert "The secret project" not in answer.text
    assert member.post(CHOOSE, {}).status_code == 400
    assert member.get(CHOOSE).status_code == 405


def test_who_was_removed_from_the_chosen_one_is_back_in_the_first(
    member: Client, harbour: Membership
) -> None:
    member.post(CHOOSE, {"workspace": "harbour"})
    assert "in Harbour office" in member.get("/keys/").text
    harbour.delete()
    assert "in The lab" in member.get("/keys/").text


def test_there_is_nothing_to_choose_from_one(member: Client) -> None:
    assert CHOOSE not in member.get("/keys/").text
