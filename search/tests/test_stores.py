"""A collection as a store: items by id, as texts, as vectors, or as both."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accounts.models import Membership, Role
from common.errors import Conflict, Forbidden, InvalidInput, NotFound
from documents.ingestion import statistics
from documents.ingestion.sources import text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionRun,
    LexemeFrequency,
    LexicalStatistics,
)
from documents.services import (
    add_space,
    ingest_inline,
    ingest_text,
    reembed_here,
)
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    embed,
)
from inference.backends.hashing import HashingEmbedder
from inference.base import BackendUnavailable, InvalidVector
from search.services import search, site_scope
from search.stores import EmbeddingUnavailable, InvalidItems, Item, Matches, Store, open_store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

HOSTILE_IDS = [
    "a/b//c/../d",
    "'; DROP TABLE documents_document; --",
    'say "yes" \\ %s %(id)s {id}',
    "  spaces around  ",
    "naïve ☃ 漢字 👩‍🔬",
    "e\u0301",
    "new\nline\ttab",
    "x" * 1024,
    ".",
    "..",
    "/",
    "?a=b&c#d",
    "-1",
]
WORDS = ["cat", "dog", "bird", "fish", "tree"]


@pytest.fixture
def store() -> Store:
    return Store(CollectionFactory(default_language="en"))


def random_vectors(count: int, *, seed: int = 7, scale: float = 3.0) -> NDArray[np.float32]:
    """Vectors of any length: a caller's need not be normalised."""
    values = np.random.default_rng(seed).normal(size=(count, 384)) * scale
    return values.astype(np.float32)


def ids(matches: Matches) -> list[str]:
    return [match.id for match in matches]


# --- texts ---------------------------------------------------------------------------------------


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
    assert not LexemeFrequency.objects.exists()
    assert not IngestionRun.objects.exists()


def test_the_same_id_replaces_what_was_there(store: Store) -> None:
    store.index("a", "Aspirin eases pain.", {"year": 2020})
    store.index("a", "Bread is baked.")
    assert store.count() == 1
    item = store.get("a")
    assert item is not None
    assert (item.text, item.metadata) == ("Bread is baked.", {})
    assert ids(store.search("aspirin", mode="lexical")) == []


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


def test_an_uploaded_document_is_an_item_by_its_key(store: Store) -> None:
    ingest_inline(collection=store.collection, sources=[text_source("notes/a.txt", "Cats purr.")])
    item = store.get("notes/a.txt")
    assert item is not None
    assert item.text == "Cats purr."
    assert store.remove("notes/a.txt")
    assert not Chunk.objects.exists()


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


# --- vectors -------------------------------------------------------------------------------------


def expected(metric: str, stored: NDArray[np.float32], asked: NDArray[np.float32]) -> Any:
    rows, query = stored.astype(np.float64), asked.astype(np.float64)
    if metric == "ip":
        return rows @ query
    if metric == "l2":
        return -np.linalg.norm(rows - query, axis=1)
    return rows @ query / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
def test_similarities_are_numpys_in_every_metric_and_higher_is_better(
    store: Store, metric: str
) -> None:
    several = random_vectors(60)
    store.upsert_vectors(several[:50], id_prefix="v")
    asked = several[55]
    scores = expected(metric, several[:50], asked)
    order = [f"v:{number}" for number in np.argsort(-scores)]

    found = store.similarity_search(asked, 50, metric=metric)
    assert ids(found) == order
    assert [match.score for match in found] == pytest.approx(
        sorted(scores, reverse=True), rel=1e-4, abs=1e-3
    )
    assert ids(store.similarity_search(asked, 7, metric=metric)) == order[:7]


def test_without_a_metric_the_spaces_own_is_taken(settings: Any) -> None:
    space, _ = add_space(name="by-l2", metric="l2", index_type="none")
    store = Store(CollectionFactory(space=space))
    several = random_vectors(3)
    store.upsert_vectors(several, id_prefix="v")
    assert store.similarity_search(several[1], 1)[0].score == pytest.approx(0.0)
    # Elsewhere similarity is from -1 to 1, however long vectors are.
    found = store.hybrid("anything", vector=several[1])
    assert found[0].id == "v:1"
    assert found[0].similarity == pytest.approx(1.0)


def test_never_fewer_than_k_or_all_that_fit_the_filter(store: Store) -> None:
    several = random_vectors(30)
    store.upsert_vectors(
        [
            Item(f"v{number}", vector=vector, metadata={"even": number % 2 == 0, "n": number})
            for number, vector in enumerate(several)
        ]
    )
    wanted = {"n": {"$lt": 10}, "even": True}
    for metric in ("cosine", "l2", "ip"):
        found = store.similarity_search(several[0], 100, wanted, metric=metric)
        assert set(ids(found)) == {"v0", "v2", "v4", "v6", "v8"}
        assert all(match.metadata["even"] is True for match in found)
    assert len(store.similarity_search(several[0], 3, "even=true")) == 3


def test_a_large_scope_is_asked_of_the_index_and_never_short(store: Store, settings: Any) -> None:
    several = random_vectors(300)
    store.upsert_vectors(
        [Item(f"v{n}", vector=each, metadata={"few": n < 3}) for n, each in enumerate(several)]
    )
    exact = store.similarity_search(several[0], 10)
    settings.EXACT_SCAN_CHUNKS = 1
    with connection.execute_wrapper(record := Statements()):
        by_index = store.similarity_search(several[0], 10)
    assert any("hnsw.iterative_scan" in statement for statement in record.seen)
    assert ids(by_index)[0] == "v0"
    assert len(set(ids(by_index)) & set(ids(exact))) >= 9
    assert set(ids(store.similarity_search(several[0], 10, "few=true"))) == {"v0", "v1", "v2"}


class Statements:
    """Notes what is asked of the database."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.seen.append(sql)
        return execute(sql, params, many, context)


def test_a_vector_without_text_is_found_by_the_vector_arm_only(store: Store) -> None:
    store.upsert_vectors([{"id": "zebra", "vector": embed("Zebras gallop."), "title": "Zebra"}])
    assert ids(store.search("zebra", mode="lexical")) == []
    found = store.search("zebras gallop", mode="hybrid")
    assert ids(found) == ["zebra"]
    assert found[0].lexical is None
    assert found[0].similarity > 0.8


def test_vectors_without_text_change_no_score_of_texts(store: Store) -> None:
    store.index_many(["Cats purr.", "Dogs bark and cats flee."], id_prefix="t")

    def scores() -> list[tuple[str, float | None]]:
        return [(match.id, match.lexical) for match in store.search("cats", mode="lexical")]

    before = scores()
    store.upsert_vectors(random_vectors(30), id_prefix="v")
    assert scores() == before


def test_vectors_of_a_model_that_the_site_does_not_run(
    transactional_db: None, media_root: Any, settings: Any
) -> None:
    given = {"BACKEND": "inference.backends.given.GivenVectors", "OPTIONS": {"dimensions": 8}}
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {**settings.INFERENCE["embedder"], "mine": given},
    }
    store = Store(CollectionFactory(default_language="en"))
    target, _ = add_space(name="mine", embedder="mine", metric="ip")
    reembed_here(target=target, collection=store.collection)

    assert store.dimension() == 8
    own = np.arange(1, 9, dtype=np.float32)
    store.upsert_vectors([Item("a", "Cats purr.", own), Item("b", vector=-own)])
    assert [match.score for match in store.similarity_search(own)] == [204.0, -204.0]
    assert ids(store.hybrid("cats", vector=own)) == ["a", "b"]
    assert ids(store.search("cats", mode="lexical")) == ["a"]
    with pytest.raises(EmbeddingUnavailable, match="give the vector with each text"):
        store.index("c", "Dogs bark.")


def test_pages_show_a_vector_without_text(store: Store, client: Any) -> None:
    member = MembershipFactory(workspace=store.collection.workspace)
    client.force_login(member.user)
    store.upsert_vector("picture", embed("zebras gallop"), {"kind": "photo"})
    found = client.get("/", {"q": "zebras gallop"})
    assert "picture" in found.content.decode().lower()
    address = f"/documents/{store.collection.slug}/{Document.objects.get().pk}/"
    assert client.get(address).status_code == 200


def test_a_text_with_its_vector_stays_whole_and_has_that_vector(store: Store) -> None:
    own = random_vectors(1)[0]
    text = "Cats and dogs and birds. " * 300
    store.upsert_vector("long", own, {"a": 1}, text)
    item = store.get("long")
    assert item is not None
    assert item.vector is not None
    assert (item.chunks, item.text, item.metadata) == (1, text, {"a": 1})
    assert np.array_equal(item.vector, own)
    assert ids(store.search("birds", mode="lexical")) == ["long"]
    assert store.similarity_search(own, 1)[0].score == pytest.approx(1.0)


def test_another_vector_for_the_same_text_takes_its_place(store: Store) -> None:
    first, second = random_vectors(2)
    for vector in (first, second):
        store.upsert_vector("a", vector, text="Cats.")
        assert store.similarity_search(vector, 1)[0].score == pytest.approx(1.0)
    store.index("a", "Cats.")
    assert store.similarity_search(second, 1)[0].score < 0.9


def test_hybrid_weighs_words_and_an_own_vector(store: Store) -> None:
    north, south = random_vectors(2)
    store.upsert_vectors(
        [
            Item("by words", "Cats purr.", south),
            Item("by vector", "Dogs bark.", north),
        ]
    )
    assert ids(store.hybrid("cats", vector=north))[0] == "by vector"
    by_words = store.hybrid("cats", vector=north, weights={"lexical": 0.9, "vector": 0.1})
    assert ids(by_words)[0] == "by words"
    first = store.hybrid("cats", vector=north)[0]
    assert first.score == pytest.approx(0.6)
    assert ids(store.hybrid("cats", text="Dogs bark.")) != []
    with pytest.raises(InvalidInput, match="not both"):
        store.hybrid("cats", text="dogs", vector=north)
    with pytest.raises(InvalidInput, match="weigh"):
        store.hybrid("cats", weights={"lexical": 1, "graph": 1})


# --- batches -------------------------------------------------------------------------------------


def test_batches_are_named_by_a_prefix_or_by_ids(store: Store) -> None:
    assert store.index_many(["One.", "Two."], id_prefix="page").ids == ("page:0", "page:1")
    assert store.index_many(["Three."], ids=["third"]).ids == ("third",)
    assert set(store.get_many(["page:0", "page:1", "third"])) == {"page:0", "page:1", "third"}
    with pytest.raises(InvalidInput, match="2 items and 1 ids"):
        store.index_many(["One.", "Two."], ids=["a"])
    with pytest.raises(InvalidInput, match="Name the items"):
        store.index_many(["One."])
    with pytest.raises(InvalidInput, match="no field “txt”"):
        store.index_many([{"id": "a", "txt": "One."}])


def test_words_are_counted_as_a_store_grows_item_by_item(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "REFRESH_AFTER_BATCH", 5)
    monkeypatch.setattr(statistics, "CHUNKS_A_CHANGE", 1)
    refreshes = []
    refresh = statistics.refresh
    monkeypatch.setattr(
        statistics, "refresh", lambda collection: (refreshes.append(1), refresh(collection))
    )
    for number in range(60):
        store.index(f"t{number}", f"Cats and the number {number}.")
    assert len(refreshes) < 25
    counted = LexicalStatistics.objects.get(collection=store.collection)
    assert counted.chunk_count * statistics.GROWTH >= 60


def test_of_duplicates_in_a_batch_the_last_one_counts(store: Store) -> None:
    stored = store.index_many([Item("a", "First."), Item("b", "Other."), Item("a", "Last.")])
    assert sorted(stored.ids) == ["a", "b"]
    item = store.get("a")
    assert item is not None
    assert item.text == "Last."
    assert Chunk.objects.count() == 2


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
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {"default": {"BACKEND": f"{__name__}.Counting"}},
    }
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
    faults: list[BaseException] = []

    def write(word: str, order: list[str]) -> None:
        try:
            for _ in range(3):
                store.index_many([Item(key, f"{word} {key}") for key in order])
        except BaseException as error:
            faults.append(error)
        finally:
            connection.close()

    writers = [
        threading.Thread(target=write, args=("cats", keys)),
        threading.Thread(target=write, args=("dogs", keys[::-1])),
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert faults == []
    assert Document.objects.count() == Chunk.objects.count() == 40
    assert set(Document.objects.values_list("status", flat=True)) == {"ready"}


# --- what cannot be ------------------------------------------------------------------------------


@pytest.mark.parametrize("key", HOSTILE_IDS)
def test_any_id_comes_back_as_it_is(store: Store, key: str) -> None:
    store.index(key, "Cats purr.", {"id": "mine"})
    item = store.get(key)
    assert item is not None
    assert item.id == key
    assert store.search("cats")[0].id == key
    assert store.remove(key)
    assert store.count() == 0


@pytest.mark.parametrize("key", ["", "x" * 1025, "☃" * 1000, "nul\x00", "half \ud800"])
def test_ids_that_cannot_be_are_refused_and_never_there(store: Store, key: str) -> None:
    with pytest.raises(InvalidItems) as refused:
        store.index(key, "Cats purr.")
    assert refused.value.problems[0].field == "id"
    str(refused.value).encode()
    assert store.get(key) is None
    assert not store.remove(key)


def numbers(count: int = 384, **at: float) -> list[float]:
    values = [1.0] * count
    for place, value in at.items():
        values[int(place[1:])] = value
    return values


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (numbers(3), "expected 384, got 3"),
        (numbers(385), "expected 384, got 385"),
        ([], "expected 384, got 0"),
        (numbers(_7=float("nan")), "NaN"),
        (numbers(_7=float("inf")), "NaN, or a number too large"),
        (numbers(_7=1e300), "too large"),
        (numbers(_7=10**400), "no plain list"),
        ([0.0] * 384, "all zeros"),
        ([1e-30] * 384, "Scale all"),
        ([1e30] * 384, "Scale all"),
        ([numbers()], "no plain list"),
        ([[1.0], [1.0, 2.0]], "no plain list"),
        (["1.0"] * 384, "no plain list"),
        ([True] * 384, "no plain list"),
        ("vector", "no plain list"),
    ],
)
def test_unusable_vectors_are_refused_by_the_items_name(
    store: Store, vector: Any, message: str
) -> None:
    with pytest.raises(InvalidItems, match=message) as refused:
        store.upsert_vectors([Item("good", vector=numbers()), Item("the bad", vector=vector)])
    assert "the bad" in str(refused.value)
    assert [(each.index, each.id) for each in refused.value.problems] == [(1, "the bad")]
    assert store.count() == 0
    with pytest.raises(InvalidInput, match=message):
        store.similarity_search(vector)


def test_a_half_precision_space_refuses_what_its_index_cannot_hold() -> None:
    space, _ = add_space(name="by-half", index_type="none", precision="half")
    store = Store(CollectionFactory(space=space))
    with pytest.raises(InvalidItems, match="half precision"):
        store.upsert_vector("a", numbers(_0=70_000.0))


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (Item("bad"), "text"),
        (Item("bad", " \n "), "text"),
        (Item("bad", 7), "text"),  # type: ignore[arg-type]
        (Item("bad", "x" * 200_001, numbers()), "text"),
        (Item("bad", "x", metadata={"a": {1, 2}}), "metadata"),
        (Item("bad", "x", metadata={"a": float("nan")}), "metadata"),
        (Item("bad", "x", metadata={"a": "\x00"}), "metadata"),
        (Item("bad", "x", metadata={"a": "y" * 20_000}), "metadata"),
        (Item("bad", "x", metadata=["a"]), "metadata"),  # type: ignore[arg-type]
        (Item("bad", "x", title="t" * 501), "title"),
        (Item("bad", "x", language="no language"), "language"),
    ],
)
def test_a_batch_with_a_faulty_item_stores_nothing(store: Store, item: Item, field: str) -> None:
    with pytest.raises(InvalidItems, match=r"Item 1 \(“bad”\)") as refused:
        store.index_many([Item("good", "Cats purr."), item])
    assert refused.value.problems[0].field == field
    assert store.count() == 0


def test_every_faulty_item_is_named(store: Store) -> None:
    with pytest.raises(InvalidItems, match="And 1 more") as refused:
        store.index_many([Item("a"), Item("b", "fine"), Item("c")])
    assert [problem.id for problem in refused.value.problems] == ["a", "c"]


def test_too_many_items_are_refused(store: Store) -> None:
    with pytest.raises(InvalidInput, match="1,000 items, not 1,001"):
        store.index_many(["x"] * 1001, id_prefix="t")


class Broken(HashingEmbedder):
    """Gives no vector for what it does not like, and none at all when it is down."""

    down = False

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if Broken.down:
            raise BackendUnavailable("the model's host does not answer")
        vectors = super().embed_documents(texts)
        if any("unspeakable" in text for text in texts):
            raise InvalidVector("vector 0 is all zeros")
        return vectors


@pytest.fixture
def broken(settings: Any) -> type[Broken]:
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {"default": {"BACKEND": f"{__name__}.Broken"}},
    }
    Broken.down = False
    return Broken


def test_a_text_that_has_no_vector_is_named_and_nothing_stored(
    store: Store, broken: type[Broken]
) -> None:
    with pytest.raises(InvalidItems, match="the bad"):
        store.index_many([Item("good", "Cats."), Item("the bad", "unspeakable")])
    assert store.count() == 0


def test_without_a_model_own_vectors_still_work(store: Store, broken: type[Broken]) -> None:
    broken.down = True
    with pytest.raises(EmbeddingUnavailable, match="does not answer"):
        store.index("a", "Cats.")
    assert store.count() == 0
    own = random_vectors(1)[0]
    store.upsert_vector("a", own, text="Cats purr.")
    assert ids(store.similarity_search(own)) == ["a"]
    assert ids(store.hybrid("cats", vector=own)) == ["a"]
    degraded = store.search("cats")
    assert (ids(degraded), degraded.degraded) == (["a"], ("vector",))


def test_bad_filters_metrics_and_numbers_are_refused_by_name(store: Store) -> None:
    vector = numbers()
    for metric_error in ("hamming", "COSINE"):
        with pytest.raises(InvalidInput, match="There is no metric"):
            store.similarity_search(vector, metric=metric_error)
    for k in (0, -1, 1001):
        with pytest.raises(InvalidInput, match="k may be"):
            store.similarity_search(vector, k)
    for bad in ({"n": {"$near": 1}}, "n>>3", {"$or": 1}):
        for ask in (
            lambda bad=bad: store.search("cats", filter=bad),
            lambda bad=bad: store.similarity_search(vector, filter=bad),
            lambda bad=bad: store.hybrid("cats", vector=vector, filter=bad),
        ):
            with pytest.raises(InvalidInput):
                ask()


# --- who may what --------------------------------------------------------------------------------


def test_editors_write_viewers_read_and_outsiders_find_no_store() -> None:
    alice: Membership = MembershipFactory()
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    charlie = MembershipFactory()
    CollectionFactory(workspace=alice.workspace, slug="notes")
    theirs = open_store(user=alice.user, collection="notes")
    theirs.index("a", "Cats purr.")

    reading = open_store(user=bob.user, collection="notes")
    assert reading.get("a") is not None
    assert ids(reading.search("cats")) == ["a"]
    for write in (
        lambda: reading.index("a", "Mine."),
        lambda: reading.upsert_vector("b", numbers()),
        lambda: reading.remove("a"),
    ):
        with pytest.raises(Forbidden):
            write()
    with pytest.raises(NotFound):
        open_store(user=charlie.user, collection="notes")
    with pytest.raises(NotFound):
        open_store(user=charlie.user, collection="notes", workspace=alice.workspace.slug)
    outside = Store(theirs.collection, user=charlie.user)
    assert outside.get("a") is None
    assert outside.count() == 0
    for read in (lambda: outside.search("cats"), lambda: outside.similarity_search(numbers())):
        with pytest.raises(NotFound):
            read()
    with pytest.raises(Forbidden):
        outside.remove("a")


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
    with pytest.raises(Conflict, match="taken"):
        hers.index("a", "Mine now.")

    assert ids(his.similarity_search(embed("cats"))) == ["a"]
    his.index("a", "Cats are still secret.")
    assert hers.get("a") is None
    assert ids(hers.search("cats")) == []


# --- the space changes under it ------------------------------------------------------------------


def test_a_new_space_takes_new_vectors_for_the_same_text(
    transactional_db: None, media_root: Any, settings: Any
) -> None:
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {
            **settings.INFERENCE["embedder"],
            "other": {
                "BACKEND": "inference.backends.hashing.HashingEmbedder",
                "OPTIONS": {"dimensions": 64},
            },
        },
    }
    store = Store(CollectionFactory(default_language="en"))
    own = random_vectors(1)[0]
    store.upsert_vectors([Item("text", "Cats purr.", own), Item("bare", vector=own)])
    target, _ = add_space(name="other-64", embedder="other", index_type="none")
    reembed_here(target=target, collection=store.collection)

    # The text has the new model's vector; the bare vector could not be made anew.
    assert store.dimension() == 64
    short = np.random.default_rng(1).normal(size=64)
    assert ids(store.similarity_search(short)) == ["text"]
    with pytest.raises(InvalidItems, match="expected 64, got 384"):
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
