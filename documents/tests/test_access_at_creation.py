"""An access list that comes with a document: nobody else ever sees it, and nothing widens it."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from accounts.models import Membership, Role
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.services import (
    Upload,
    ingest_inline,
    ingest_sources,
    ingest_uploads,
    update_document,
)
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
