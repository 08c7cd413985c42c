"""Requests with an API key: who they are and where they work. The scope of each route:
tests/test_access_doors.py."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.api_keys import revoke_key
from accounts.models import Role
from accounts.tests.keys import basic_header, client_of_key, client_with, make_key
from documents.tests.factories import (
    PASSWORD,
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from tests.kit import client_of

pytestmark = pytest.mark.django_db
COLLECTIONS = "/api/v1/collections/"


def test_a_key_is_its_user() -> None:
    member = MembershipFactory()
    CollectionFactory(workspace=member.workspace, slug="mine")
    CollectionFactory(slug="not-mine")

    shown = client_of_key(member, "read").get(COLLECTIONS).json()["results"]

    assert [each["slug"] for each in shown] == ["mine"]


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


def test_passwords_and_sessions_need_no_scope() -> None:
    member = MembershipFactory()
    session = client_of(member)
    password = APIClient(headers=basic_header(member.user.username, PASSWORD))

    for client in (session, password):
        assert client.post(COLLECTIONS, {"name": "New"}).status_code in (201, 409)


def test_a_key_needs_no_csrf_token() -> None:
    _, secret = make_key(MembershipFactory(), "write")
    client = APIClient(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})

    assert client.post(COLLECTIONS, {"name": "New"}).status_code == 201


def test_a_key_may_no_more_than_its_user() -> None:
    viewer = MembershipFactory(role=Role.VIEWER)

    answer = client_of_key(viewer).post(COLLECTIONS, {"name": "New"})

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


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

    def test_things_of_another_are_not_found_by_their_ids(self, here: Any, there: Any) -> None:
        document = DocumentFactory(collection=CollectionFactory(workspace=there.workspace))
        ChunkFactory(document=document)
        address = f"/api/v1/documents/{document.pk}/"

        assert client_of_key(there, "read").get(address).status_code == 200
        assert client_of_key(here, "read").get(address).status_code == 404
        assert client_of_key(here).delete(address).status_code == 404
