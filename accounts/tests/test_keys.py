"""API keys: what makes one, what it opens, what ends it, and requests that come with one."""

from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from accounts import api_keys
from accounts.api_keys import revoke_key
from accounts.models import ApiKey, Membership, Role, Scope, User
from accounts.tests.keys import client_of_key, client_with, make_key
from common.errors import Conflict, Forbidden, InvalidInput, NotFound
from documents.tests.factories import (
    CollectionFactory,
    MembershipFactory,
    UserFactory,
    WorkspaceFactory,
)

pytestmark = pytest.mark.django_db


def test_a_secret_opens_the_key_that_it_was_made_with() -> None:
    alice, bob = MembershipFactory(), MembershipFactory()
    mine, secret = make_key(alice, "read")
    make_key(bob, "read")

    found = api_keys.authenticate_key(secret)

    assert found == mine
    assert (found.user, found.workspace, found.scopes) == (alice.user, alice.workspace, ["read"])


def test_no_table_holds_the_secret_and_two_keys_have_two() -> None:
    member = MembershipFactory()
    key, secret = make_key(member)
    _, other = make_key(member)

    row = ApiKey.objects.filter(pk=key.pk).values().get()

    assert secret != other
    assert secret.startswith("rs_")
    assert len(secret) == len("rs_") + 43  # 32 bytes in base64
    assert secret not in str(row)
    assert row["digest"] == sha256(secret.encode()).hexdigest()
    assert secret.startswith(row["prefix"])
    assert len(row["prefix"]) < len(secret) / 2


def test_what_is_not_the_secret_opens_nothing() -> None:
    _, secret = make_key(MembershipFactory())
    nearly = (secret[:-1], f"{secret}x", secret.upper())
    for wrong in (*nearly, "", "rs_", "rs_" + "\x00" * 43, "rs_" + "é" * 43, "x" * 10_000):
        assert api_keys.authenticate_key(wrong) is None, wrong


def test_a_key_that_begins_as_another_is_told_from_it() -> None:
    member = MembershipFactory()
    mine, secret = make_key(member)
    other, _ = make_key(member)
    ApiKey.objects.filter(pk=other.pk).update(prefix=mine.prefix)

    assert api_keys.authenticate_key(secret) == mine


def test_a_revoked_key_opens_nothing_and_stays_revoked_since_the_first_time() -> None:
    key, secret = make_key(MembershipFactory())
    first = api_keys.revoke_key(key=key).revoked_at

    assert first is not None
    assert api_keys.authenticate_key(secret) is None
    assert api_keys.revoke_key(key=key).revoked_at == first
    assert not key.is_live


@pytest.mark.parametrize(
    "change",
    [
        lambda key: {"expires_at": timezone.now() - timedelta(seconds=1)},
        lambda key: Membership.objects.filter(pk=key.membership_id).update(user=UserFactory()),
        lambda key: User.objects.filter(pk=key.user_id).update(is_active=False),
    ],
    ids=["expired", "the membership is another's", "its user is inactive"],
)
def test_a_key_that_has_ended_opens_nothing(change: Callable[[ApiKey], Any]) -> None:
    soon = timezone.now() + timedelta(hours=1)
    key, secret = make_key(MembershipFactory(), expires_at=soon)
    assert api_keys.authenticate_key(secret) == key

    if isinstance(fields := change(key), dict):
        ApiKey.objects.update(**fields)
        key.refresh_from_db()
        assert not key.is_live

    assert api_keys.authenticate_key(secret) is None


def test_a_key_goes_with_the_membership_and_does_not_come_back_with_it() -> None:
    member = MembershipFactory()
    _, secret = make_key(member)

    Membership.objects.filter(pk=member.pk).delete()
    assert api_keys.authenticate_key(secret) is None

    MembershipFactory(user=member.user, workspace=member.workspace)
    assert api_keys.authenticate_key(secret) is None


def test_use_is_noted_at_most_once_a_minute(django_assert_num_queries: object) -> None:
    key, secret = make_key(MembershipFactory())
    assert key.last_used_at is None

    api_keys.authenticate_key(secret)
    key.refresh_from_db()
    noted = key.last_used_at
    assert noted is not None
    with django_assert_num_queries(1):  # type: ignore[operator]
        api_keys.authenticate_key(secret)
    key.refresh_from_db()
    assert key.last_used_at == noted

    ApiKey.objects.update(last_used_at=noted - timedelta(minutes=2))
    api_keys.authenticate_key(secret)
    key.refresh_from_db()
    assert key.last_used_at >= noted


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a" * 101}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["read", "everything"]}, "scopes"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "expires_at"),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(wrong: dict[str, object], field: str) -> None:
    member = MembershipFactory()
    asked = {"name": "n", "scopes": ["read"], **wrong}

    with pytest.raises(InvalidInput) as refused:
        api_keys.create_key(user=member.user, workspace=member.workspace, **asked)  # type: ignore[arg-type]

    assert refused.value.field == field
    assert not ApiKey.objects.exists()


def test_nobody_gets_a_key_to_a_workspace_of_others() -> None:
    with pytest.raises(NotFound, match="does not belong"):
        api_keys.create_key(
            user=UserFactory(), workspace=WorkspaceFactory(), name="n", scopes=["read"]
        )


def test_a_key_gives_another_no_more_than_it_has() -> None:
    member = MembershipFactory()
    until = timezone.now() + timedelta(days=1)
    maker, _ = make_key(member, "admin", "read", expires_at=until)
    asked = {"user": member.user, "workspace": member.workspace, "name": "n", "maker": maker}

    with pytest.raises(Forbidden, match="write"):
        api_keys.create_key(scopes=["read", "write"], expires_at=until, **asked)
    for later in (None, until + timedelta(seconds=1)):
        with pytest.raises(Forbidden, match="outlive"):
            api_keys.create_key(scopes=["read"], expires_at=later, **asked)
    key, _ = api_keys.create_key(scopes=["read"], expires_at=until, **asked)
    assert key.scopes == ["read"]


def test_there_is_an_end_to_the_keys_of_one_user() -> None:
    member = MembershipFactory()
    key, _ = make_key(member)
    ApiKey.objects.bulk_create(
        ApiKey(
            workspace=key.workspace,
            user=key.user,
            membership=member,
            name="n",
            prefix="rs_",
            digest=str(number),
            scopes=["read"],
        )
        for number in range(api_keys.MAX_KEYS - 1)
    )

    with pytest.raises(Conflict, match="Revoke"):
        make_key(member)
    api_keys.revoke_key(key=key)
    assert make_key(member)
    assert make_key(MembershipFactory(workspace=member.workspace))


def test_the_database_takes_no_key_without_a_scope_or_with_one_that_is_not_there() -> None:
    key, _ = make_key(MembershipFactory(), "read")
    for scopes in ([], ["read", "root"]):
        with pytest.raises(IntegrityError, match="apikey_scopes_check"), transaction.atomic():
            ApiKey.objects.filter(pk=key.pk).update(scopes=scopes)


def test_members_see_their_own_keys_and_owners_those_of_their_workspaces() -> None:
    owner = MembershipFactory(role=Role.OWNER)
    editor = MembershipFactory(workspace=owner.workspace, role=Role.EDITOR)
    outsider = MembershipFactory()
    MembershipFactory(workspace=outsider.workspace, user=owner.user, role=Role.VIEWER)
    of_owner, of_editor, of_outsider = (make_key(each)[0] for each in (owner, editor, outsider))

    def seen(member: Membership) -> set[ApiKey]:
        return set(ApiKey.objects.visible_to(member.user))

    assert seen(owner) == {of_owner, of_editor}
    assert seen(editor) == {of_editor}
    assert seen(outsider) == {of_outsider}


def test_scopes_are_shown_in_one_order() -> None:
    key, _ = make_key(MembershipFactory(), "chat", "read", "admin", "read")
    assert key.scopes == [Scope.READ, Scope.CHAT, Scope.ADMIN]
    assert api_keys.scopes_of(key) == {"read", "chat", "admin"}
    assert api_keys.scopes_of(None) is None


COLLECTIONS = "/api/v1/collections/"


def test_what_is_no_key_is_told_so_and_is_not_asked_for_a_password() -> None:
    key, secret = make_key(MembershipFactory())
    revoke_key(key=key)

    for wrong in (secret, "rs_nothing", "", "sk-of-somebody-else"):
        answer = client_with(wrong).get(COLLECTIONS)
        assert answer.status_code == 401
        assert answer.json()["code"] == "authentication_failed"
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_wrong_key_is_not_made_good_by_a_session() -> None:
    client = client_with("rs_nothing")
    client.force_login(MembershipFactory().user)

    assert client.get(COLLECTIONS).status_code == 401


def test_a_key_needs_no_csrf_token() -> None:
    _, secret = make_key(MembershipFactory(), "write")
    client = APIClient(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})

    assert client.post(COLLECTIONS, {"name": "New"}).status_code == 201


def test_a_missing_scope_is_named() -> None:
    answer = client_of_key(MembershipFactory(), "read", "chat").post(COLLECTIONS, {"name": "New"})

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "“write”" in answer.json()["detail"]
    assert "read, chat" in answer.json()["detail"]


class TestTheWorkspaceOfAKey:
    """Of a user who belongs to two."""

    @pytest.fixture
    def here(self) -> Any:
        return MembershipFactory()

    @pytest.fixture
    def there(self, here: Any) -> Any:
        """Made earlier or later, it is not the key's."""
        return MembershipFactory(user=here.user)

    def test_it_works_in_its_own_without_naming_it(self, here: Any, there: Any) -> None:
        for member in (here, there):
            CollectionFactory(workspace=member.workspace, slug=f"in-{member.workspace.slug}")
        for member in (here, there):
            shown = client_of_key(member, "read").get(COLLECTIONS).json()["results"]
            assert [each["slug"] for each in shown] == [f"in-{member.workspace.slug}"]

    def test_it_may_be_named_and_another_is_not_there(self, here: Any, there: Any) -> None:
        client = client_of_key(here, "read")

        assert client.get(COLLECTIONS, {"workspace": here.workspace.slug}).status_code == 200
        for how in (
            {"data": {"workspace": there.workspace.slug}},
            {"headers": {"X-Workspace": there.workspace.slug}},
        ):
            assert client.get(COLLECTIONS, **how).status_code == 404
