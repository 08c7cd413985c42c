"""Coming to the lexical index and going back, with chunks that are there already."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from documents import lexical_index
from documents.models import Chunk, Collection, LexicalSegment, PendingChunk, PendingPosting
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.words import chunk_counts, scores

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
        assert lexical_index.find_differences(each.pk, sample=1000) == []
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
    pending = PendingChunk.objects.count()
    migrate(before)
    with monkeypatch.context() as patch:
        patch.setattr(lexical_index, "index_all_pending", lambda: 0)
        migrate()
    if before == BEFORE:
        assert not LexicalSegment.objects.exists()
        pending = Chunk.objects.count()
    assert PendingChunk.objects.count() == pending
    assert scores(collection, QUESTION) == found
    assert scores(collection, QUESTION, superseded=True) == superseded
    assert lexical_index.find_differences(collection.pk) == []
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
    assert lexical_index.find_differences(collection.pk) == []
    lexical_index.rebuild_lexical_index(collection.pk)
    assert scores(collection, QUESTION) == found
