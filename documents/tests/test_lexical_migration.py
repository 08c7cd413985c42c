"""Coming to the lexical index and going back, with chunks that are there already."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connection

from documents import lexical_index
from documents.models import Chunk, Collection, LexicalSegment, PendingChunk
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.words import chunk_counts, scores

BEFORE = "0013_chunk_edits"
BESIDE_FORMER = "0014_lexical_index"
QUESTION = "otter heron"


def migrate(target: str = "") -> None:
    """To a migration of documents, which undoes those of other apps that need later ones; or to the
    last of all apps."""
    call_command("migrate", *(["documents", target] if target else []), verbosity=0)


@pytest.fixture
def collection(transactional_db: None) -> Iterator[Collection]:
    """Chunks in segments and in none, one that is gone and one of a superseded version."""
    collection = CollectionFactory()
    document = DocumentFactory(collection=collection)
    for number in range(6):
        ChunkFactory(document=document, text=f"otter {'heron ' * number} of river {number}")
        if number < 4:
            lexical_index.index_pending(collection.pk)
    document.chunks.filter(ordinal=1).delete()
    document.chunks.filter(ordinal=2).update(is_current=False)
    yield collection
    migrate()


@pytest.mark.parametrize("target", [BEFORE, BESIDE_FORMER])
def test_back_and_forth_again_every_chunk_is_found_with_the_same_score(
    collection: Collection, target: str
) -> None:
    found, counts = scores(collection, QUESTION), chunk_counts(collection)
    superseded = scores(collection, QUESTION, superseded=True)
    migrate(target)
    migrate()
    assert lexical_index.find_differences(collection.pk, sample=1000) == []
    assert scores(collection, QUESTION) == found
    assert scores(collection, QUESTION, superseded=True) == superseded
    assert chunk_counts(collection) == counts


def test_chunks_from_before_the_index_are_in_segments_after_it(collection: Collection) -> None:
    migrate(BEFORE)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM documents_chunk WHERE ordinal = 3")
        cursor.execute("UPDATE documents_chunk SET text = 'badger' WHERE ordinal = 4")
    migrate()
    assert not PendingChunk.objects.exists()
    assert LexicalSegment.objects.count() == 2  # current chunks, and superseded ones
    assert lexical_index.find_differences(collection.pk, sample=1000) == []
    assert scores(collection, "badger").keys() == {Chunk.objects.get(ordinal=4).pk}
    assert len(scores(collection, "otter")) == Chunk.objects.filter(is_current=True).count() - 1


def test_chunks_are_found_before_they_are_in_segments(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = scores(collection, QUESTION)
    migrate(BEFORE)
    with monkeypatch.context() as patch:
        patch.setattr(lexical_index, "index_all_pending", lambda: 0)
        migrate(BESIDE_FORMER)
    assert not LexicalSegment.objects.exists()
    assert PendingChunk.objects.count() == Chunk.objects.count()
    assert scores(collection, QUESTION) == found


def test_going_back_has_the_former_statistics_counted_anew(collection: Collection) -> None:
    migrate(BEFORE)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statistics_stale FROM documents_collection")
        assert cursor.fetchall() == [(True,)]
        cursor.execute("SELECT to_regclass('chunk_search_vector_index') IS NOT NULL")
        assert cursor.fetchone()[0]
        cursor.execute("SELECT count(*) FROM pg_proc WHERE proname LIKE 'documents\\_%'")
        assert cursor.fetchone()[0] == 0
