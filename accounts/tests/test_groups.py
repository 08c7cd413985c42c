"""Groups of members of a workspace."""

import pytest
from django.contrib.auth.models import Group

from accounts.groups import (
    add_members,
    create_group,
    delete_group,
    set_external_groups,
    set_groups,
    set_members,
    update_group,
)
from accounts.models import Change, GroupMember, WorkspaceGroup
from accounts.services import principals
from common.errors import Conflict, InvalidInput, NotFound
from documents.tests.factories import DocumentFactory, MembershipFactory, WorkspaceFactory

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
