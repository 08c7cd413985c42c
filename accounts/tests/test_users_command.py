"""`manage.py users`, and for whom commands act."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Membership, Role, User, Workspace
from accounts.services import default_owner
from documents.tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db


def told(*arguments: str) -> Any:
    out = StringIO()
    call_command("users", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_a_login_is_made_with_a_password_that_works_and_the_first_member_owns() -> None:
    made = told("add", "alice", "--email", "alice@example.org", "--workspace", "office")
    alice = User.objects.get(username="alice")
    assert alice.check_password(made["password"])
    assert (alice.email, alice.is_superuser) == ("alice@example.org", False)
    assert made["role"] == Membership.objects.get(user=alice).role == Role.OWNER
    assert told("add", "bob", "--workspace", "office")["role"] == Role.EDITOR
    assert told("add", "carol", "--role", "viewer", "--workspace", "office")["role"] == Role.VIEWER


def test_who_has_a_login_keeps_it() -> None:
    member = MembershipFactory()
    user = UserFactory(username="dora")
    before = user.password
    made = told("add", "dora", "--workspace", member.workspace.slug)
    user.refresh_from_db()
    assert made["password"] is None
    assert user.password == before
    with pytest.raises(CommandError, match="already, as editor"):
        told("add", "dora", "--workspace", member.workspace.slug)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "no one"], "username: "),
        (["add", "bob", "--email", "nowhere"], "email: "),
        (["role", "nobody", "viewer"], "no member"),
        (["list", "--workspace", "none"], "no workspace"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_made(arguments: list[str], said: str) -> None:
    told("add", "alice")
    with pytest.raises(CommandError, match=said):
        told(*arguments)
    assert User.objects.count() == 1


def test_members_are_listed_and_their_roles_changed() -> None:
    told("add", "alice")
    told("add", "bob")
    listed = told("list")
    assert [(row["username"], row["role"], row["is_default"]) for row in listed] == [
        ("alice", "owner", True),
        ("bob", "editor", False),
    ]
    with pytest.raises(CommandError, match="owner"):
        told("role", "alice", "viewer")
    assert told("role", "bob", "owner")["role"] == "owner"
    assert told("role", "alice", "viewer")["role"] == "viewer"
    assert told("list")[0]["username"] == "bob"


def test_a_second_account_does_not_change_for_whom_commands_act() -> None:
    told("add", "alice")
    workspace = Workspace.objects.get()
    for name in ("bob", "carol"):
        told("add", name, "--role", "owner")
        owner = default_owner(workspace)
        assert owner is not None
        assert owner.username == "alice"
    User.objects.filter(username="alice").update(is_active=False)
    owner = default_owner(workspace)
    assert owner is not None
    assert owner.username == "bob"
