"""The search log: written for each question, never in the way, and nothing deleted stays in it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Workspace
from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import delete_collection, delete_document, ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory, UserFactory
from search.log import record_search
from search.models import SearchLog
from search.query_options import site_scope
from search.results import Scope, SearchResult
from search.services import search
from search.tasks import prune_search_log

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXTS = {"aspirin": "Aspirin eases pain.", "bread": "Bread is baked from flour."}


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(default_language="en")
    ingest_inline(
        collection=collection, sources=[text_source(key, text) for key, text in TEXTS.items()]
    )
    return collection


def ask(
    collection: Collection, query: str, *, user: Any = None, **options: Any
) -> tuple[SearchResult, Scope]:
    scope = site_scope(workspace=collection.workspace, filter=options.pop("filter", None))
    result = search(query, scope=scope, **options)
    record_search(result=result, scope=scope, user=user, source=SearchLog.Source.WEB)
    return result, scope


def test_a_search_is_noted_with_how_it_went(collection: Collection) -> None:
    user = UserFactory()
    result, _ = ask(collection, "what eases pain", user=user)
    row = SearchLog.objects.get()
    assert (row.query, row.mode, row.source) == ("what eases pain", "hybrid", "web")
    assert (row.workspace, row.user) == (collection.workspace, user)
    assert row.collections == [collection.pk]
    assert row.documents == [hit.document_id for hit in result.hits]
    assert len(row.documents) == 2
    assert (row.total, row.lexical_total, row.degraded) == (2, 1, [])
    assert row.milliseconds == result.milliseconds
    assert row.filter is None
    assert row.confidence is None, "a search has no answer"


def test_a_filter_is_noted_as_json(collection: Collection) -> None:
    ask(collection, "pain", filter="year>=2020")
    assert SearchLog.objects.get().filter == {"year": {"$gte": 2020}}
    assert list(SearchLog.objects.found_nothing()) == list(SearchLog.objects.all())


def test_one_insert_and_nothing_else(collection: Collection) -> None:
    scope = site_scope(workspace=collection.workspace)
    result = search("pain", scope=scope)
    with CaptureQueriesContext(connection) as captured:
        record_search(result=result, scope=scope, user=None, source="api")
    statements = [each["sql"].split()[0] for each in captured]
    # the savepoint is the test's transaction's: without one there is the INSERT alone
    assert statements == ["SAVEPOINT", "INSERT", "RELEASE"]


def test_a_page_further_on_is_no_other_question(collection: Collection) -> None:
    ask(collection, "pain", offset=1)
    assert not SearchLog.objects.exists()


def test_it_can_be_switched_off(collection: Collection, settings: Any) -> None:
    settings.SEARCH_LOG = False
    ask(collection, "pain")
    assert not SearchLog.objects.exists()


def test_nobody_in_particular_may_ask(collection: Collection) -> None:
    ask(collection, "pain", user=AnonymousUser())
    assert SearchLog.objects.get().user is None


@pytest.mark.parametrize("query", ["pain \x00 relief", "pain \ud800 relief", "pain " * 500])
def test_whatever_was_typed_is_noted(collection: Collection, query: str) -> None:
    result, scope = ask(collection, "pain")
    record_search(result=replace(result, query=query), scope=scope, user=None, source="web")
    assert SearchLog.objects.count() == 2


def test_a_log_that_cannot_be_written_breaks_no_search(
    collection: Collection, caplog: pytest.LogCaptureFixture
) -> None:
    with transaction.atomic():
        result, scope = ask(collection, "pain")
        nowhere = replace(result, mode="a mode that the column has no room for")  # type: ignore[arg-type]
        record_search(result=nowhere, scope=scope, user=None, source="web")
        # the transaction around it is whole
        assert Document.objects.count() == len(TEXTS)
    assert "could not be logged" in caplog.text
    assert SearchLog.objects.count() == 1


def test_old_rows_are_pruned_and_new_ones_stay(collection: Collection, settings: Any) -> None:
    for _ in range(3):
        ask(collection, "pain")
    old, new, _ = SearchLog.objects.order_by("id")
    SearchLog.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=91))
    SearchLog.objects.filter(pk=new.pk).update(created_at=timezone.now() - timedelta(days=89))
    assert prune_search_log() == 1
    assert not SearchLog.objects.filter(pk=old.pk).exists()
    settings.SEARCH_LOG_DAYS = 30
    assert prune_search_log() == 1
    assert SearchLog.objects.count() == 1


def test_members_see_their_own_questions_only(collection: Collection) -> None:
    alice = MembershipFactory(workspace=collection.workspace).user
    bob = MembershipFactory(workspace=collection.workspace).user
    charlie = MembershipFactory().user
    ask(collection, "what alice asks", user=alice)
    ask(collection, "what a former member asked", user=charlie)
    assert [row.query for row in SearchLog.objects.visible_to(alice)] == ["what alice asks"]
    for nobody in (bob, charlie, None, AnonymousUser()):
        assert not SearchLog.objects.visible_to(nobody).exists()


# --- deletion ----------------------------------------------------------------------------------


def test_a_deleted_document_leaves_the_log(collection: Collection) -> None:
    ask(collection, "pain")
    gone, stays = SearchLog.objects.get().documents
    delete_document(document=Document.objects.get(pk=gone))
    assert SearchLog.objects.get().documents == [stays]


def test_a_deleted_collection_leaves_the_log_with_what_was_asked_of_it_alone(
    collection: Collection,
) -> None:
    ask(collection, "of it alone")
    other = CollectionFactory(workspace=collection.workspace)
    ask(collection, "of both")
    delete_collection(collection=collection)
    row = SearchLog.objects.get()
    assert (row.query, row.collections, row.documents) == ("of both", [other.pk], [])


def test_a_deleted_user_or_workspace_leaves_no_question(collection: Collection) -> None:
    user = UserFactory()
    ask(collection, "a private question", user=user)
    ask(collection, "nobody's question")
    user.delete()
    assert [row.query for row in SearchLog.objects.all()] == ["nobody's question"]
    Workspace.objects.filter(pk=collection.workspace_id).delete()
    assert not SearchLog.objects.exists()
