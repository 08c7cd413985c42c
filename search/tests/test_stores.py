"""A collection as a store: items by id, one by one and in batches."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accounts.models import Membership
from common.errors import Conflict, InvalidInput, NotFound
from documents.ingestion import items
from documents.ingestion.items import InvalidItems, Item
from documents.ingestion.sources import text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionRun,
    Lexeme,
    LexicalSegment,
    PendingChunk,
    Posting,
)
from documents.services import add_space, ingest_inline, ingest_text, reembed_inline
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    embed,
)
from inference.backends.hashing import HashingEmbedder
from search.query_options import site_scope
from search.services import search
from search.stores import Store
from search.tests.stores import ids, random_vectors
from tests.kit import at_once, hashing, use_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
WORDS = ["cat", "dog", "bird", "fish", "tree"]


# --- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        (
            {"chapter_title": "Pain", "section_title": "Dose", "subsection_title": ["Day", "May"]},
            ["Pain", "Dose", "Day", "May"],
        ),
        ({"chapter": "Pain", "section": "Dose", "subsection": "Night"}, ["Pain", "Dose", "Night"]),
        ({"section_title": "Dose"}, ["Aspirin", "Dose"]),
        ({"chapter": 3, "section": {"a": 1}, "section_title": ""}, []),
        ({}, []),
    ],
)
def test_titles_in_the_metadata_are_headings(store: Store, metadata: Any, path: list[str]) -> None:
    store.index("a", "One tablet a day eases it.", metadata, title="Aspirin")
    text = "One tablet a day."
    store.upsert_vector("b", embed(text), metadata, text=text)
    by_text = Chunk.objects.get(document__key="a")
    assert by_text.heading_path == path
    assert by_text.context.startswith("Aspirin")
    assert [*path] == [title for title in path if title in by_text.context]
    by_vector = Chunk.objects.get(document__key="b")
    assert by_vector.heading_path[1:] == path[1:]
    assert by_vector.context.endswith(" > ".join(path[1:]))
    item = store.get("a")
    assert item is not None
    assert item.metadata == metadata


def test_a_heading_is_filtered_by_and_an_unchanged_item_stays(store: Store) -> None:
    titles = {"chapter": "Pain", "section": "Dose"}
    items = [Item("a", "One tablet a day.", metadata=titles), Item("b", "One tablet a day.")]
    store.index_many(items)
    assert ids(store.search("tablet", filter={"section": "Dose"})) == ["a"]
    assert store.index_many(items).unchanged == 2


def test_what_is_indexed_is_got_and_found_and_gone_when_removed(store: Store) -> None:
    store.index("a", "Aspirin eases pain.", {"year": 2020}, title="Aspirin")
    store.index("b", "Bread is baked from flour.")

    item = store.get("a")
    assert item is not None
    assert (item.text, item.title, item.metadata) == (
        "Aspirin eases pain.",
        "Aspirin",
        {"year": 2020},
    )
    assert item.vector is not None
    assert item.vector.shape == (store.dimension(),)
    best = store.search("what eases pain?", 1)[0]
    assert (best.id, best.text, best.metadata) == ("a", "Aspirin eases pain.", {"year": 2020})

    assert store.remove("a")
    assert store.get("a") is None
    assert ids(store.search("what eases pain?")) == ["b"]
    assert not store.remove("a")


def test_removing_leaves_no_trace_in_any_table(store: Store) -> None:
    store.index("a", "Zebras gallop.", {"secret": "stripes"})
    store.upsert_vector("b", random_vectors(1)[0])
    assert store.delete(["a", "b", "never there"]) == 2
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()
    assert not Posting.objects.exists()
    assert not Lexeme.objects.exists()
    assert not IngestionRun.objects.exists()


def test_a_long_text_is_cut_as_an_uploaded_one_and_found_as_one_item(store: Store) -> None:
    text = "\n\n".join(f"Paragraph {n} tells of cats and dogs and birds." for n in range(200))
    store.index("long", text)
    store.index("short", "Cats and dogs.")
    item = store.get("long")
    assert item is not None
    assert item.chunks > 1
    assert (item.text, item.vector) == (text, None)
    assert sorted(ids(store.search("cats", 10))) == ["long", "short"]
    assert sorted(ids(store.similarity_search(embed("cats"), 10))) == ["long", "short"]


@pytest.mark.parametrize("title", ["", "About pain"])
def test_a_stored_text_is_the_same_hit_with_the_same_scores_as_an_uploaded_one(title: str) -> None:
    text = "Aspirin eases pain and thins the blood. Do not give it to young children."
    uploaded, stored = CollectionFactory(), CollectionFactory()
    declared = {"title": title, "file_name": "my-note_1.txt"}
    source = text_source(
        "my-note_1", text, **{name: value for name, value in declared.items() if value}
    )
    ingest_inline(collection=uploaded, sources=[source])
    Store(stored).index("my-note_1", text, title=title)

    def hit(collection: Collection) -> Any:
        found = search("aspirin for children", scope=site_scope(workspace=collection.workspace))
        return found.hits[0]

    for name in ("text", "context", "title", "lexical", "similarity", "fused", "language"):
        assert getattr(hit(stored), name) == getattr(hit(uploaded), name), name


def test_storing_over_an_upload_that_waits_settles_its_run_and_its_file(store: Store) -> None:
    run = ingest_text(collection=store.collection, key="a", text="The uploaded text.")
    file = Document.objects.get().file
    assert file.storage.exists(file.name)
    with capture_commit():
        store.index("a", "The stored text.")
    run.refresh_from_db()
    assert (run.state, run.ready) == (IngestionRun.State.SUCCEEDED, 1)
    assert not Document.objects.get().file
    assert store.search("stored")[0].text == "The stored text."


def capture_commit() -> Any:
    from django.test import TestCase

    return TestCase.captureOnCommitCallbacks(execute=True)


# --- a dict is the model -------------------------------------------------------------------------

KEYS = ["k1", "k2", "k 3", "k/4", "k'5"]
OPERATIONS = st.one_of(
    st.tuples(
        st.just("index"),
        st.sampled_from(KEYS),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join),
    ),
    st.tuples(st.just("vector"), st.sampled_from(KEYS), st.integers(0, 20)),
    st.tuples(st.just("remove"), st.sampled_from(KEYS), st.none()),
)


@given(st.lists(OPERATIONS, max_size=12), st.sampled_from(WORDS))
@hypothesis_settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_store_is_a_dict_that_can_be_searched(
    operations: list[tuple[str, str, Any]], word: str
) -> None:
    store = Store(CollectionFactory(default_language="en"))
    texts: dict[str, str] = {}
    vectors: dict[str, NDArray[np.float32]] = {}
    several = random_vectors(21)
    for kind, key, value in operations:
        if kind == "index":
            store.index(key, value)
            texts[key], _ = value, vectors.pop(key, None)
        elif kind == "vector":
            store.upsert_vector(key, several[value])
            vectors[key], _ = several[value], texts.pop(key, None)
        else:
            assert store.remove(key) == (key in texts or key in vectors)
            texts.pop(key, None)
            vectors.pop(key, None)

    there = texts.keys() | vectors.keys()
    assert store.get_many(KEYS).keys() == there
    assert store.count() == len(there)
    for key, text in texts.items():
        item = store.get(key)
        assert item is not None
        assert item.text == text
    for key, vector in vectors.items():
        item = store.get(key)
        assert item is not None
        assert item.vector is not None
        assert item.text == ""
        assert np.array_equal(item.vector, vector)
    found = store.search(word, 50, mode="lexical")
    assert set(ids(found)) == {key for key, text in texts.items() if word in text.split()}
    assert set(ids(store.search(word, 50))) == there
    assert set(ids(store.similarity_search(several[0], 50))) == there


# --- batches -------------------------------------------------------------------------------------


def test_batches_are_named_by_a_prefix_or_by_ids(store: Store) -> None:
    assert store.index_many(["One.", "Two."], id_prefix="page").ids == ("page:0", "page:1")
    assert store.index_many(["Three."], ids=["third"]).ids == ("third",)
    assert set(store.get_many(["page:0", "page:1", "third"])) == {"page:0", "page:1", "third"}
    with pytest.raises(InvalidInput, match="Items: 2; ids: 1"):
        store.index_many(["One.", "Two."], ids=["a"])
    with pytest.raises(InvalidInput, match="Give each item an id"):
        store.index_many(["One."])
    with pytest.raises(InvalidInput, match="no field “txt”"):
        store.index_many([{"id": "a", "txt": "One."}])


def test_words_are_indexed_in_batches_as_a_store_grows_item_by_item(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "SEGMENT_MIN_PENDING", 20)
    for number in range(59):
        store.index(f"t{number}", f"Cats and the number {number}.")
        assert len(store.search("cats", 100, mode="lexical")) == number + 1
    assert LexicalSegment.objects.count() == 2
    assert PendingChunk.objects.count() == 19


class Counting(HashingEmbedder):
    """Counts the texts it is asked for, and how many threads ask at once."""

    texts = 0
    threads = 0
    most = 0
    lock = threading.Lock()
    together: "threading.Barrier | None" = None

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        with self.lock:
            Counting.texts += len(texts)
            Counting.threads += 1
            Counting.most = max(Counting.most, Counting.threads)
        if Counting.together is not None:
            Counting.together.wait(timeout=20)
        with self.lock:
            Counting.threads -= 1
        return super().embed_documents(texts)


@pytest.fixture
def counting(settings: Any) -> type[Counting]:
    use_models(settings, embedder={"BACKEND": f"{__name__}.Counting"})
    Counting.texts = Counting.threads = Counting.most = 0
    Counting.together = None
    return Counting


def test_what_is_unchanged_is_not_embedded_again(store: Store, counting: type[Counting]) -> None:
    batch = [Item(f"t{n}", f"Text number {n}.", metadata={"n": n}) for n in range(5)]
    assert len(store.index_many(batch).ids) == counting.texts == 5
    again = store.index_many([*batch, Item("new", "A new one.")])
    assert (again.ids, again.unchanged, counting.texts) == (("new",), 5, 6)

    chunk = Chunk.objects.get(document__key="t1")
    store.index("t1", "Text number 1.", {"n": 100})
    assert counting.texts == 6
    assert Chunk.objects.get(document__key="t1").pk == chunk.pk
    assert ids(store.search("number", filter={"n": 100})) == ["t1"]


def test_a_batch_is_embedded_by_several_threads_at_once(
    store: Store, counting: type[Counting]
) -> None:
    counting.together = threading.Barrier(4)  # breaks unless four ask at the same time
    store.index_many([f"Text number {n}." for n in range(4 * 64)], id_prefix="t", concurrency=4)
    assert (counting.texts, counting.most) == (256, 4)
    with pytest.raises(InvalidInput, match="1 to 64"):
        store.index_many(["a"], id_prefix="t", concurrency=65)


def test_concurrent_batches_of_the_same_items_both_succeed(
    transactional_db: None, media_root: Any
) -> None:
    store = Store(CollectionFactory(default_language="en"))
    keys = [f"k{n}" for n in range(40)]

    def write(word: str, order: list[str]) -> None:
        for _ in range(3):
            store.index_many([Item(key, f"{word} {key}") for key in order])

    at_once(lambda: write("cats", keys), lambda: write("dogs", keys[::-1]))
    assert Document.objects.count() == Chunk.objects.count() == 40
    assert set(Document.objects.values_list("status", flat=True)) == {"ready"}


# --- who may what --------------------------------------------------------------------------------


def test_documents_with_an_access_list_are_hidden_and_not_overwritten() -> None:
    alice: Membership = MembershipFactory()
    bob = MembershipFactory(workspace=alice.workspace)
    collection = CollectionFactory(workspace=alice.workspace)
    secret = DocumentFactory(collection=collection, key="a", access=[f"user:{bob.user.pk}"])
    ChunkFactory(document=secret, text="Cats are secret.")

    hers, his = Store(collection, user=alice.user), Store(collection, user=bob.user)
    assert hers.get("a") is None
    assert ids(hers.search("cats")) == []
    assert ids(hers.similarity_search(embed("cats"))) == []
    assert not hers.remove("a")
    with pytest.raises(Conflict, match="belongs to a document"):
        hers.index("a", "Mine now.")

    assert ids(his.similarity_search(embed("cats"))) == ["a"]
    his.index("a", "Cats are still secret.")
    assert hers.get("a") is None
    assert ids(hers.search("cats")) == []


# --- the space changes under it ------------------------------------------------------------------


def test_a_new_space_takes_new_vectors_for_the_same_text(
    transactional_db: None, media_root: Any, settings: Any
) -> None:
    use_models(settings, embedder={**settings.INFERENCE["embedder"], "other": hashing(64)})
    store = Store(CollectionFactory(default_language="en"))
    own = random_vectors(1)[0]
    store.upsert_vectors([Item("text", "Cats purr.", own), Item("bare", vector=own)])
    target, _ = add_space(name="other-64", embedder="other", index_type="none")
    reembed_inline(target=target, collection=store.collection)

    # The text has the new model's vector; the bare vector could not be made anew.
    assert store.dimension() == 64
    short = np.random.default_rng(1).normal(size=64)
    assert ids(store.similarity_search(short)) == ["text"]
    with pytest.raises(InvalidItems, match="has 384 dimensions; those of hashing-64"):
        store.upsert_vector("bare", own)
    store.upsert_vectors([Item("bare", vector=short), Item("text", "Cats purr.", short)])
    found = store.similarity_search(short)
    assert [match.score for match in found] == pytest.approx([1.0, 1.0])
    assert EmbeddingSpace.objects.get(name="other-64").dimensions == 64


def test_a_store_of_a_deleted_collection_says_so(store: Store) -> None:
    Collection.objects.filter(pk=store.collection.pk).delete()
    with pytest.raises(NotFound):
        store.dimension()
    with pytest.raises(NotFound):
        store.index("a", "Cats.")
    assert store.get("a") is None
