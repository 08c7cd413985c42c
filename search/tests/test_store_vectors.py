"""Vectors of a store's callers: found exactly, in every metric, or refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from numpy.typing import NDArray

from common.errors import EmbedderUnavailable, InvalidInput
from documents.ingestion.items import InvalidItems, Item
from documents.models import Document
from documents.services import add_space, reembed_inline
from documents.tests.factories import CollectionFactory, MembershipFactory, embed
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable, InvalidVector
from search.stores import Store
from search.tests.stores import ids, numbers, random_vectors
from tests.kit import use_models

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


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


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_a_similarity_of_zero_is_not_negative(store: Store, metric: str) -> None:
    one, other = np.eye(384, dtype=np.float32)[:2]
    store.upsert_vectors([one], id_prefix="v")
    (match,) = store.similarity_search(one if metric == "l2" else other, 1, metric=metric)
    assert str(match.score) == "0.0"


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
    several = np.array(random_vectors(300))
    # Ten that are near; all others are as far as any, and an index may take one for another.
    several[1:10] = several[0] + 0.05 * several[1:10]
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
    use_models(settings, embedder={**settings.INFERENCE["embedder"], "mine": given})
    store = Store(CollectionFactory(default_language="en"))
    target, _ = add_space(name="mine", embedder="mine", metric="ip")
    reembed_inline(target=target, collection=store.collection)

    assert store.dimension() == 8
    own = np.arange(1, 9, dtype=np.float32)
    store.upsert_vectors([Item("a", "Cats purr.", own), Item("b", vector=-own)])
    assert [match.score for match in store.similarity_search(own)] == [204.0, -204.0]
    assert ids(store.hybrid("cats", vector=own)) == ["a", "b"]
    assert ids(store.search("cats", mode="lexical")) == ["a"]
    with pytest.raises(EmbedderUnavailable, match="give the vector with each text"):
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


def test_no_item_of_a_batch_has_statements_of_its_own(store: Store) -> None:
    vectors = random_vectors(240)

    def statements(first: int, count: int, title: str) -> int:
        items = [
            Item(f"item {n}", f"text {n}", vectors[n], title=title)
            for n in range(first, first + count)
        ]
        with CaptureQueriesContext(connection) as asked:
            store.upsert_vectors(items)
        return len(asked)

    for title in ("new", "changed"):
        few, many = statements(0, 40, title), statements(40, 200, title)
        assert many < few + 10


@pytest.mark.parametrize("key", ["", "x" * 1025, "☃" * 1000, "nul\x00", "half \ud800"])
def test_ids_that_cannot_be_are_refused_and_never_there(store: Store, key: str) -> None:
    with pytest.raises(InvalidItems) as refused:
        store.index(key, "Cats purr.")
    assert refused.value.problems[0].field == "id"
    str(refused.value).encode()
    assert store.get(key) is None
    assert not store.remove(key)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (numbers(3), "has 3 dimensions; those of hashing-384"),
        (numbers(385), "has 385 dimensions; those of hashing-384"),
        ([], "has 0 dimensions; those of hashing-384"),
        (numbers(_7=float("nan")), "NaN"),
        (numbers(_7=float("inf")), "NaN or a number too large"),
        (numbers(_7=1e300), "too large"),
        (numbers(_7=10**400), "flat list"),
        ([0.0] * 384, "all zeros"),
        ([1e-30] * 384, "Scale all"),
        ([1e30] * 384, "Scale all"),
        ([numbers()], "flat list"),
        ([[1.0], [1.0, 2.0]], "flat list"),
        (["1.0"] * 384, "flat list"),
        ([True] * 384, "flat list"),
        ("vector", "flat list"),
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
    with pytest.raises(InvalidItems, match="More errors: 1") as refused:
        store.index_many([Item("a"), Item("b", "fine"), Item("c")])
    assert [problem.id for problem in refused.value.problems] == ["a", "c"]


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
    use_models(settings, embedder={"BACKEND": f"{__name__}.Broken"})
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
    with pytest.raises(EmbedderUnavailable, match="does not answer"):
        store.index("a", "Cats.")
    assert store.count() == 0
    own = random_vectors(1)[0]
    store.upsert_vector("a", own, text="Cats purr.")
    assert ids(store.similarity_search(own)) == ["a"]
    assert ids(store.hybrid("cats", vector=own)) == ["a"]
    degraded = store.search("cats")
    assert (ids(degraded), degraded.degraded) == (["a"], ("vector",))
