"""The pages of members, groups and invitations."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts.groups import create_group
from accounts.models import ApiKey, Change, Invitation, Membership, User
from accounts.services import principals
from accounts.tests.keys import make_key
from documents.tests.factories import MembershipFactory, UserFactory
from tests.kit import logged_in

pytestmark = pytest.mark.django_db
LINK = re.compile(r"http://testserver(/join/[A-Za-z0-9_-]{43}/)")
ACCOUNT = {
    "username": "carla",
    "password1": "warden of nine keys",
    "password2": "warden of nine keys",
}


@pytest.fixture
def alice() -> Membership:
    return MembershipFactory(role="owner", workspace__name="The lab", user__username="alice")


@pytest.fixture
def owner(client: Client, alice: Membership) -> Client:
    client.force_login(alice.user)
    return client


def invite(owner: Client, **form: Any) -> str:
    """The path of a new invitation's link."""
    given = {"role": "viewer", "days": "7", "uses": "1", **form}
    answer = owner.post("/members/", given)
    assert answer.status_code == 200, answer.text
    return LINK.findall(answer.text)[0]


def test_somebody_invited_makes_an_account_and_is_a_member_with_role_and_groups(
    owner: Client, alice: Membership
) -> None:
    group = create_group(workspace=alice.workspace, name="Sales")
    path = invite(owner, role="editor", groups=[group.pk])
    guest = Client()
    page = guest.get(path)
    assert "The lab" in page.text
    assert "alice" in page.text
    answer = guest.post(path, ACCOUNT, follow=True)
    assert "Welcome to The lab" in answer.text
    carla = Membership.objects.get(user__username="carla")
    assert (carla.workspace, carla.role) == (alice.workspace, "editor")
    assert group.principal in principals(carla.user)
    made = Change.objects.filter(kind="membership").get()
    assert (made.user, made.details["values"]["role"]) == (carla.user, "editor")
    # The link is used up.
    assert Client().get(path).status_code == 404
    # Clicked twice by who used it, it leads in.
    assert guest.post(path).status_code == 302
    assert Invitation.objects.get().uses == 1


def test_who_has_an_account_joins_with_one_click(owner: Client, alice: Membership) -> None:
    bob = UserFactory(username="bob")
    path = invite(owner)
    guest = logged_in(bob)
    assert "Join The lab" in guest.get(path).text
    guest.post(path)
    assert Membership.objects.get(user=bob).role == "viewer"


def test_a_link_that_is_revoked_or_expired_makes_no_account(owner: Client) -> None:
    revoked, expired = invite(owner, uses=""), invite(owner)
    first, last = Invitation.objects.order_by("pk")
    assert owner.post(f"/invitations/{first.pk}/revoke/").status_code == 302
    Invitation.objects.filter(pk=last.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    for path in (revoked, expired, "/join/nothing/", f"/join/{'x' * 43}/"):
        assert Client().post(path, ACCOUNT).status_code == 404
    assert not User.objects.filter(username="carla").exists()


def test_an_account_needs_a_good_password_and_a_new_name(owner: Client) -> None:
    path = invite(owner)
    for wrong in ({"password1": "1234", "password2": "1234"}, {"username": "alice"}):
        answer = Client().post(path, {**ACCOUNT, **wrong})
        assert answer.status_code == 400
        assert "errorlist" in answer.text
    assert Invitation.objects.get().uses == 0


def test_accounts_cannot_be_made_by_the_hundred(owner: Client, settings: Any) -> None:
    settings.LOGIN_ADDRESS_RATE = "3/hour"
    path = invite(owner, uses="")
    answers = [
        Client().post(path, {**ACCOUNT, "password1": "x"}, REMOTE_ADDR="203.0.113.77").status_code
        for _ in range(5)
    ]
    assert answers[:3] == [400] * 3
    assert answers[-1] == 429


def test_an_invitation_is_sent_by_mail_where_an_address_is_given(owner: Client) -> None:
    path = invite(owner, email="carla@example.org")
    assert mail.outbox[0].to == ["carla@example.org"]
    assert path in mail.outbox[0].body


def test_without_mail_the_link_is_copied(owner: Client, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
    assert "Send to" not in owner.get("/members/").text
    assert invite(owner)


def test_a_mail_server_that_is_down_is_told_and_the_link_shown(
    owner: Client, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    answer = owner.post(
        "/members/", {"role": "viewer", "days": "7", "uses": "1", "email": "c@example.org"}
    )
    assert "failed:" in answer.text
    assert LINK.search(answer.text)


def test_an_owner_changes_role_and_groups_and_removes_a_member(
    owner: Client, alice: Membership
) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role="viewer", user__username="bob")
    key, _ = make_key(bob)
    group = create_group(workspace=alice.workspace, name="Sales")
    owner.post(f"/members/{bob.pk}/", {"role": "editor", "groups": [group.pk]})
    bob.refresh_from_db()
    assert bob.role == "editor"
    assert group.principal in principals(bob.user)
    assert "Sales" in owner.get("/members/").text
    assert "bob" in owner.get(f"/members/{bob.pk}/remove/").text
    owner.post(f"/members/{bob.pk}/remove/")
    assert not Membership.objects.filter(pk=bob.pk).exists()
    assert group.principal not in principals(bob.user)
    assert not ApiKey.objects.filter(pk=key.pk).exists()


def test_the_last_owner_can_neither_go_nor_become_less(owner: Client, alice: Membership) -> None:
    assert owner.post(f"/members/{alice.pk}/remove/").status_code == 409
    answer = owner.post(f"/members/{alice.pk}/", {"role": "viewer"})
    assert "only owner" in answer.text
    alice.refresh_from_db()
    assert alice.role == "owner"


def test_who_is_removed_cannot_come_back_by_a_link_they_know(
    owner: Client, alice: Membership
) -> None:
    path = invite(owner, uses="")
    Client().post(path, ACCOUNT)
    carla = Membership.objects.get(user__username="carla")
    owner.post(f"/members/{carla.pk}/remove/")
    assert Client().post(path, {**ACCOUNT, "username": "dora"}).status_code == 404


def test_members_see_who_is_there_and_may_leave(alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role="editor")
    User.objects.filter(pk=alice.user_id).update(email="alice@example.org")
    client = logged_in(bob)
    page = client.get("/members/").text
    assert "alice" in page
    assert "alice@example.org" not in page
    assert client.post("/members/", {"role": "owner", "days": "7"}).status_code == 403
    assert client.post(f"/members/{alice.pk}/remove/").status_code == 403
    assert client.post(f"/members/{bob.pk}/remove/").status_code == 302
    assert not Membership.objects.filter(pk=bob.pk).exists()


def test_a_group_is_made_filled_renamed_and_deleted(owner: Client, alice: Membership) -> None:
    owner.post(
        "/groups/new/",
        {"name": "Board", "members": [alice.user_id], "external_names": "cn=board\n\nBoard (NC)"},
    )
    group = alice.workspace.groups.get()
    assert group.external_names == ["Board (NC)", "cn=board"]
    assert group.principal in principals(alice.user)
    owner.post(f"/groups/{group.pk}/", {"name": "The board"})
    group.refresh_from_db()
    assert (group.name, group.members.count()) == ("The board", 0)
    assert owner.post("/groups/new/", {"name": "the BOARD"}).status_code == 400
    assert owner.post(f"/groups/{group.pk}/delete/").status_code == 302
    assert not alice.workspace.groups.exists()
