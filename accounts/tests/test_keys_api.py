"""Keys made, listed and revoked by the API."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import ApiKey, IdempotencyRecord, Role
from accounts.tests.keys import client_of_key, client_with, make_key
from documents.tests.factories import MembershipFactory
from tests.kit import client_of

pytestmark = pytest.mark.django_db
KEYS = "/api/v1/keys/"
COLLECTIONS = "/api/v1/collections/"


def test_the_answer_that_makes_a_key_is_the_only_one_with_its_secret() -> None:
    member = MembershipFactory()
    client = client_of(member)
    asked = {"name": "nightly import", "scopes": ["write", "read"]}

    answer = client.post(KEYS, asked)

    made = answer.json()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert client_with(made["secret"]).get(COLLECTIONS).status_code == 200
    assert made["scopes"] == ["read", "write"]
    assert (made["user"], made["workspace"]) == (member.user.username, member.workspace.slug)
    assert (made["expires_at"], made["last_used_at"], made["is_live"]) == (None, None, True)
    for shown in (client.get(KEYS), client.get(f"{KEYS}{made['id']}/")):
        assert made["prefix"] in shown.content.decode()
        assert made["secret"] not in shown.content.decode()
        assert "digest" not in shown.content.decode()


def test_an_idempotency_key_keeps_no_secret() -> None:
    headers = {"Idempotency-Key": "same"}
    client = client_of(MembershipFactory())
    asked = {"name": "n", "scopes": ["read"]}

    made = [client.post(KEYS, asked, headers=headers).json()["secret"] for _ in range(2)]

    assert made[0] != made[1]
    assert not IdempotencyRecord.objects.exists()


def test_a_revoked_key_opens_nothing_and_stays_in_the_list() -> None:
    client = client_of(MembershipFactory())
    made = client.post(KEYS, {"name": "n", "scopes": ["read"]}).json()

    for _ in range(2):
        answer = client.post(f"{KEYS}{made['id']}/revoke/")
        assert (answer.status_code, answer.json()["is_live"]) == (200, False)

    assert client_with(made["secret"]).get(COLLECTIONS).status_code == 401
    assert [each["id"] for each in client.get(KEYS).json()["results"]] == [made["id"]]


def test_a_key_does_not_expire_in_the_past() -> None:
    body = {"name": "n", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}
    answer = client_of(MembershipFactory()).post(KEYS, body)

    assert answer.status_code == 400
    assert [each["attr"] for each in answer.json()["errors"]] == ["expires_at"]
    assert not ApiKey.objects.exists()


def test_a_key_manages_keys_with_the_scope_admin_alone_and_gives_no_more_than_it_has() -> None:
    member = MembershipFactory()
    until = timezone.now() + timedelta(days=1)
    _, secret = make_key(member, "admin", "read", expires_at=until)
    client = client_with(secret)

    assert client_of_key(member, "read", "write", "memory", "chat").get(KEYS).status_code == 403
    too_much = client.post(
        KEYS, {"name": "n", "scopes": ["write"], "expires_at": until.isoformat()}
    )
    too_long = client.post(KEYS, {"name": "n", "scopes": ["read"]})
    right = client.post(KEYS, {"name": "n", "scopes": ["read"], "expires_at": until.isoformat()})

    assert [each.status_code for each in (too_much, too_long, right)] == [403, 403, 201]


def test_an_owner_revokes_the_keys_of_members_and_they_not_the_owners() -> None:
    owner = MembershipFactory(role=Role.OWNER)
    viewer = MembershipFactory(workspace=owner.workspace, role=Role.VIEWER)
    of_owner, of_viewer = make_key(owner)[0], make_key(viewer)[0]

    assert client_of(viewer).post(f"{KEYS}{of_owner.pk}/revoke/").status_code == 404
    assert client_of(MembershipFactory()).get(f"{KEYS}{of_viewer.pk}/").status_code == 404
    assert client_of(owner).post(f"{KEYS}{of_viewer.pk}/revoke/").status_code == 200
    listed = client_of(viewer).get(KEYS).json()["results"]
    assert [each["id"] for each in listed] == [of_viewer.pk]


def test_keys_of_another_workspace_are_not_listed() -> None:
    here = MembershipFactory()
    there = MembershipFactory(user=here.user)
    key, _ = make_key(there)

    assert client_of_key(here, "admin").get(f"{KEYS}{key.pk}/").status_code == 404
    shown = client_of(here).get(KEYS, {"workspace": there.workspace.slug}).json()["results"]
    assert [each["id"] for each in shown] == [key.pk]
    assert key.pk not in [each["id"] for each in client_of(here).get(KEYS).json()["results"]]
