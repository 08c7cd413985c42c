"""Items into the tables: new documents are written once, as they stay."""

from typing import Any

import numpy as np
import pytest
from pytest_django import DjangoAssertNumQueries

from accounts.models import Change
from common.rls import workspace_context
from documents import lexical_differences, lexical_index, services
from documents.ingestion import versions
from documents.ingestion.items import Item
from documents.models import Chunk, Collection, Document, LexicalSegment, PendingChunk
from documents.tests.factories import CollectionFactory

pytestmark = pytest.mark.django_db

FRENCH = "Le castor construit un barrage de branches et de boue au milieu de la rivière."


@pytest.fixture
def collection() -> Collection:
    return CollectionFactory(default_language="")


def item(key: str, text: str = "the otter swims", **said: Any) -> Item:
    return Item(id=key, text=text, vector=np.random.default_rng(len(key)).normal(size=384), **said)


def test_new_and_known_items_of_a_batch_become_what_they_say(collection: Collection) -> None:
    services.store_items(collection=collection, items=[item("b", title="Old")])
    known = Document.objects.get(key="b")
    batch = [
        item("a", FRENCH, title="Castor", metadata={"n": 1, "flags": [1]}),
        item("b", title="New", metadata={"n": True, "flags": [True]}),
        item("ccc", metadata={"n": 1.5}),
        Item(id="d", text="a text that the model embeds", metadata={"n": True}),
    ]
    services.store_items(collection=collection, items=batch)
    stored = services.get_items(collection=collection, keys=["a", "b", "ccc", "d"])
    assert [repr(stored[each.id].metadata) for each in batch] == [
        repr(each.metadata) for each in batch
    ]
    assert [stored[each.id].title for each in batch] == ["Castor", "New", "Ccc", "D"]
    assert stored["b"].document_id == known.pk
    assert stored["a"].language == "fr"
    assert str(Chunk.objects.get(document__key="a").language) == "french"
    for each in batch[:3]:
        assert np.allclose(stored[each.id].vector, each.vector)
    document = Document.objects.get(key="a")
    assert (document.status, document.chunk_count, document.claimed_by) == ("ready", 1, None)
    assert document.indexed_at is not None
    assert not lexical_differences.find_differences(collection.pk, sample=10**6)
    again = services.store_items(collection=collection, items=batch)
    assert (again.ids, again.unchanged) == ((), 4)


def test_an_id_that_somebody_takes_meanwhile_is_replaced(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare = versions.documents_to_compare
    looks: list[int] = []

    def compared_with(*arguments: Any) -> dict[str, Document]:
        there = compare(*arguments)
        if not looks:
            looks.append(1)
            services.store_items(collection=collection, items=[item("a", "the other one's")])
        return there

    monkeypatch.setattr(versions, "documents_to_compare", compared_with)
    done = services.store_items(collection=collection, items=[item("a"), item("b")])
    assert done.ids == ("a", "b")
    texts = Chunk.objects.filter(collection=collection).values_list("document__key", "text")
    assert sorted(texts) == [("a", "the otter swims"), ("b", "the otter swims")]
    assert sum(Change.objects.values_list("count", flat=True)) == 3


def test_one_small_new_item_takes_a_dozen_statements(
    collection: Collection, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    services.store_items(collection=collection, items=[item("warm")])
    with django_assert_max_num_queries(13):
        services.store_items(collection=collection, items=[item("a")])


def test_many_new_items_are_indexed_in_the_transaction_that_stores_them(
    collection: Collection,
) -> None:
    many = [
        item(f"n{number}", language="en") for number in range(lexical_index.SEGMENT_MIN_PENDING)
    ]
    with workspace_context(collection.workspace_id):
        services.store_items(collection=collection, items=[*many, item("f", FRENCH)])
    assert not PendingChunk.objects.exists()
    assert sorted(LexicalSegment.objects.values_list("language", "chunk_count")) == [
        ("english", len(many)),
        ("french", 1),
    ]
    assert not lexical_differences.find_differences(collection.pk, sample=10**6)
    services.store_items(collection=collection, items=[item("one more")])
    assert PendingChunk.objects.count() == 1


def test_an_item_is_stored_within_the_fence_of_a_request(collection: Collection) -> None:
    with workspace_context(collection.workspace_id):
        services.store_items(collection=collection, items=[item("a"), item("b")])
        assert services.count_items(collection=collection) == 2
    assert Chunk.objects.filter(collection=collection).count() == 2
