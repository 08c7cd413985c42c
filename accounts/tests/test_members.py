"""Members, groups and invitations: rules, API and pages."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core import mail
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.groups import (
    add_members,
    create_group,
    delete_group,
    set_external_groups,
    set_groups,
    set_members,
    update_group,
)
from accounts.models import (
    ApiKey,
    Change,
    GroupMember,
    Invitation,
    Membership,
    User,
    WorkspaceGroup,
)
from accounts.services import principals
from accounts.tests.keys import client_of_key, make_key
from common.errors import Conflict, InvalidInput, NotFound
from documents.tests.factories import (
    DocumentFactory,
    MembershipFactory,
    UserFactory,
    WorkspaceFactory,
)
from tests.kit import logged_in

pytestmark = pytest.mark.django_db


def names_of(user: object) -> set[str]:
    return {name for name in principals(user) if name.startswith("group:")}


def test_access_lists_know_a_member_by_the_groups_they_are_in() -> None:
    alice = MembershipFactory(role="owner")
    group = create_group(workspace=alice.workspace, name=" Sales  team ")
    assert group.name == "Sales team"
    assert names_of(alice.user) == set()
    add_members(group=group, memberships=[alice])
    assert names_of(alice.user) == {group.principal}
    set_members(group=group, user_ids=[])
    assert names_of(alice.user) == set()


def test_who_leaves_a_workspace_leaves_its_groups() -> None:
    alice = MembershipFactory()
    elsewhere = MembershipFactory(user=alice.user)
    left, kept = (create_group(workspace=each.workspace, name="x") for each in (alice, elsewhere))
    set_groups(membership=alice, group_ids=[left.pk])
    set_groups(membership=elsewhere, group_ids=[kept.pk])
    alice.delete()
    assert names_of(elsewhere.user) == {kept.principal}
    assert not GroupMember.objects.filter(group=left).exists()


def test_only_members_of_the_workspace_can_be_in_its_groups() -> None:
    alice, outsider = MembershipFactory(), MembershipFactory()
    group = create_group(workspace=alice.workspace, name="x")
    with pytest.raises(InvalidInput, match="Only members"):
        add_members(group=group, memberships=[outsider])
    with pytest.raises(InvalidInput, match="not a member"):
        set_members(group=group, user_ids=[outsider.user_id])
    with pytest.raises(NotFound):
        set_groups(membership=outsider, group_ids=[group.pk])


def test_a_group_of_the_admin_goes_on_working_and_shares_no_number() -> None:
    alice = MembershipFactory()
    old = Group.objects.create(name="Sales")
    alice.user.groups.add(old)
    group = create_group(workspace=alice.workspace, name="Sales")
    assert group.pk != old.pk
    assert names_of(alice.user) == {f"group:{old.pk}"}
    # Put into the row that stands for a workspace's group, somebody is not in that group.
    alice.user.groups.add(Group.objects.get(pk=group.pk))
    assert names_of(alice.user) == {f"group:{old.pk}"}


def test_names_are_one_in_a_workspace_whatever_their_capitals() -> None:
    workspace = WorkspaceFactory()
    group = create_group(workspace=workspace, name="Sales")
    create_group(workspace=WorkspaceFactory(), name="Sales")
    with pytest.raises(Conflict, match="already"):
        create_group(workspace=workspace, name="SALES")
    assert update_group(group=group, name="sales").name == "sales"
    for name in ("", " ", "x" * 101, "a\x00b"):
        with pytest.raises(InvalidInput):
            create_group(workspace=workspace, name=name)


def test_a_group_that_documents_are_shared_with_is_not_deleted() -> None:
    document = DocumentFactory()
    group = create_group(workspace=document.workspace, name="Board")
    document.access = [group.principal]
    document.save()
    with pytest.raises(Conflict, match="1 document"):
        delete_group(group=group)
    document.access = None
    document.save()
    delete_group(group=group)
    assert not Group.objects.exists()
    assert not WorkspaceGroup.objects.exists()


def test_a_sign_in_puts_members_in_groups_by_name_and_takes_out_only_those_it_put_in() -> None:
    alice = MembershipFactory()
    workspace = alice.workspace
    sales = create_group(workspace=workspace, name="Sales", external_names=["cn=sales,dc=firm"])
    board = create_group(workspace=workspace, name="Board")
    choir = create_group(workspace=workspace, name="Choir")
    set_groups(membership=alice, group_ids=[choir.pk, sales.pk])

    def claim(*names: str) -> list[str]:
        found = set_external_groups(
            user=alice.user, workspace=workspace, names=names, source="oidc"
        )
        return [group.name for group in found]

    assert claim("CN=Sales,DC=firm", "BOARD", "unknown") == ["Board", "Sales"]
    assert names_of(alice.user) == {sales.principal, board.principal, choir.principal}
    noted = Change.objects.count()
    assert claim("board", "sales") == ["Board", "Sales"]
    assert Change.objects.count() == noted
    assert claim() == []
    # Sales was also given by hand.
    assert names_of(alice.user) == {sales.principal, choir.principal}
    with pytest.raises(NotFound):
        set_external_groups(
            user=alice.user, workspace=WorkspaceFactory(), names=["x"], source="oidc"
        )


API = "/api/v1"


@pytest.fixture
def program(alice: Membership) -> APIClient:
    return client_of_key(alice, "admin")


def test_an_owner_makes_groups_and_puts_members_in(program: APIClient, alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role="viewer")
    made = program.post(
        f"{API}/groups/",
        {"name": "Board", "external_names": ["cn=board"], "members": [bob.user_id]},
        format="json",
    )
    assert made.status_code == 201, made.data
    group = f"group:{made.data['id']}"
    assert group in principals(bob.user)
    changed = program.patch(f"{API}/groups/{made.data['id']}/", {"members": []}, format="json")
    assert changed.data["members"] == []
    assert changed.data["external_names"] == ["cn=board"]
    body = {"role": "editor", "groups": [made.data["id"]], "external_names": ["bob@example.org"]}
    shown = program.patch(f"{API}/members/{bob.pk}/", body, format="json").data
    assert {name: shown[name] for name in body} == body
    assert group in principals(bob.user)
    assert program.delete(f"{API}/groups/{made.data['id']}/").status_code == 204
    assert program.delete(f"{API}/members/{bob.pk}/").status_code == 204
    assert [row["username"] for row in program.get(f"{API}/members/").data["results"]] == ["alice"]


def test_nothing_is_changed_by_half(program: APIClient, alice: Membership) -> None:
    outsider = MembershipFactory()
    refused = program.post(
        f"{API}/groups/", {"name": "Board", "members": [outsider.user_id]}, format="json"
    )
    assert refused.status_code == 400
    assert program.get(f"{API}/groups/").data["results"] == []
    bob = MembershipFactory(workspace=alice.workspace, role="viewer")
    body = {"role": "editor", "groups": [10**9]}
    assert program.patch(f"{API}/members/{bob.pk}/", body, format="json").status_code == 404
    bob.refresh_from_db()
    assert bob.role == "viewer"


def test_an_invitation_tells_its_link_once_and_is_revoked(program: APIClient) -> None:
    made = program.post(f"{API}/invitations/", {"max_uses": None}, format="json")
    assert made.status_code == 201, made.data
    path = made.data["url"].removeprefix("http://testserver")
    assert APIClient().get(path).status_code == 200
    shown = program.get(f"{API}/invitations/{made.data['id']}/").data
    assert "url" not in shown
    assert shown["is_open"]
    revoked = program.post(f"{API}/invitations/{made.data['id']}/revoke/").data
    assert not revoked["is_open"]
    assert APIClient().get(path).status_code == 404


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
