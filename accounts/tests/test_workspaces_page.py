"""Choosing a workspace in the rail."""

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.tests.factories import CollectionFactory, MembershipFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db
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
