"""Vectors of a store's callers: found exactly, in every metric."""

from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from numpy.typing import NDArray

from documents.ingestion.items import Item
from documents.models import Document
from documents.services import add_space, reembed_inline
from documents.tests.factories import CollectionFactory, MembershipFactory, embed
from search.stores import EmbeddingUnavailable, Store
from search.tests.stores import ids, random_vectors

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
    settings.INFERENCE = {
        **settings.INFERENCE,
        "embedder": {**settings.INFERENCE["embedder"], "mine": given},
    }
    store = Store(CollectionFactory(default_language="en"))
    target, _ = add_space(name="mine", embedder="mine", metric="ip")
    reembed_inline(target=target, collection=store.collection)

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
