"""Passages that are in no segment of the lexical index yet: found with the same scores, and looked
up without reading others."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection, transaction

from common.rls import workspace_context
from documents import lexical_differences, lexical_index
from documents.lexical_search import find_terms
from documents.models import Chunk, Collection, PendingChunk, PendingPosting, RemovedChunk
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.words import scores
from search.query_options import site_scope
from search.services import search

WORDS = ("otter", "heron", "beaver", "salmon", "badger", "falcon")
QUESTION = "otter heron salmon otter"
LEXICAL_TABLES = ("documents_pendingposting", "documents_pendingchunk", "documents_posting")


def fill(collection: Collection, count: int, *, at_once: bool = False) -> None:
    """Passages in which the words are differently often, each written by a statement of its own,
    or all by one."""
    document = DocumentFactory(collection=collection)
    chunks = [
        ChunkFactory.build(
            workspace=collection.workspace,
            collection=collection,
            document=document,
            space=collection.space,
            ordinal=number,
            context="Otter" if number % 5 == 0 else "",
            text=" ".join(word for n, word in enumerate(WORDS) for _ in range(number % (n + 2))),
            language="simple",
            is_current=number % 7 != 6,
        )
        for number in range(count)
    ]
    for part in [chunks] if at_once else [[chunk] for chunk in chunks]:
        Chunk.objects.bulk_create(part)


def found(collection: Collection, mode: str, question: str = QUESTION) -> list[tuple[int, float]]:
    scope = site_scope(workspace=collection.workspace)
    hits = search(question, scope=scope, mode=mode, k=50).hits
    return [(hit.chunk_id, hit.score) for hit in hits]


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [False, True])
def test_hits_and_scores_are_the_same_pending_half_indexed_and_indexed(
    monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    collection = CollectionFactory()
    fill(collection, 40, at_once=at_once)
    questions = (QUESTION, "otter sal*")

    def all_found() -> list[Any]:
        return [
            *(found(collection, "lexical", each) for each in questions),
            *(found(collection, "hybrid", each) for each in questions),
            scores(collection, QUESTION),
            scores(collection, QUESTION, superseded=True),
        ]

    pending = all_found()
    assert len(pending[0]) > 20
    with monkeypatch.context() as patch:
        # One batch, so that of what a statement has written some stays.
        patch.setattr(lexical_index, "SEGMENT_MAX_CHUNKS", 15)
        assert lexical_index._index_batch(collection.pk) == 15
    assert PendingChunk.objects.count() == 25
    assert all_found() == pending
    assert lexical_differences.find_differences(collection.pk) == []
    lexical_index.index_pending(collection.pk)
    assert not PendingPosting.objects.exists()
    assert all_found() == pending


@pytest.mark.django_db
def test_a_rollback_leaves_no_words() -> None:
    collection = CollectionFactory()
    fill(collection, 3)
    before = scores(collection, QUESTION)
    rows = PendingPosting.objects.count()
    with transaction.atomic():
        fill(collection, 5)
        assert len(scores(collection, QUESTION)) > len(before)
        transaction.set_rollback(True)
    assert PendingPosting.objects.count() == rows
    assert scores(collection, QUESTION) == before


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [False, True])
def test_words_of_pending_passages_are_forgotten_with_them(at_once: bool) -> None:
    collection = CollectionFactory()
    fill(collection, 10, at_once=at_once)
    document = DocumentFactory(collection=collection)
    ChunkFactory(document=document, text="zeppelin and otter", language="simple")
    chosen = Chunk.objects.filter(document=document)
    lexical_index.forget_words(chosen)
    chosen.delete()
    assert not PendingPosting.objects.filter(lexeme="zeppelin").exists()
    assert PendingPosting.objects.filter(lexeme="otter").exists()
    assert lexical_differences.find_differences(collection.pk) == []
    before = scores(collection, QUESTION)
    lexical_index.index_pending(collection.pk)
    assert not RemovedChunk.objects.exists()
    assert scores(collection, QUESTION) == before


@pytest.mark.django_db
def test_a_changed_pending_passage_is_found_by_its_new_words_only() -> None:
    collection = CollectionFactory()
    chunk = ChunkFactory(
        document=DocumentFactory(collection=collection), text="otter", language="simple"
    )
    chosen = Chunk.objects.filter(pk=chunk.pk)
    lexical_index.forget_words(chosen)
    chosen.update(text="heron")
    assert scores(collection, "otter") == {}
    assert scores(collection, "heron").keys() == {chunk.pk}
    assert not PendingPosting.objects.filter(lexeme="otter").exists()
    assert lexical_differences.find_differences(collection.pk) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "damage",
    [
        lambda: PendingPosting.objects.filter(lexeme="heron").delete(),
        lambda: PendingPosting.objects.filter(lexeme="heron").update(entries=[1]),
        lambda: PendingPosting.objects.filter(lexeme="heron").update(is_current=False),
    ],
)
def test_damaged_words_of_pending_passages_are_found_and_a_rebuild_mends_them(
    damage: Callable[[], Any],
) -> None:
    collection = CollectionFactory()
    fill(collection, 6)
    damage()
    assert "wait to be indexed" in " ".join(lexical_differences.find_differences(collection.pk))
    lexical_index.rebuild_lexical_index(collection.pk)
    assert lexical_differences.find_differences(collection.pk) == []
    assert not PendingPosting.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_fence_hides_words_of_pending_passages_of_other_workspaces() -> None:
    mine, other = CollectionFactory(), CollectionFactory()
    for each in (mine, other):
        fill(each, 4)
    both = [mine.pk, other.pk]
    alone = find_terms(collections=[mine.pk], text=QUESTION)
    with workspace_context(mine.workspace_id):
        seen = find_terms(collections=both, text=QUESTION)
        assert set(PendingPosting.objects.values_list("workspace_id", flat=True)) == {
            mine.workspace_id
        }
    assert seen.statistics == alone.statistics
    assert seen.score().best(100)[0].tolist() == alone.score().best(100)[0].tolist()


@pytest.mark.django_db(transaction=True)
def test_a_search_reads_no_pending_passages_of_other_collections_whatever_was_planned_before() -> (
    None
):
    """The plan is made and kept while the tables are empty and known to be so, and again for
    statistics that say the opposite of what is there."""
    collection, other = CollectionFactory(), CollectionFactory()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_pendingposting, documents_pendingchunk")
    fill(collection, 5)
    lexical_index.index_pending(collection.pk)
    for _ in range(2):
        found(collection, "lexical")
    fill(collection, 5)
    own = rows_read(lambda: found(collection, "hybrid"))
    fill(other, 600, at_once=True)
    fill(other, 60)
    assert rows_read(lambda: found(collection, "hybrid")) == own
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE documents_pendingposting, documents_pendingchunk")
    assert rows_read(lambda: found(collection, "hybrid")) == own
    lexical_index.index_pending(other.pk)
    assert rows_read(lambda: found(collection, "hybrid")) == own


def believe(rows: dict[str, int]) -> None:
    """Let the planner take each page of these tables for one with so many rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = rows, relpages = 1"
            " FROM unnest(%s::text[], %s::int[]) AS wrong (name, rows) WHERE oid = name::regclass",
            [list(rows), list(rows.values())],
        )


@pytest.mark.django_db(transaction=True)
def test_forgetting_reads_each_pending_passage_once_whatever_the_statistics_say() -> None:
    collection = CollectionFactory()
    fill(collection, 60)
    believe({"documents_chunk": 0, "documents_pendingposting": 0, "documents_pendingchunk": 1000})
    chosen = Chunk.objects.filter(collection=collection)
    read = dict(rows_read(lambda: lexical_index.forget_words(chosen)))
    assert read["documents_pendingchunk"] <= 60
    assert set(PendingPosting.objects.values_list("lexeme", flat=True)) == {""}


@pytest.mark.django_db(transaction=True)
def test_a_search_reads_the_passages_that_match_whatever_the_statistics_say() -> None:
    collection = CollectionFactory()
    fill(collection, 200, at_once=True)
    ChunkFactory(document=DocumentFactory(collection=collection), text="zeppelin")
    lexical_index.index_pending(collection.pk)
    believe({"documents_chunk": 0, "documents_document": 0, "documents_posting": 1000})
    connection.close()  # and the plans that it kept
    tables = ["documents_chunk", "documents_document", "documents_posting"]
    read = rows_read(lambda: found(collection, "lexical", "zeppelin"), tables)
    assert all(rows < 20 for _, rows in read), read


def rows_read(
    work: Callable[[], Any], tables: Sequence[str] = LEXICAL_TABLES
) -> list[tuple[str, int]]:
    """Rows of these tables that `work` reads, by table: by an index or a scan."""

    def counters() -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT relname, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables"
                " WHERE relname = ANY(%s)",
                [list(tables)],
            )
            return dict(cursor.fetchall())

    before = counters()
    work()
    after = counters()
    return sorted((name, after[name] - before[name]) for name in after)
