"""The admin's first page and menu, and the history of what doors and services do."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from accounts.audit import summarize
from accounts.models import Change, Membership, Role
from accounts.tests.keys import client_of_key
from documents.models import Collection, Document, IngestionRun
from documents.services import create_collection, update_collection
from documents.tests.factories import (
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
)
from memory.scopes import scope_of
from memory.services import clear_fact, erase_memory, forget_fact, set_fact
from search.judgements import judge, remove_judgement
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
INDEX = reverse("admin:index")


@pytest.fixture
def member() -> Membership:
    return MembershipFactory(user__is_superuser=True)


@pytest.fixture
def client(member: Membership) -> Client:
    return logged_in(member)


def changes() -> list[tuple[Any, ...]]:
    rows = Change.objects.order_by("pk").select_related("user")
    return [(row.user and row.user.username, row.door, summarize(row)) for row in rows]


def test_the_first_page_names_what_needs_a_look(client: Client, member: Membership) -> None:
    collection = CollectionFactory(workspace=member.workspace)
    RunFactory(collection=collection, state=IngestionRun.State.FAILED)
    DocumentFactory(collection=collection, status=Document.Status.FAILED)
    answer = client.get(INDEX)
    matters = {matter["title"]: matter for matter in answer.context["attention_items"]}
    assert matters["Runs with failures"]["count"] == 1
    assert matters["Documents that failed"]["is_urgent"]
    assert not matters["Failed conversations"]["is_urgent"]
    for matter in matters.values():
        assert client.get(matter["address"]).status_code == 200, matter["title"]


def test_the_menu_leads_only_where_one_may_go() -> None:
    client = Client()
    user = UserFactory(is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_document"))
    client.force_login(user)
    page = client.get(INDEX).content.decode()
    assert reverse("admin:documents_document_changelist") in page
    assert reverse("admin:documents_chunk_changelist") not in page
    assert reverse("admin:search_searchlog_open_questions") not in page


def test_every_model_of_the_admin_is_in_the_menu(client: Client) -> None:
    from django.contrib import admin

    page = client.get(INDEX).content.decode()
    missing = [
        model._meta.label
        for model in admin.site._registry
        if reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") not in page
    ]
    assert missing == []


def test_a_change_by_a_key_names_user_and_key(member: Membership) -> None:
    asked = client_of_key(member).post("/api/v1/collections/", {"name": "Notes"})
    assert asked.status_code == 201
    row = Change.objects.get(kind="collection")
    assert (row.user, row.door, row.action) == (member.user, "api", "made")
    assert row.key is not None
    assert row.key.user == member.user


def test_a_change_in_the_admin_names_the_admin(client: Client, member: Membership) -> None:
    collection = CollectionFactory(workspace=member.workspace)
    address = reverse("admin:documents_collection_delete", args=[collection.pk])
    assert client.post(address, {"post": "yes"}).status_code == 302
    assert changes() == [(member.user.username, "admin", f"deleted collection {collection.pk}")]


def test_names_of_fields_are_kept_and_no_text(member: Membership) -> None:
    made = create_collection(workspace=member.workspace, name="Hush-hush")
    update_collection(collection=made, description="A secret", graph="llm")
    update_collection(collection=made, description="A secret")  # which changes nothing
    row = Change.objects.get(action="changed")
    assert row.details == {
        "fields": ["description", "graph"],
        "values": {"graph": ["rules", "llm"]},
    }
    assert "ecret" not in str(list(Change.objects.values()))
    assert "ush" not in str(list(Change.objects.values()))


def test_judgements_are_noted_with_their_grade(member: Membership) -> None:
    collection = CollectionFactory(workspace=member.workspace)
    document = DocumentFactory(collection=collection)
    told: dict[str, Any] = {"collection": collection, "question": "q?", "document": document}
    judge(**told, grade=1, user=member.user)
    remove_judgement(**told)
    rows = Change.objects.about("document", document.pk).order_by("pk")
    assert [row.action for row in rows] == ["judged", "taken_back"]
    assert rows[0].details["values"] == {"grade": "good"}


def test_of_a_memory_only_who_did_it_sees_and_erasing_leaves_nothing(
    client: Client, member: Membership
) -> None:
    from accounts.audit import acting

    scope = scope_of(user=member.user, workspace=member.workspace)
    with acting(channel="page", user=member.user):
        set_fact(scope=scope, key="pet", value="Quokka")
        set_fact(scope=scope, key="pet", value="Wombat")
        clear_fact(scope=scope, key="pet")
        forget_fact(scope=scope, key="pet")
        told = [row.action for row in Change.objects.order_by("pk")]
        assert told == ["made", "superseded", "changed", "deleted"]
        editor = MembershipFactory(workspace=member.workspace, role=Role.EDITOR)
        assert not Change.objects.visible_to(editor.user).exists()
        assert Change.objects.visible_to(member.user).count() == len(told)
        erase_memory(scope=scope)
    (left,) = Change.objects.all()
    assert (left.kind, left.thing, left.subject, left.details) == ("memory", None, "", {})


def test_editors_read_the_history_over_the_api(member: Membership) -> None:
    collection = create_collection(workspace=member.workspace, name="Notes")
    create_collection(workspace=member.workspace, name="Others")
    asked = client_of_key(member, "read").get(
        "/api/v1/changes/", {"collection": collection.pk, "kind": "collection"}
    )
    (row,) = asked.json()["results"]
    assert (row["summary"], row["user"]) == (f"made collection {collection.pk}", None)
    one = client_of_key(member, "read").get(f"/api/v1/changes/{row['id']}/")
    assert one.json() == row


def test_the_pages_of_a_collection_and_a_document_tell_their_history(
    client: Client, member: Membership
) -> None:
    collection = create_collection(workspace=member.workspace, name="Notes")
    page = client.get(reverse("collection", args=[collection.slug])).content.decode()
    assert f"made collection {collection.pk}" in page
    assert Collection.objects.filter(pk=collection.pk).exists()


def test_who_is_let_in_and_out_is_noted(client: Client, member: Membership) -> None:
    bob = UserFactory()
    new = {"user": bob.pk, "workspace": member.workspace_id, "role": "viewer"}
    client.post(reverse("admin:accounts_membership_add"), new)
    row = Membership.objects.get(user=bob)
    address = reverse("admin:accounts_membership_change", args=[row.pk])
    client.post(address, new | {"role": "editor"})
    client.post(reverse("admin:accounts_membership_delete", args=[row.pk]), {"post": "yes"})
    noted = Change.objects.filter(kind="membership", thing=row.pk).order_by("pk")
    told = [(each.action, each.user, each.details["values"]["role"]) for each in noted]
    assert told == [
        ("made", member.user, "viewer"),
        ("changed", member.user, "editor"),
        ("deleted", member.user, "editor"),
    ]


def test_members_of_a_workspace_changed_on_its_page_are_noted(
    client: Client, member: Membership
) -> None:
    form = {
        "name": "Renamed",
        "slug": member.workspace.slug,
        "memberships-TOTAL_FORMS": 1,
        "memberships-INITIAL_FORMS": 1,
        "memberships-0-id": member.pk,
        "memberships-0-workspace": member.workspace_id,
        "memberships-0-user": member.user_id,
        "memberships-0-role": "owner",
        "memberships-0-DELETE": "on",
    }
    address = reverse("admin:accounts_workspace_change", args=[member.workspace_id])
    assert client.post(address, form).status_code == 302
    noted = [(row.action, row.kind, row.details) for row in Change.objects.order_by("pk")]
    assert noted == [
        ("changed", "workspace", {"fields": ["name"]}),
        ("deleted", "membership", {"values": {"role": "owner", "user": member.user_id}}),
    ]


def test_the_history_is_searched_by_numbers_and_names(client: Client, member: Membership) -> None:
    collection = create_collection(workspace=member.workspace, name="Notes")
    document = DocumentFactory(collection=collection)
    judge(collection=collection, question="q?", document=document, grade=1, user=member.user)
    address = reverse("admin:accounts_change_changelist")

    def found(words: str) -> list[str]:
        return [row.kind for row in client.get(address, {"q": words}).context["cl"].result_list]

    assert found(str(collection.pk)) == ["judgement", "collection"]
    assert found(member.user.username) == ["judgement"]
    assert found(f"{collection.pk} {member.user.username}") == ["judgement"]
    assert found("nobody") == []
