"""Judging in the admin: what a question finds now, graded by a press of a button."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, DocumentFactory, UserFactory
from search.judgements import Grade, judge
from search.log import record_search
from search.models import Judgement, SearchLog
from search.query_options import site_scope
from search.services import search
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PAGE = reverse("admin:search_judgement_add")
TEXTS = {
    "aspirin": "Aspirin eases pain and thins the blood.",
    "bread": "Bread is baked from <b>flour</b>.",
}
QUESTION = "what eases pain?"


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(slug="notes", default_language="en")
    ingest_inline(
        collection=collection, sources=[text_source(key, text) for key, text in TEXTS.items()]
    )
    return collection


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(username="curator", is_superuser=True))


def asked(collection: Collection, question: str = QUESTION) -> str:
    return reverse(
        "admin:search_judgement_add", query={"collection": collection.pk, "question": question}
    )


def press(
    client: Client, collection: Collection, document: Document, grade: Any, **more: Any
) -> Any:
    form = {"document": document.pk, "grade": grade, **more}
    return client.post(asked(collection), form)


def test_without_a_question_the_page_asks_for_one(client: Client) -> None:
    page = client.get(PAGE).content.decode()
    assert 'name="question"' in page
    assert 'name="collection"' in page
    assert 'name="grade"' not in page


def test_hits_are_shown_with_their_buttons_and_escaped(
    client: Client, collection: Collection
) -> None:
    page = client.get(asked(collection)).content.decode()
    assert "<mark>eases</mark>" in page
    assert "&lt;b&gt;flour" in page
    for document in Document.objects.all():
        assert f'id="document-{document.pk}"' in page
    assert page.count('name="grade" value="2"') == len(TEXTS) + 1  # one more for another document


def test_a_press_judges_and_another_takes_it_back(client: Client, collection: Collection) -> None:
    document = Document.objects.get(key="aspirin")
    chunk = document.chunks.get()
    answer = press(client, collection, document, 2, chunk=chunk.pk)
    assert answer.status_code == 302
    assert answer.url == f"{asked(collection)}#document-{document.pk}"
    row = Judgement.objects.get()
    assert (row.grade, row.document, row.chunk) == (Grade.PINNED, document, chunk)
    assert row.user.username == "curator"
    page = client.get(asked(collection)).content.decode()
    assert page.count('aria-pressed="true"') == 1
    assert "1</strong> question of Notes has a good answer" in " ".join(page.split())

    press(client, collection, document, 0)
    assert Judgement.objects.get().grade == Grade.BAD
    press(client, collection, document, "none")
    assert not Judgement.objects.exists()


def test_looking_at_the_page_judges_nothing(client: Client, collection: Collection) -> None:
    document = Document.objects.get(key="aspirin")
    client.get(asked(collection) + f"&document={document.pk}&grade=2")
    assert not Judgement.objects.exists()


def test_a_judged_document_that_is_not_found_is_listed_too(
    client: Client, collection: Collection
) -> None:
    document = DocumentFactory(collection=collection, title="Never found")
    press(client, collection, document, 1)
    page = client.get(asked(collection)).content.decode()
    assert "Rated, but not among the first 2" in page
    assert "Never found" in page


def test_what_cannot_be_is_said_and_judges_nothing(client: Client, collection: Collection) -> None:
    document = Document.objects.get(key="aspirin")
    for grade in ("7", "", "²", "1" * 30):
        press(client, collection, document, grade)
    assert press(client, collection, DocumentFactory(), 1).status_code == 302
    assert "its own collection" in client.get(asked(collection)).content.decode()
    assert client.post(asked(collection), {"document": "x", "grade": 1}).status_code == 404
    assert not Judgement.objects.exists()


@pytest.mark.parametrize("question", ["?!", "-word", "x" * 5000])
def test_a_question_that_cannot_be_asked_is_explained(
    client: Client, collection: Collection, question: str
) -> None:
    answer = client.get(asked(collection, question))
    assert answer.status_code == 200
    assert answer.context["form"].errors


def test_from_the_log_to_the_question(client: Client, collection: Collection) -> None:
    CollectionFactory(workspace=collection.workspace)
    scope = site_scope(workspace=collection.workspace)
    record_search(result=search(QUESTION, scope=scope), scope=scope, user=None, source="web")
    answer = client.get(PAGE, {"log": SearchLog.objects.get().pk})
    assert answer.url == asked(collection)
    for nothing in ("0", "x", "9" * 30):
        assert client.get(PAGE, {"log": nothing}).status_code == 404


def test_the_log_is_narrowed_to_what_needs_looking_at(
    client: Client, collection: Collection
) -> None:
    scope = site_scope(workspace=collection.workspace)
    for question, mode in (("pain", "hybrid"), ("zebra", "hybrid"), ("zebras", "lexical")):
        result = search(question, scope=scope, mode=mode)  # type: ignore[arg-type]
        record_search(result=result, scope=scope, user=None, source="web")
    SearchLog.objects.filter(query="pain").update(degraded=["vector"])
    url = reverse("admin:search_searchlog_changelist")

    def shown(**narrowed: str) -> set[str]:
        return {row.query for row in client.get(url, narrowed).context["cl"].result_list}

    assert shown() == {"pain", "zebra", "zebras"}
    assert shown(found="nothing") == {"zebras"}
    assert shown(found="no-words") == {"zebra", "zebras"}
    assert shown(found="some") == {"pain", "zebra"}
    assert shown(degraded="yes") == {"pain"}
    assert shown(degraded="no") == {"zebra", "zebras"}
    assert shown(mode="lexical") == {"zebras"}
    assert shown(source="api") == set()
    assert shown(q="zebr") == {"zebra", "zebras"}
    assert shown(workspace__id__exact=str(collection.workspace_id + 1)) == set()


def test_grade_and_note_can_be_changed(client: Client, collection: Collection) -> None:
    row = judge(
        collection=collection,
        question=QUESTION,
        document=Document.objects.get(key="aspirin"),
        grade=Grade.GOOD,
        user=None,
    )
    url = reverse("admin:search_judgement_change", args=[row.pk])
    client.post(url, {"grade": 1, "note": "why"})
    row.refresh_from_db()
    assert (row.note, row.user) == ("why", None)
    client.post(url, {"grade": 0, "note": "why", "question": "another"})
    row.refresh_from_db()
    assert (row.grade, row.question) == (Grade.BAD, QUESTION)
    assert row.user.username == "curator"


def test_who_may_not_judge_sees_no_hits(collection: Collection) -> None:
    """Judging takes the right to judge, and the right to read passages."""
    user = UserFactory(is_staff=True)
    for codename in ("add_judgement", "view_chunk"):
        client = logged_in(user)
        assert client.get(asked(collection)).status_code == 403
        assert press(client, collection, Document.objects.all()[0], 1).status_code == 403
        user.user_permissions.add(Permission.objects.get(codename=codename))
    client = logged_in(user)
    assert client.get(asked(collection)).status_code == 200
