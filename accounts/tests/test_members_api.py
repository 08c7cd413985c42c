"""Members, groups and invitations over the API."""

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from accounts.services import principals
from accounts.tests.keys import client_of_key
from documents.tests.factories import MembershipFactory

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def alice() -> Membership:
    member: Membership = MembershipFactory(role="owner", user__username="alice")
    return member


@pytest.fixture
def owner(alice: Membership) -> APIClient:
    return client_of_key(alice, "admin")


def test_an_owner_makes_groups_and_puts_members_in(owner: APIClient, alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role="viewer")
    made = owner.post(
        f"{API}/groups/",
        {"name": "Board", "external_names": ["cn=board"], "members": [bob.user_id]},
        format="json",
    )
    assert made.status_code == 201, made.data
    group = f"group:{made.data['id']}"
    assert group in principals(bob.user)
    changed = owner.patch(f"{API}/groups/{made.data['id']}/", {"members": []}, format="json")
    assert changed.data["members"] == []
    assert changed.data["external_names"] == ["cn=board"]
    body = {"role": "editor", "groups": [made.data["id"]], "external_names": ["bob@example.org"]}
    shown = owner.patch(f"{API}/members/{bob.pk}/", body, format="json").data
    assert {name: shown[name] for name in body} == body
    assert group in principals(bob.user)
    assert owner.delete(f"{API}/groups/{made.data['id']}/").status_code == 204
    assert owner.delete(f"{API}/members/{bob.pk}/").status_code == 204
    assert [row["username"] for row in owner.get(f"{API}/members/").data["results"]] == ["alice"]


def test_nothing_is_changed_by_half(owner: APIClient, alice: Membership) -> None:
    outsider = MembershipFactory()
    refused = owner.post(
        f"{API}/groups/", {"name": "Board", "members": [outsider.user_id]}, format="json"
    )
    assert refused.status_code == 400
    assert owner.get(f"{API}/groups/").data["results"] == []
    bob = MembershipFactory(workspace=alice.workspace, role="viewer")
    body = {"role": "editor", "groups": [10**9]}
    assert owner.patch(f"{API}/members/{bob.pk}/", body, format="json").status_code == 404
    bob.refresh_from_db()
    assert bob.role == "viewer"


def test_the_last_owner_stays(owner: APIClient, alice: Membership) -> None:
    assert owner.delete(f"{API}/members/{alice.pk}/").status_code == 409
    changed = owner.patch(f"{API}/members/{alice.pk}/", {"role": "editor"}, format="json")
    assert changed.status_code == 409


def test_an_invitation_tells_its_link_once_and_is_revoked(owner: APIClient) -> None:
    made = owner.post(f"{API}/invitations/", {"max_uses": None}, format="json")
    assert made.status_code == 201, made.data
    path = made.data["url"].removeprefix("http://testserver")
    assert APIClient().get(path).status_code == 200
    shown = owner.get(f"{API}/invitations/{made.data['id']}/").data
    assert "url" not in shown
    assert shown["is_open"]
    revoked = owner.post(f"{API}/invitations/{made.data['id']}/revoke/").data
    assert not revoked["is_open"]
    assert APIClient().get(path).status_code == 404
