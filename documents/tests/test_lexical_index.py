"""The lexical index after any sequence of changes, and of migrations: the same as one that is built
from nothing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from common.bm25 import K1, B, Postings, Statistics, Term, merged, pack, score, unpack
from documents import lexical_differences, lexical_index
from documents.models import (
    Chunk,
    Collection,
    Lexeme,
    LexicalSegment,
    PendingChunk,
    PendingPosting,
    Posting,
    RemovedChunk,
)
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.words import chunk_counts, scores

WORDS = ("otter", "heron", "beaver", "salmon", "badger", "falcon")


def expected(collection: Collection, words: tuple[str, ...]) -> dict[int, float]:
    """BM25 by the formula, from the texts of current chunks."""
    texts = {
        pk: context.split() * 2 + text.split()
        for pk, context, text in Chunk.objects.filter(
            collection=collection, is_current=True
        ).values_list("id", "context", "text")
    }
    texts = {pk: tokens for pk, tokens in texts.items() if tokens}
    average = max(1.0, np.mean([len(set(tokens)) for tokens in texts.values()] or [1]))
    found: dict[int, float] = {}
    for word in words:
        held = sum(word in tokens for tokens in texts.values())
        idf = np.log(1 + (len(texts) - held + 0.5) / (held + 0.5))
        for pk, tokens in texts.items():
            if tf := tokens.count(word):
                norm = K1 * (1 - B + B * len(set(tokens)) / average)
                found[pk] = found.get(pk, 0.0) + idf * tf * (K1 + 1) / (tf + norm)
    return found


def beside(work: Callable[[], Any]) -> None:
    """Do it on a connection of its own, and wait a minute at most."""

    def working() -> None:
        try:
            work()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(working).result(timeout=60)


texts = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
steps = st.one_of(
    st.tuples(st.just("put"), texts, texts),
    st.tuples(st.just("change"), st.integers(0, 99), texts),
    st.tuples(st.just("supersede"), st.integers(0, 99)),
    st.tuples(st.just("delete"), st.integers(0, 99)),
    st.tuples(st.just("move"), st.integers(0, 99)),
    st.tuples(st.just("index")),
    st.tuples(st.just("compact")),
    st.tuples(st.just("rebuild")),
)


def take(collection: Collection, other: Collection, step: tuple[Any, ...]) -> None:
    """Do one step of a sequence, as the services do it."""
    kind, *arguments = step
    chunks = list(Chunk.objects.filter(collection=collection).order_by("id"))
    if kind == "put":
        text, context = arguments
        document = DocumentFactory(collection=collection)
        ChunkFactory(
            document=document, text=text, context=context, language="simple", embedding=None
        )
    elif kind == "index":
        lexical_index.index_pending(collection.pk)
    elif kind == "compact":
        lexical_index.merge_segments(collection.pk, everything=True)
    elif kind == "rebuild":
        lexical_index.rebuild_lexical_index(collection.pk)
    elif chunks:
        chosen = Chunk.objects.filter(pk=chunks[arguments[0] % len(chunks)].pk)
        if kind == "supersede":
            chosen.update(is_current=False)
            return
        if kind == "change":
            chosen = chosen.exclude(text=arguments[1])
        lexical_index.forget_words(chosen)
        if kind == "change":
            chosen.update(text=arguments[1])
        elif kind == "move":
            chosen.update(collection=other)
        else:
            chosen.delete()


@pytest.mark.django_db
@given(st.lists(steps, max_size=25))
@hypothesis_settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_sequence_of_changes_leaves_the_index_of_a_rebuild(
    sequence: list[tuple[Any, ...]],
) -> None:
    with transaction.atomic():
        collection = CollectionFactory()
        other = CollectionFactory(workspace=collection.workspace, space=collection.space)
        for step in sequence:
            take(collection, other, step)
        question = "otter heron falcon otter"
        for each in (collection, other):
            assert lexical_differences.find_differences(each.pk, sample=10**6) == []
            found = scores(each, question)
            both = scores(each, question, superseded=True)
            wanted = expected(each, ("otter", "otter", "heron", "falcon"))
            assert found == pytest.approx(wanted, rel=1e-5)
            assert both.items() >= found.items()
            lexical_index.rebuild_lexical_index(each.pk)
            assert scores(each, question) == found  # to the last bit
            assert scores(each, question, superseded=True) == both
            assert lexical_differences.find_differences(each.pk, sample=10**6) == []
        Collection.objects.filter(pk__in=[collection.pk, other.pk]).delete()
        for model in (LexicalSegment, Posting, PendingChunk, RemovedChunk, Lexeme):
            assert not model.objects.exists()
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_no_word_of_a_forgotten_text_is_left_in_any_row() -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    for text in ("zeppelin and harbour", "zeppelin at night", "the harbour at night"):
        ChunkFactory(document=document, text=text)
    lexical_index.index_pending(collection.pk)
    gone = Chunk.objects.filter(text__contains="zeppelin")
    lexical_index.forget_words(gone)
    gone.delete()
    assert not Posting.objects.filter(lexeme="zeppelin").exists()
    assert not Lexeme.objects.filter(lexeme="zeppelin").exists()
    assert Posting.objects.filter(lexeme="harbour").exists()
    assert scores(collection, "zeppelin") == {}
    assert len(scores(collection, "harbour")) == 1
    assert lexical_differences.find_differences(collection.pk) == []


@pytest.mark.django_db
def test_segments_of_one_size_are_merged_and_removed_chunks_left_out() -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    for number in range(lexical_index.MERGE_FANOUT):
        ChunkFactory(document=document, text=f"otter number{number}")
        lexical_index.index_pending(collection.pk)
        assert LexicalSegment.objects.count() == (number + 1) % lexical_index.MERGE_FANOUT or 1
    Chunk.objects.filter(ordinal=0).delete()
    assert RemovedChunk.objects.count() == 1
    lexical_index.merge_segments(collection.pk, everything=True)
    assert not RemovedChunk.objects.exists()
    assert LexicalSegment.objects.get().chunk_count == lexical_index.MERGE_FANOUT - 1
    assert lexical_differences.find_differences(collection.pk, sample=1000) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda: PendingChunk.objects.all().delete(), "not indexed"),
        (lambda: LexicalSegment.objects.update(total_length=1), "counts other chunks"),
        (lambda: Posting.objects.filter(lexeme="otter").delete(), "other words"),
        (lambda: RemovedChunk.objects.all().delete(), "gone or have other words"),
    ],
)
def test_damage_is_found_and_a_rebuild_mends_it(damage: Callable[[], Any], said: str) -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    for number in range(3):
        ChunkFactory(document=document, text=f"otter number{number}")
    lexical_index.index_pending(collection.pk)
    Chunk.objects.filter(ordinal=2).delete()
    ChunkFactory(document=document, text="a late heron")
    assert lexical_differences.find_differences(collection.pk) == []
    damage()
    assert said in " ".join(lexical_differences.find_differences(collection.pk))
    lexical_index.rebuild_lexical_index(collection.pk)
    assert lexical_differences.find_differences(collection.pk) == []


@pytest.mark.django_db(transaction=True)
def test_a_chunk_deleted_while_it_is_indexed_is_not_found_nor_counted() -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    first, second = (ChunkFactory(document=document, text=f"otter {n}") for n in range(2))

    def delete() -> None:
        Chunk.objects.filter(pk=first.pk).delete()

    with transaction.atomic():
        assert lexical_index.index_pending(collection.pk) == 2
        beside(delete)  # does not wait for the transaction that indexes
    assert scores(collection, "otter").keys() == {second.pk}
    assert lexical_differences.find_differences(collection.pk) == []
    lexical_index.rebuild_lexical_index(collection.pk)
    assert scores(collection, "otter").keys() == {second.pk}


@pytest.mark.django_db(transaction=True)
def test_a_deletion_under_way_does_not_hold_up_indexing_or_merging() -> None:
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    chunks = [ChunkFactory(document=document, text=f"otter {n}") for n in range(3)]
    lexical_index.index_pending(collection.pk)
    late = ChunkFactory(document=document, text="otter late")
    with transaction.atomic():
        Chunk.objects.filter(pk__in=[chunks[0].pk, late.pk]).delete()

        def index() -> None:
            lexical_index.index_pending(collection.pk)
            lexical_index.merge_segments(collection.pk, everything=True)

        beside(index)
    assert scores(collection, "otter").keys() == {chunks[1].pk, chunks[2].pk}
    assert lexical_differences.find_differences(collection.pk) == []
    lexical_index.merge_segments(collection.pk, everything=True)
    assert not RemovedChunk.objects.exists()


ids = st.lists(st.integers(0, 1 << 20), unique=True, min_size=1, max_size=200).map(sorted)


@given(ids, st.randoms())
def test_postings_survive_packing(numbers: list[int], chance: Any) -> None:
    postings = Postings(
        np.array(numbers, np.int64),
        np.array([chance.randint(1, 255) for _ in numbers]),
        np.array([chance.randint(1, 65_535) for _ in numbers]),
    )
    back = merged([unpack(base, data) for base, data in pack(postings).items()])
    for name in ("ids", "frequencies", "lengths"):
        assert np.array_equal(getattr(back, name), getattr(postings, name))


@given(st.lists(ids, min_size=1, max_size=4), st.integers(1, 50))
def test_the_best_are_those_of_a_full_sort_dense_or_sparse(
    lists: list[list[int]], count: int
) -> None:
    chance = np.random.default_rng(3)

    def terms(factor: int) -> list[Term]:
        made = []
        for numbers in lists:
            random = chance.integers(1, 20, (2, len(numbers)))
            found = Postings(np.array(numbers, np.int64) * factor, random[0], random[1])
            made.append(Term(counted=[found]))
        return made

    for factor in (1, 70_001):  # within few blocks, and each in a block of its own
        found = score([(Statistics(1000, 10_000), terms(factor))])
        every, values = found.best(10**6)
        order = sorted(zip(-values, every, strict=True))
        best, best_values = found.best(count)
        assert list(zip(-best_values, best, strict=True)) == order[: len(best)]
        assert len(best) >= min(count, len(every))
        assert np.array_equal(found.of(every), values)
        assert not found.of(np.array([10**12])).any()


BEFORE = "0013_chunk_edits"
BEFORE_PENDING_POSTINGS = "0021_chunk_tokens"
QUESTION = "otter heron"


def migrate(target: str = "") -> None:
    """To a migration of documents, which undoes those of other apps that need later ones; or to the
    last of all apps."""
    call_command("migrate", *(["documents", target] if target else []), verbosity=0)


@pytest.fixture
def collection(transactional_db: None) -> Iterator[Collection]:
    yield half_indexed()
    migrate()


def half_indexed() -> Collection:
    """Chunks in segments and in none, one that is gone and one of a superseded version."""
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    for number in range(6):
        ChunkFactory(document=document, text=f"otter {'heron ' * number} of river {number}")
        if number < 4:
            lexical_index.index_pending(collection.pk)
    document.chunks.filter(ordinal=1).delete()
    document.chunks.filter(ordinal=2).update(is_current=False)
    return collection


@pytest.mark.nightly
def test_back_and_forth_again_every_chunk_is_found_with_the_same_score(
    collection: Collection,
) -> None:
    changed = half_indexed()
    found, counts = scores(collection, QUESTION), chunk_counts(collection)
    superseded = scores(collection, QUESTION, superseded=True)
    migrate(BEFORE)
    former_statistics_are_counted_anew()
    with connection.cursor() as cursor:
        of = "WHERE collection_id = %s AND ordinal ="
        cursor.execute(f"DELETE FROM documents_chunk {of} 3", [changed.pk])
        cursor.execute(f"UPDATE documents_chunk SET text = 'badger' {of} 4", [changed.pk])
    migrate()
    assert not PendingChunk.objects.exists()
    for each in (collection, changed):  # current chunks, and superseded ones
        assert LexicalSegment.objects.filter(collection=each).count() == 2
        assert lexical_differences.find_differences(each.pk, sample=1000) == []
    assert scores(collection, QUESTION) == found
    assert scores(collection, QUESTION, superseded=True) == superseded
    assert chunk_counts(collection) == counts
    chunks = Chunk.objects.filter(collection=changed)
    assert scores(changed, "badger").keys() == {chunks.get(ordinal=4).pk}
    assert len(scores(changed, "otter")) == chunks.filter(is_current=True).count() - 1


def former_statistics_are_counted_anew() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT statistics_stale FROM documents_collection")
        assert cursor.fetchall() == [(True,)]
        cursor.execute("SELECT to_regclass('chunk_search_vector_index') IS NOT NULL")
        assert cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM pg_proc WHERE proname LIKE 'documents\\_%'")
        assert cursor.fetchone()[0] == 0


@pytest.mark.nightly
@pytest.mark.parametrize("before", [BEFORE, BEFORE_PENDING_POSTINGS])
def test_chunks_are_found_before_they_are_in_segments(
    collection: Collection, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    found = scores(collection, QUESTION)
    superseded = scores(collection, QUESTION, superseded=True)
    migrate(before)
    with monkeypatch.context() as patch:
        patch.setattr(lexical_index, "index_all_pending", lambda: 0)
        migrate()
    # Migration 0024 rebuilds existing segments, and takes what is pending into them.
    pending = Chunk.objects.count() if before == BEFORE else 0
    assert PendingChunk.objects.count() == pending
    assert LexicalSegment.objects.exists() == (before != BEFORE)
    assert scores(collection, QUESTION) == found
    assert scores(collection, QUESTION, superseded=True) == superseded
    assert lexical_differences.find_differences(collection.pk) == []
    lexical_index.index_all_pending()
    assert not PendingChunk.objects.exists()
    assert not PendingPosting.objects.exists()
    assert scores(collection, QUESTION) == found


@pytest.mark.nightly
def test_a_chunk_removed_before_its_words_were_listed_is_not_counted(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(BEFORE_PENDING_POSTINGS)
    gone = Chunk.objects.filter(collection=collection, ordinal=5)
    gone.delete()
    with monkeypatch.context() as patch:
        patch.setattr(lexical_index, "index_all_pending", lambda: 0)
        migrate()
    found = scores(collection, QUESTION)
    assert lexical_differences.find_differences(collection.pk) == []
    lexical_index.rebuild_lexical_index(collection.pk)
    assert scores(collection, QUESTION) == found
