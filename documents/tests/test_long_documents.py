"""Long documents are embedded slice by slice: what was made is kept, and others get their turn."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import connection
from django.urls import reverse
from numpy.typing import NDArray

from documents.ingestion import embedding, jobs, pipeline
from documents.ingestion.sources import text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
    StagedVectors,
)
from documents.run_progress import progress_event
from documents.services import cancel_run, ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory
from inference.backends.hashing import HashingEmbedder
from inference.cancellation import Cancelled, check_cancelled
from inference.interfaces import BackendUnavailable
from inference.model_registry import embedders
from tests.kit import logged_in, queue_file
from tests.plugin import wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

#: One passage each.
PARAGRAPHS = 40
Vector = NDArray[np.float32]


@pytest.fixture(autouse=True)
def _short_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of a few passages is long, and each turn is a slice."""
    monkeypatch.setattr(embedding, "LONG_DOCUMENT_CHUNKS", 8)
    monkeypatch.setattr(pipeline, "LONG_DOCUMENT_CHUNKS", 8)
    monkeypatch.setattr(embedding, "FIRST_SLICE_TEXTS", 10)
    monkeypatch.setattr(embedding, "MAX_SLICE_TEXTS", 10)
    monkeypatch.setattr(embedding, "_sizes", embedding._SliceSizes())
    monkeypatch.setattr(pipeline, "EMBEDDING_TURN_SECONDS", 0.0)


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(
        slug="books", default_language="en", chunker="paragraph", chunker_options={"max_tokens": 60}
    )


def long_text(word: str = "topic", first: int = 0) -> str:
    return "\n\n".join(
        f"Paragraph {n} tells of {word}{n} and of much that is near it, " * 4
        for n in range(first, first + PARAGRAPHS)
    )


class Calls:
    """What the model was asked for."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.texts: Counter[str] = Counter()
        #: Of the call with this number, from 0, is called what it says.
        self.at: dict[int, Callable[[], None]] = {}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    made, embed = Calls(), HashingEmbedder.embed_documents

    def recorded(self: HashingEmbedder, texts: Sequence[str]) -> Vector:
        made.at.get(len(made.sizes), lambda: None)()
        made.sizes.append(len(texts))
        made.texts.update(texts)
        return embed(self, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", recorded)
    return made


def parsed(collection: Collection, name: str, text: str) -> Document:
    """An uploaded file that waits for its vectors."""
    document = queue_file(collection, name, text.encode())
    assert pipeline.parse_documents([document.pk]) == [document.pk]
    return document


def turns(document: Document) -> Iterator[int]:
    """Each turn of a worker with the document, by the number of vectors that are staged then."""
    deferred = [document.pk]
    while deferred:
        deferred.clear()
        pipeline.embed_documents([document.pk], defer=deferred.append)
        yield staged_count(document)


def staged_count(document: Document) -> int:
    return sum(len(each.digests) for each in document.staged_vectors.all())


def test_each_turn_keeps_a_slice_and_nothing_is_found_before_all_are_there(
    collection: Collection, calls: Calls
) -> None:
    document = parsed(collection, "book.txt", long_text())
    run = IngestionRun.objects.get()
    following = turns(document)
    seen = []
    for staged in following:
        document.refresh_from_db()
        if document.status == "ready":
            break
        run.refresh_from_db()
        item = run.items.get()
        assert not Chunk.objects.exists()
        assert (document.claimed_by, document.attempts) == (None, 0)
        assert run.embedded == item.chunks_embedded == staged
        assert item.chunks_to_embed == PARAGRAPHS
        seen.append(staged)
    assert seen == [10, 20, 30]
    assert max(calls.sizes) == 10
    assert set(calls.texts.values()) == {1}
    run.refresh_from_db()
    assert (run.state, run.ready) == ("succeeded", 1)
    assert run.embedded == run.chunks == PARAGRAPHS == Chunk.objects.count()
    assert not StagedVectors.objects.exists()
    assert run.timings["embed"] > 0
    for chunk in Chunk.objects.all():
        expected = HashingEmbedder().embed_documents([f"{chunk.context}\n{chunk.text}"])[0]
        assert np.allclose(np.asarray(chunk.embedding), expected, atol=1e-6)


def test_the_run_and_its_page_tell_how_far_it_is(collection: Collection, calls: Calls) -> None:
    document = parsed(collection, "book.txt", long_text())
    assert next(turns(document)) == 10
    run = IngestionRun.objects.get()
    _, figures = progress_event(run)
    assert (figures["chunks_embedded"], figures["chunks_to_embed"]) == (10, PARAGRAPHS)
    assert figures["embedded"] == 10
    assert figures["percent"] == 25
    assert figures["remaining_seconds"] > 0
    alice = MembershipFactory(workspace=collection.workspace).user
    page = logged_in(alice).get(reverse("run", args=[run.pk])).content.decode()
    assert "10 of 40 passages embedded" in page


def test_short_documents_go_before_long_ones(collection: Collection, calls: Calls) -> None:
    long = [parsed(collection, f"book{n}.txt", long_text(f"subject{n}x")) for n in range(2)]
    short = parsed(collection, "note.txt", "A note.")
    deferred: list[int] = []
    ids = [each.pk for each in [*long, short]]
    pipeline.embed_documents(ids, defer=deferred.append)
    assert deferred == [each.pk for each in long]
    short.refresh_from_db()
    assert short.status == "ready"
    assert not StagedVectors.objects.exists()
    for document in long:
        document.refresh_from_db()
        assert (document.status, document.claimed_by, document.attempts) == ("processing", None, 0)
        for _ in turns(document):
            pass
    assert set(calls.texts.values()) == {1}
    assert Document.objects.filter(status="ready").count() == 3


def test_what_was_embedded_before_a_failure_of_the_model_is_not_embedded_again(
    collection: Collection, calls: Calls
) -> None:
    document = parsed(collection, "book.txt", long_text())

    def fail() -> None:
        raise BackendUnavailable("gone")

    calls.at[2] = fail
    with pytest.raises(BackendUnavailable):
        pipeline.embed_documents([document.pk])
    assert staged_count(document) == 20
    calls.at.clear()
    pipeline.embed_documents([document.pk])
    document.refresh_from_db()
    assert document.status == "ready"
    assert set(calls.texts.values()) == {1}


def test_a_command_that_failed_goes_on_when_it_is_run_again(
    collection: Collection, calls: Calls
) -> None:
    source = text_source("book", long_text())

    def fail() -> None:
        raise BackendUnavailable("gone")

    calls.at[3] = fail
    with pytest.raises(BackendUnavailable):
        ingest_inline(collection=collection, sources=[source])
    assert StagedVectors.objects.count() == 3
    calls.at.clear()
    run = ingest_inline(collection=collection, sources=[source])
    assert (run.state, run.ready) == ("succeeded", 1)
    assert set(calls.texts.values()) == {1}
    assert Chunk.objects.count() == PARAGRAPHS
    assert not StagedVectors.objects.exists()


def test_a_changed_text_takes_over_the_vectors_of_what_it_has_in_common(
    collection: Collection, calls: Calls
) -> None:
    document = parsed(collection, "book.txt", long_text())
    following = turns(document)
    assert [next(following), next(following)] == [10, 20]
    parsed(collection, "book.txt", long_text(first=5))
    for _ in turns(document):
        pass
    assert set(calls.texts.values()) == {1}
    assert Chunk.objects.count() == PARAGRAPHS
    assert not StagedVectors.objects.exists()
    for run in IngestionRun.objects.all():
        assert (run.state, run.embedded) == ("succeeded", PARAGRAPHS)


def test_cancelling_removes_what_was_staged(collection: Collection, calls: Calls) -> None:
    for _ in turns(document := parsed(collection, "book.txt", long_text())):
        pass
    parsed(collection, "book.txt", long_text("other"))
    assert next(turns(document)) == 10
    cancel_run(run=IngestionRun.objects.latest("pk"))
    assert not StagedVectors.objects.exists()
    document.refresh_from_db()
    assert document.status == "ready"
    assert "topic" in document.chunks.get(ordinal=0).text


def test_vectors_of_a_former_space_are_not_loaded(collection: Collection, calls: Calls) -> None:
    document = parsed(collection, "book.txt", long_text())
    assert next(turns(document)) == 10
    other = EmbeddingSpace.objects.get(pk=collection.space_id)
    other.pk, other.name, other.is_default = None, "other", False
    other.save()
    Collection.objects.update(space=other)
    staged = list(turns(document))
    assert staged[:2] == [20, 30]  # those of the former space are still there
    assert set(Chunk.objects.values_list("space", flat=True)) == {other.pk}
    assert Chunk.objects.count() == PARAGRAPHS
    assert not StagedVectors.objects.exists()
    assert IngestionRun.objects.get().embedded == PARAGRAPHS


def test_an_unusable_vector_fails_the_document(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()
    embed = HashingEmbedder.embed_documents

    def broken(self: HashingEmbedder, texts: Sequence[str]) -> Vector:
        return embed(self, texts) * (np.nan if next(numbers) == 2 else 1)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", broken)
    document = parsed(collection, "book.txt", long_text())
    pipeline.embed_documents([document.pk])
    document.refresh_from_db()
    assert (document.status, document.error_code) == ("failed", "invalid_vector")
    assert next(numbers) <= 4  # and the model is not asked for the rest


def test_a_worker_that_lost_the_document_keeps_nothing(
    collection: Collection, calls: Calls
) -> None:
    document = parsed(collection, "book.txt", long_text())
    _, [claimed] = jobs.claim([document.pk])
    prepared = pipeline.unpack_document(bytes(document.staged.payload))
    group = embedding.make_group([claimed], [prepared])
    [ended] = embedding.embed_groups([group], token=uuid4())
    assert ended.is_unwanted.is_set()
    assert len(calls.sizes) <= 3
    assert not StagedVectors.objects.exists()
    assert IngestionItem.objects.get().chunks_embedded == 0


@pytest.mark.django_db(transaction=True)
def test_a_cancelled_run_stops_the_model_within_a_slice(
    collection: Collection, calls: Calls
) -> None:
    document = parsed(collection, "book.txt", long_text())
    is_working, outcome = Event(), []

    def work_until_cancelled() -> None:
        is_working.set()
        try:
            for _ in range(3000):
                Event().wait(0.01)
                check_cancelled()
        except Cancelled as error:
            outcome.append(error)
            raise

    calls.at[1] = work_until_cancelled

    def embed() -> None:
        pipeline.embed_documents([document.pk])
        connection.close()

    worker = Thread(target=embed)
    worker.start()
    assert is_working.wait(30)
    cancel_run(run=IngestionRun.objects.get())
    wait_until(lambda: not worker.is_alive(), what="the worker has stopped")
    assert outcome
    assert len(calls.sizes) == 1
    assert not Document.objects.exists()
    assert not StagedVectors.objects.exists()


def test_slices_grow_until_they_take_their_time() -> None:
    sizes, space = embedding._SliceSizes(), EmbeddingSpace(pk=1)
    taken = []
    for _ in range(6):
        taken.append(sizes[space])
        sizes.record(space, sizes[space], seconds=sizes[space] / 10)
    # Ten texts a second, two seconds a slice.
    assert taken[0] == embedding.FIRST_SLICE_TEXTS
    assert taken[-1] <= embedding.MAX_SLICE_TEXTS
    sizes.record(space, sizes[space], seconds=2.0 * embedding.SLICE_SECONDS)
    assert sizes[space] == taken[-1] // 2
    sizes.record(space, 1, seconds=0.01)  # the rest of a document
    assert sizes[space] == taken[-1] // 2


def test_the_bundled_model_gives_the_same_vectors_in_slices_as_at_once(settings: Any) -> None:
    model = {
        "BACKEND": "inference.backends.onnx_local.OnnxEmbedder",
        "OPTIONS": {"model": "bge-small-en-v1.5"},
    }
    settings.INFERENCE = {**settings.INFERENCE, "embedder": {"default": model}}
    EmbeddingSpace.objects.update(model_name="bge-small-en-v1.5")
    collection = CollectionFactory(
        slug="books", default_language="en", chunker="paragraph", chunker_options={"max_tokens": 60}
    )
    document = parsed(collection, "book.txt", long_text())
    assert [*turns(document)] == [10, 20, 30, 0]
    chunks = list(Chunk.objects.all())
    texts = [f"{chunk.context}\n{chunk.text}" for chunk in chunks]
    expected = embedders["default"].embed_documents(texts)
    made = np.stack([np.asarray(chunk.embedding) for chunk in chunks])
    # Its weights are whole numbers, scaled by what else is in a batch.
    assert (made * expected).sum(axis=1).min() > 0.99
