"""What a store refuses, and the strange things that it does not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from common.errors import InvalidInput
from documents.ingestion.items import InvalidItems, Item
from documents.services import add_space
from documents.tests.factories import CollectionFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable, InvalidVector
from search.stores import EmbeddingUnavailable, Store
from search.tests.stores import ids, numbers, random_vectors

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


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
