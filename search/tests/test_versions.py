"""Superseded versions are found only by those who ask for them."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from accounts.models import Membership
from common.errors import InvalidInput
from documents.ingestion.sources import text_source
from documents.models import Collection, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from search.query_options import scope_for, site_scope
from search.results import SearchResult
from search.services import search
from search.stores import open_store

pytestmark = pytest.mark.django_db

OLD = "The xylophone was repaired in spring by a master of the craft from the old town."
NEW = "The bassoon was repaired in spring by a master of the craft from the old town."


@pytest.fixture(scope="module")
def guide(shared_rows: None) -> int:
    """A document with two versions, which differ in one word."""
    collection = CollectionFactory()
    for text in (OLD, NEW):
        ingest_inline(
            collection=collection,
            sources=[text_source("guide", text, title="Guide")],
            policy=IngestionRun.Policy.NEW_VERSION,
        )
    return int(collection.pk)


@pytest.fixture
def collection(guide: int) -> Collection:
    return Collection.objects.get(pk=guide)


def found(collection: Collection, query: str, mode: Any = "hybrid", **where: Any) -> SearchResult:
    return search(query, scope=site_scope(workspace=collection.workspace, **where), mode=mode)


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_only_the_current_version_is_found(collection: Collection, mode: str) -> None:
    result = found(collection, "repaired in spring", mode)
    assert [(hit.text, hit.version, hit.is_current) for hit in result.hits] == [(NEW, 2, True)]


@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_all_versions_are_found_where_asked_for(collection: Collection, mode: str) -> None:
    result = found(collection, "repaired in spring", mode, versions="all")
    assert {(hit.version, hit.is_current) for hit in result.hits} == {(1, False), (2, True)}


def test_a_word_of_an_old_version_finds_it_only_where_asked_for(collection: Collection) -> None:
    assert found(collection, "xylophone", "lexical").hits == ()
    (hit,) = found(collection, "xylophone", "lexical", versions="all").hits
    assert hit.text == OLD
    assert hit.lexical is not None
    assert hit.lexical > 0


def test_a_language_that_only_old_versions_have_is_looked_for(collection: Collection) -> None:
    german = "Die Häuser der Stadt stehen seit langer Zeit an einem breiten Fluss im Norden."
    for text in (german, NEW):
        ingest_inline(
            collection=collection,
            sources=[text_source("other", text)],
            policy=IngestionRun.Policy.NEW_VERSION,
        )
    assert found(collection, "Haus", "lexical").hits == ()
    assert [hit.text for hit in found(collection, "Haus", "lexical", versions="all").hits] == [
        german
    ]


def test_no_word_of_an_old_version_is_suggested(collection: Collection) -> None:
    assert found(collection, "xylophonne").suggestion == ""


def test_facets_and_similar_items_know_the_current_version_only(collection: Collection) -> None:
    store = open_store(
        user=MembershipFactory(workspace=collection.workspace).user, collection=collection.slug
    )
    matches = store.similarity_search(store.embed(OLD), k=10)
    assert [match.text for match in matches] == [NEW]
    facets = search(
        "repaired", scope=site_scope(workspace=collection.workspace), facets=["*"]
    ).facets
    assert all(facet.count == 1 for values in facets.values() for facet in values)


def test_a_strange_word_for_versions_is_refused(collection: Collection) -> None:
    member: Membership = MembershipFactory(workspace=collection.workspace)
    with pytest.raises(InvalidInput, match="current, all"):
        scope_for(user=member.user, workspace=collection.workspace, versions="old")  # type: ignore[arg-type]


def test_the_api_and_the_command_ask_for_all(collection: Collection, client: Any) -> None:
    client.force_login(MembershipFactory(workspace=collection.workspace).user)
    for asked, versions in (({}, {2}), ({"versions": "all"}, {1, 2})):
        answer = client.get("/api/v1/search/", {"q": "repaired", **asked}).json()
        assert {hit["document"]["version"] for hit in answer["hits"]} == versions
    out = StringIO()
    call_command(
        *("search", "repaired", "--workspace", collection.workspace.slug),
        *("--versions", "all", "--json"),
        stdout=out,
    )
    assert {hit["version"] for hit in json.loads(out.getvalue())["hits"]} == {1, 2}
