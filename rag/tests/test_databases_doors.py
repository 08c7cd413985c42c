"""Connections to catalogued databases by page, API and command."""

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import Change, Membership, Role
from documents.models import Collection
from documents.tests.factories import CollectionFactory, MembershipFactory
from rag.context import RagContext
from rag.models import DatabaseConnection
from rag.services import databases
from rag.tests.shop import DATABASE, READER, WRITER, Shop, shop
from tests.kit import client_of

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD = "correct horse battery"
API = "/api/v1/databases/"


@pytest.fixture(scope="module")
def server_shop(django_db_setup: None, django_db_blocker: Any) -> Iterator[Shop]:
    with django_db_blocker.unblock(), shop() as made:
        yield made


@pytest.fixture
def operator() -> Membership:
    """The operator of the site, in a workspace of their own."""
    member: Membership = MembershipFactory(role=Role.OWNER, user__is_superuser=True)
    return member


@pytest.fixture
def collection(operator: Membership) -> Collection:
    made: Collection = CollectionFactory(workspace=operator.workspace, slug="tables")
    return made


def page_of(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


def api_of(member: Membership) -> Any:
    return client_of(RagContext(user=member.user, workspace=member.workspace))


class TestTheApi:
    def test_a_connection_is_made_tried_changed_and_removed(
        self, operator: Membership, collection: Collection, server_shop: Shop
    ) -> None:
        client = api_of(operator)
        body = {"address": server_shop.address, "username": READER, "password": PASSWORD}
        made = client.post(API, {**body, "collection": "tables", "name": "Shop"}, format="json")
        assert made.status_code == 201, made.content
        row = made.json()
        assert (row["name"], row["has_password"], row["by_operator"]) == ("Shop", True, True)
        assert row["server_version"]
        tried = client.post(f"{API}{row['id']}/try/")
        assert tried.json()["warnings"] == []
        changed = client.patch(f"{API}{row['id']}/", {"max_rows": 5}, format="json")
        assert (changed.status_code, changed.json()["max_rows"]) == (200, 5)
        listed = client.get(API)
        assert [each["id"] for each in listed.json()] == [row["id"]]
        for answer in (made, changed, listed):
            assert PASSWORD not in answer.content.decode()
        assert client.delete(f"{API}{row['id']}/").status_code == 204
        actions = Change.objects.filter(kind="database").order_by("id")
        assert [each.action for each in actions] == ["made", "changed", "deleted"]

    def test_a_role_that_may_write_is_answered_409(
        self, operator: Membership, collection: Collection, server_shop: Shop
    ) -> None:
        body = {"address": server_shop.address, "username": WRITER, "collection": "tables"}
        answer = api_of(operator).post(API, body, format="json")
        assert (answer.status_code, answer.json()["code"]) == (409, "role_may_write")
        assert not DatabaseConnection.objects.exists()

    def test_editors_manage_none(self, collection: Collection) -> None:
        editor = MembershipFactory(workspace=collection.workspace, role=Role.EDITOR)
        body = {"address": "postgresql://h/d", "username": "r", "collection": "tables"}
        assert api_of(editor).post(API, body, format="json").status_code == 403
        assert api_of(editor).get(API).status_code == 403


class TestThePages:
    def test_a_connection_is_made_tried_switched_off_and_removed(
        self, operator: Membership, collection: Collection, server_shop: Shop
    ) -> None:
        client = page_of(operator)
        assert "No databases yet" in client.get("/databases/").content.decode()
        values = {
            "address": server_shop.address,
            "username": READER,
            "password": PASSWORD,
            "collection": "tables",
            "encryption": "require",
            "seconds": "10",
            "max_rows": "200",
            "is_enabled": "on",
        }
        wrong = client.post("/databases/new/", {**values, "username": WRITER})
        assert wrong.status_code == 400
        assert "may do more than read" in wrong.content.decode()
        made = client.post("/databases/new/", values, follow=True)
        page = made.content.decode()
        assert "by a role that only reads" in page
        row = DatabaseConnection.objects.get()
        address = f"/databases/{row.pk}/"
        assert row.name == DATABASE  # where no name is given
        for shown in (page, client.get(f"{address}change/").content.decode()):
            assert PASSWORD not in shown
        changes = {**values, "password": "", "max_rows": "7"}
        assert client.post(f"{address}change/", changes).status_code == 302
        assert "answers: PostgreSQL" in (
            client.post(address, {"act": "try"}, follow=True).content.decode()
        )
        client.post(address, {"act": "off"})
        row.refresh_from_db()
        assert (row.is_enabled, row.max_rows, bool(row.credentials)) == (False, 7, True)
        client.post(f"{address}remove/")
        assert not DatabaseConnection.objects.exists()

    def test_what_the_operator_has_set_owners_do_not_change(
        self, collection: Collection, server_shop: Shop
    ) -> None:
        row, _ = databases.connect_database(collection=collection, options=server_shop.options())
        owner = MembershipFactory(workspace=collection.workspace, role=Role.OWNER)
        client = page_of(owner)
        assert client.get(f"/databases/{row.pk}/change/").status_code == 403
        assert client.post(f"/databases/{row.pk}/", {"act": "off"}).status_code == 302
        refused = client.post(f"/databases/{row.pk}/", {"act": "on"})
        assert "The operator of the site has set this connection" in refused.content.decode()
        row.refresh_from_db()
        assert not row.is_enabled


class TestTheCommand:
    def run(self, *words: str, collection: Collection) -> Any:
        out = StringIO()
        slug = collection.workspace.slug
        call_command("databases", *words, "--workspace", slug, "--json", stdout=out)
        return json.loads(out.getvalue())

    def test_a_connection_is_made_listed_tried_and_removed(
        self, collection: Collection, server_shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_PASSWORD", PASSWORD)
        add = ("add", server_shop.address, READER, "--collection", "tables", "--name", "Shop")
        made = self.run(*add, collection=collection)
        assert (made["name"], made["has_password"]) == ("Shop", True)
        assert PASSWORD not in json.dumps(made)
        assert [each["name"] for each in self.run("list", collection=collection)] == ["Shop"]
        assert self.run("try", "Shop", collection=collection)["warnings"] == []
        assert self.run("encrypt", collection=collection) == {"passwords": 1}
        self.run("remove", "Shop", collection=collection)
        assert not DatabaseConnection.objects.exists()

    def test_a_role_that_may_write_is_refused(
        self, collection: Collection, server_shop: Shop
    ) -> None:
        with pytest.raises(CommandError, match="may do more than read"):
            self.run("add", server_shop.address, WRITER, "--collection", "tables",
                     collection=collection)  # fmt: skip
