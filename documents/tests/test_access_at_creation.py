"""An access list that comes with a document: nobody else ever sees it, and nothing widens it."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.groups import create_group
from accounts.models import Membership, Role, User
from common.errors import InvalidInput
from documents.ingestion.items import InvalidItems, Item, StoreResult
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.services import (
    Upload,
    ingest_inline,
    ingest_sources,
    ingest_uploads,
    store_items,
    update_document,
)
from documents.services.documents import checked_access, checked_access_lists
from documents.tests.factories import CollectionFactory, MembershipFactory
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "The plan is secret until May."


@pytest.fixture
def bob(alice: Membership) -> Membership:
    return MembershipFactory(workspace=alice.workspace, role=Role.EDITOR)


@pytest.fixture
def collection(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, slug="plans")


def bring(member: Membership, **body: Any) -> Any:
    client = Client(raise_request_exception=False)
    client.force_login(member.user)
    sent = {"collection": "plans", "key": "plan", "text": TEXT, **body}
    return client.post("/api/v1/documents/", sent, content_type="application/json")


def me(member: Membership) -> list[str]:
    return [f"user:{member.user_id}"]


def failure_of(run: IngestionRun) -> str:
    return run.items.get(state=IngestionItem.State.FAILED).error_code


def test_a_text_is_never_without_its_list(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    answer = bring(alice, access=me(alice))
    assert answer.status_code == 202, answer.content
    document = Document.objects.get(key="plan")
    assert document.access == me(alice)
    assert not Document.objects.visible_to(bob.user).exists()
    # the run is everybody's, what it is of is not
    run = IngestionRun.objects.get()
    assert "plan" not in run.source
    assert not run.items.visible_to(bob.user).exists()
    assert run.items.visible_to(alice.user).exists()


def test_files_of_a_form_take_a_list(alice: Membership, collection: Collection) -> None:
    client = logged_in(alice)
    file = SimpleUploadedFile("plan.md", TEXT.encode())
    sent = {"collection": "plans", "files": [file], "access": me(alice)}
    assert client.post("/api/v1/documents/", sent).status_code == 202
    assert Document.objects.get(key="plan.md").access == me(alice)


def test_the_page_takes_a_list_that_has_oneself(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    client = logged_in(alice)
    for access, status in ((me(bob), 400), (me(alice), 302)):
        sent = {"files": [SimpleUploadedFile("own.md", TEXT.encode())], "access": access}
        assert client.post("/documents/plans/upload/", sent).status_code == status
    assert Document.objects.get().access == me(alice)


def test_a_list_that_cannot_be_brings_nothing(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    for wrong in ([], ["user:0"], ["everybody"], [f"user:{alice.user_id + 9999}"], me(bob)):
        answer = bring(alice, access=wrong)
        assert answer.status_code == 400, (wrong, answer.content)
        assert json.loads(answer.content)["errors"][0]["attr"] == "access"
    assert not Document.objects.exists()
    assert not IngestionRun.objects.exists()


def test_passages_have_the_list_and_a_changed_file_keeps_it(
    alice: Membership, collection: Collection
) -> None:
    for text in (TEXT, TEXT + " It is about a bridge."):
        ingest_inline(collection=collection, sources=[text_source("plan", text)], access=me(alice))
        assert {tuple(chunk.access) for chunk in Chunk.objects.all()} == {tuple(me(alice))}
    # without a list as well, and as a version of its own
    for policy in (IngestionRun.Policy.OVERWRITE, IngestionRun.Policy.NEW_VERSION):
        ingest_inline(
            collection=collection, sources=[text_source("plan", f"{policy} {TEXT}")], policy=policy
        )
    assert Document.objects.count() == 2
    assert {tuple(row.access or ()) for row in Document.objects.all()} == {tuple(me(alice))}
    assert {tuple(chunk.access or ()) for chunk in Chunk.objects.all()} == {tuple(me(alice))}


def test_a_text_for_few_does_not_go_where_others_read(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    ingest_inline(collection=collection, sources=[text_source("plan", "An open plan.")])
    for ingest in (ingest_sources, ingest_inline):
        source = text_source("plan", TEXT)
        run = ingest(collection=collection, sources=[source], access=me(alice))
        assert failure_of(run) == "access"
    assert [chunk.text for chunk in Chunk.objects.all()] == ["An open plan."]
    # nor where one more may see it
    document = Document.objects.get()
    update_document(document=document, access=[*me(alice), *me(bob)])
    run = ingest_sources(
        collection=collection, sources=[text_source("plan", TEXT)], access=me(alice)
    )
    assert failure_of(run) == "access"
    assert Document.objects.get().access == sorted([*me(alice), *me(bob)])


def test_nobody_writes_into_what_they_may_not_see(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    ingest_inline(collection=collection, sources=[text_source("plan", TEXT)], access=me(alice))
    before = Document.objects.values().get()
    # the same bytes are not told to be there
    for text in (TEXT, "Bob's own."):
        run = ingest_sources(
            collection=collection, sources=[text_source("plan", text)], user=bob.user
        )
        assert failure_of(run) == "taken"
    assert Document.objects.values().get() == before
    run = ingest_sources(
        collection=collection, sources=[text_source("plan", "Changed.")], user=alice.user
    )
    assert run.failed == 0
    assert Document.objects.get().access == me(alice)


def test_the_same_bytes_do_not_lean_on_what_others_see(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    ingest_inline(collection=collection, sources=[text_source("open", TEXT)])
    upload = Upload(name="own.txt", file=SimpleUploadedFile("own.txt", TEXT.encode()))
    ingest_uploads(
        collection=collection,
        uploads=[upload],
        user=alice.user,
        store_once=True,
        access=me(alice),
    )
    own = Document.objects.get(key="own.txt")
    assert own.duplicate_of is None
    assert own.access == me(alice)
    ingest_inline(
        collection=collection,
        sources=[text_source("third", TEXT)],
        store_once=True,
        access=me(bob),
    )
    third = Document.objects.get(key="third")
    assert third.access == me(bob)
    assert {tuple(chunk.access) for chunk in third.chunks.all()} == {tuple(me(bob))}


def test_the_command_takes_a_list(
    alice: Membership, collection: Collection, tmp_path: Any, capsys: Any
) -> None:
    (tmp_path / "plan.txt").write_text(TEXT)
    call_command(
        "ingest",
        str(tmp_path),
        collection="plans",
        workspace=alice.workspace.slug,
        access=me(alice),
    )
    assert Document.objects.get().access == me(alice)


# --- items ---------------------------------------------------------------------------------------


def texts_of(member: Membership) -> set[str]:
    return set(Chunk.objects.visible_to(member.user).values_list("text", flat=True))


def test_an_item_is_never_without_its_list(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    items = [Item("plan", TEXT, access=me(alice)), Item("open", "An open plan.")]
    store_items(collection=collection, items=items, user=alice.user)
    assert texts_of(bob) == {"An open plan."}
    assert texts_of(alice) == {TEXT, "An open plan."}
    assert Document.objects.get(key="plan").access == me(alice)


def test_an_item_with_a_list_gets_it_with_its_text(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    def put(text: str, access: list[str] | None = None) -> StoreResult:
        return store_items(
            collection=collection, items=[Item("plan", text, access=access)], user=alice.user
        )

    put("An open plan.")
    put(TEXT, me(alice))
    assert texts_of(bob) == set()
    assert put(TEXT, me(alice)).unchanged == 1
    put("Changed, and still secret.")
    assert texts_of(bob) == set()
    assert texts_of(alice) == {"Changed, and still secret."}
    put("Changed, and still secret.", [*me(alice), *me(bob)])  # the same text for more people
    assert texts_of(bob) == {"Changed, and still secret."}


def test_people_and_groups_are_named_as_people_name_them(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    User.objects.filter(pk=bob.user_id).update(username="bob", email="Bob@example.org")
    team = create_group(workspace=alice.workspace, name="Finance")
    given = [f"user:{alice.user_id}", "bob@EXAMPLE.org", "Finance"]
    entries = sorted([*me(alice), *me(bob), team.principal])
    store_items(collection=collection, items=[Item("plan", TEXT, access=given)], user=alice.user)
    assert Document.objects.get().access == entries
    assert bring(alice, key="other", access=[alice.user.username, "bob"]).status_code == 202
    assert Document.objects.get(key="other").access == sorted([*me(alice), *me(bob)])


def test_a_name_of_several_is_refused_until_it_says_which(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    User.objects.filter(pk=bob.user_id).update(username="finance")
    team = create_group(workspace=alice.workspace, name="finance")

    def checked(name: str) -> Any:
        return checked_access([name], workspace_id=alice.workspace_id)

    with pytest.raises(InvalidInput, match=f"may be {team.principal}, user:{bob.user_id}"):
        checked("finance")
    assert checked("group:finance") == [team.principal]
    assert checked("user:finance") == me(bob)
    # an id goes before a name that looks like one
    User.objects.filter(pk=bob.user_id).update(username=str(alice.user_id))
    assert checked(f"user:{alice.user_id}") == me(alice)
    assert checked(str(alice.user_id)) == me(bob)


@pytest.mark.parametrize("wrong", [[], ["nobody"], ["user:0"], ["\x00"], [""], "alice", [7]])
def test_a_list_of_an_item_that_cannot_be_stores_nothing(
    alice: Membership, collection: Collection, wrong: Any
) -> None:
    items = [Item("open", "An open plan."), Item("plan", TEXT, access=wrong)]
    with pytest.raises(InvalidItems) as refused:
        store_items(collection=collection, items=items)
    assert [(item.index, item.field) for item in refused.value.problems] == [(1, "access")]
    assert not Document.objects.exists()


def test_members_of_other_workspaces_are_nobody_here(
    alice: Membership, collection: Collection
) -> None:
    stranger = MembershipFactory(user__email="eve@example.org")
    for name in (stranger.user.username, "eve@example.org", *me(stranger)):
        with pytest.raises(InvalidInput, match="nobody here"):
            checked_access([name], workspace_id=alice.workspace_id)


def test_many_lists_take_as_many_queries_as_one(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    lists = [[alice.user.username], me(bob), None, ["nobody"]] * 10
    with CaptureQueriesContext(connection) as one:
        checked_access_lists(lists[:4], workspace_id=alice.workspace_id)
    with CaptureQueriesContext(connection) as many:
        checked = checked_access_lists(lists, workspace_id=alice.workspace_id)
    assert len(many) == len(one)
    assert checked[:3] == [me(alice), me(bob), None]
    assert isinstance(checked[3], InvalidInput)


def test_the_api_takes_a_list_with_an_item(
    alice: Membership, bob: Membership, collection: Collection
) -> None:
    client = logged_in(alice)
    address = "/api/v1/collections/plans/store/items/"
    items = [{"id": "plan", "text": TEXT, "access": [alice.user.username]}]
    stored = client.post(address, {"items": items}, content_type="application/json")
    assert stored.status_code == 200, stored.content
    assert Document.objects.get().access == me(alice)
    items[0]["access"] = me(bob)
    refused = client.post(address, {"items": items}, content_type="application/json")
    assert refused.status_code == 400
    assert "Add user:" in refused.text
    sent = {"text": TEXT, "access": [*me(alice), bob.user.username]}
    assert client.put(f"{address}plan/", sent, content_type="application/json").status_code == 200
    assert texts_of(bob) == {TEXT}
