"""Who may open a page, and who may change something on it."""

import pytest
from django.test import Client

from accounts.models import Membership, Role
from documents.models import Collection, Document
from documents.tests.factories import DocumentFactory, MembershipFactory, RunFactory
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def paths(letter: Document) -> list[str]:
    run = RunFactory(collection=letter.collection)
    return [
        "/documents/notes/",
        "/documents/notes/upload/",
        "/documents/notes/delete/",
        "/documents/notes/change/",
        f"/documents/notes/{letter.pk}/",
        f"/documents/notes/{letter.pk}/delete/",
        f"/runs/{run.pk}/",
    ]


def test_a_viewer_reads_and_is_offered_no_change(bob: Client, letter: Document) -> None:
    collection, _upload, _delete, _change, document, _delete_document, run = paths(letter)

    for path in ("/documents/", collection, document, "/runs/", run):
        answer = bob.get(path)
        assert answer.status_code == 200, path
        assert "/upload/" not in answer.text, path
        assert "/delete/" not in answer.text, path
        assert "/change/" not in answer.text, path
        assert "New collection" not in answer.text, path


def test_a_viewer_who_changes_something_is_told_whom_to_ask(bob: Client) -> None:
    answer = bob.post("/documents/", {"name": "Mine"})
    assert answer.status_code == 403
    assert "Ask an owner" in answer.text


def test_who_may_delete_a_collection_is_told_how_many_documents_go_and_the_names_of_some(
    client: Client, alice: Membership, notes: Collection, letter: Document
) -> None:
    DocumentFactory(collection=notes, title="Secret", access=[f"user:{alice.user_id}"])
    editor = MembershipFactory(workspace=alice.workspace, role=Role.EDITOR)
    other = logged_in(editor)
    path = "/documents/notes/delete/"

    assert "Secret" in client.get(path).text
    assert str(letter) in other.get(path).text
    assert "<strong>2</strong> documents" in other.get(path).text
    assert "Secret" not in other.get(path).text
