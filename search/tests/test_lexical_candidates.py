"""Which chunks BM25 looks at among thousands: all that hold a rare word, by way of the index."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from documents import lexical_index
from documents.models import Chunk, Collection
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from search.query import parse_query
from search.query_options import site_scope
from search.retrieval.arms import retrieve
from search.retrieval.scope_facts import read_scope_facts
from search.retrieval.statements import gather_statement
from search.services import search
from tests.plugin import committed_rows

pytestmark = pytest.mark.django_db

COUNT = 12_000
RARE = 30


@pytest.fixture(scope="module")
def collection(django_db_setup: None, django_db_blocker: Any) -> Iterator[Collection]:
    """Passages that all hold “harbour”; the last thirty also “zeppelin”, and half of them “morning”
    or “evening”. Loaded in this order, so that a cut at the first found loses the rare ones.

    Committed once for all tests, which only read: to index them takes seconds."""
    with committed_rows(django_db_blocker):
        yield indexed_passages()


def indexed_passages() -> Collection:
    collection = CollectionFactory()
    first, last = (DocumentFactory(collection=collection, key=key) for key in ("first", "last"))
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO documents_chunk (workspace_id, collection_id, document_id, space_id,
                ordinal, key, text, context, heading_path, summary, token_count, start, "end",
                media_type, metadata, language, content_sha256)
            SELECT %(workspace)s, %(collection)s,
                   CASE WHEN n <= %(frequent)s THEN %(first)s ELSE %(last)s END, %(space)s, n, '',
                   'the harbour in the ' || CASE n %% 2 WHEN 0 THEN 'morning' ELSE 'evening' END
                       || ' number' || n || CASE WHEN n > %(frequent)s THEN ' zeppelin' ELSE '' END,
                   '', '{}', '', 5, 100 * n, 100 * n + 50, 'text/plain',
                   jsonb_build_object('part', CASE WHEN n > %(frequent)s THEN 2 ELSE 1 END),
                   'english', lpad(n::text, 64, '0')
            FROM generate_series(1, %(count)s) AS n
            """,
            {
                "workspace": collection.workspace_id,
                "collection": collection.pk,
                "first": first.pk,
                "last": last.pk,
                "space": collection.space_id,
                "frequent": COUNT - RARE,
                "count": COUNT,
            },
        )
        lexical_index.index_pending(collection.pk)
        cursor.execute("ANALYZE documents_chunk, documents_posting")
    return collection


def keys(collection: Collection, query: str, **options: Any) -> list[str]:
    scope = site_scope(workspace=collection.workspace, filter=options.pop("filter", None))
    result = search(query, scope=scope, mode="lexical", k=100, **options)
    return [hit.document_key for hit in result.hits]


def test_every_passage_with_the_rare_word_is_found_however_common_the_others_are(
    collection: Collection,
) -> None:
    found = keys(collection, "zeppelin over the harbour in the morning")
    assert found[:RARE] == ["last"] * RARE
    assert len(found) == 100


def test_a_filter_to_where_the_rare_word_is_missing_still_finds_by_the_common_ones(
    collection: Collection,
) -> None:
    assert keys(collection, "number7 harbour", filter={"part": 2}) == ["last"] * RARE
    assert keys(collection, "zeppelin harbour", filter={"part": 1}) == ["first"] * 100


def test_common_words_alone_are_found_by_all_of_them_first(collection: Collection) -> None:
    scope = site_scope(workspace=collection.workspace)
    found = retrieve(parse_query("harbour morning"), scope=scope, mode="lexical", depth=3000)
    assert len(found.candidates) == 3000
    texts = Chunk.objects.filter(pk__in=[each.chunk_id for each in found.candidates])
    assert not texts.filter(text__contains="evening").exists()


@pytest.mark.parametrize("query", ["harbour", "zeppelin over the harbour", "harbour morning"])
def test_words_are_looked_up_in_the_index_and_no_table_is_read_through(
    collection: Collection, query: str
) -> None:
    scope = site_scope(workspace=collection.workspace)
    sql, parameters = gather_statement(
        parse_query(query), scope=scope, depth=200, lexical=True, spaces=()
    )
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + sql, parameters)
        plan = cursor.fetchone()[0]
    nodes = list(walk((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))
    assert "documents_posting_pkey" in {node.get("Index Name") for node in nodes}
    read_through = {
        node["Relation Name"]
        for node in nodes
        if node["Node Type"] == "Seq Scan" and "Relation Name" in node
    }
    assert "documents_chunk" not in read_through


def test_the_mean_of_a_large_scope_is_not_sampled_again_for_each_passage(
    collection: Collection,
) -> None:
    small = CollectionFactory(workspace=collection.workspace)
    for each, is_sampled_again in ((small, True), (collection, False)):
        scope = site_scope(workspace=each.workspace, collections=[each.slug])
        before = read_scope_facts(scope).state
        ChunkFactory(document=DocumentFactory(collection=each))
        after = read_scope_facts(scope).state
        assert after.chunks[0] == before.chunks[0] + 1
        assert (after.content != before.content) == is_sampled_again


def walk(node: dict[str, Any]) -> Any:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)
