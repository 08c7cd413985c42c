"""Who says how words and meaning are joined: the request, then the collections, then the site."""

from typing import Any

import pytest

from common.errors import InvalidInput
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import ingest_inline, update_collection
from documents.tests.factories import CollectionFactory
from search.query_options import RetrievalOptions, site_scope
from search.results import SearchResult
from search.services import search

pytestmark = pytest.mark.django_db
TEXTS = {f"n{n}": f"Note {n} about pain, fever and what helps." for n in range(30)}


@pytest.fixture
def collection() -> Collection:
    made = CollectionFactory()
    ingest_inline(collection=made, sources=[text_source(key, text) for key, text in TEXTS.items()])
    return made


def find(collection: Collection, **options: Any) -> SearchResult:
    return search(
        "what helps against fever", scope=site_scope(workspace=collection.workspace), **options
    )


def test_the_request_goes_before_the_collection_and_that_before_the_site(
    collection: Collection, settings: Any
) -> None:
    assert find(collection).fusion == "score"
    settings.FUSION = "weighted"
    assert find(collection).fusion == "weighted"
    update_collection(collection=collection, fusion={"method": "rrf", "rrf_k": 9})
    by_collection = find(collection)
    assert by_collection.fusion == "rrf"
    best = by_collection.hits[0]
    assert best.fused == pytest.approx(sum(1 / (9 + rank) for rank in best.ranks.values()))
    asked = find(collection, rrf_k=99).hits[0]
    assert asked.fused == pytest.approx(sum(1 / (99 + rank) for rank in asked.ranks.values()))
    assert find(collection, fusion="score").fusion == "score"


def test_collections_that_disagree_leave_it_to_the_site(collection: Collection) -> None:
    update_collection(collection=collection, fusion={"method": "rrf"})
    CollectionFactory(workspace=collection.workspace)
    assert find(collection).fusion == "score"


def test_fixed_weights_are_all_that_counts(collection: Collection, settings: Any) -> None:
    settings.FUSION_WEIGHTS = {"vector": 0.75, "lexical": 0.25}
    result = find(collection, fusion="weighted")
    assert {arm.name: arm.weight for arm in result.arms} == {"lexical": 0.25, "vector": 0.75}
    assert all(hit.contributions.keys() == {"lexical", "vector"} for hit in result.hits)


def test_each_arm_lists_as_many_candidates_as_are_asked_for(collection: Collection) -> None:
    assert [arm.candidates for arm in find(collection, depth=12).arms] == [12, 12]
    update_collection(collection=collection, fusion={"depth": 15})
    assert [arm.candidates for arm in find(collection).arms] == [15, 15]


@pytest.mark.parametrize(
    "options",
    [
        {"method": "magic"},
        {"rrf_k": 0},
        {"weights": {"sound": 1.0}},
        "rrf",
    ],
)
def test_a_collection_refuses_what_cannot_be(collection: Collection, options: Any) -> None:
    with pytest.raises(InvalidInput):
        update_collection(collection=collection, fusion=options)


def test_alpha_and_beta_are_weights() -> None:
    def weights(**given: float) -> Any:
        return RetrievalOptions(**given).fusion_options.weights

    assert weights() is None
    assert weights(alpha=0.75) == {"lexical": 0.75, "vector": 0.25}
    assert weights(beta=1.0) == {"lexical": 0.0, "vector": 1.0}
    assert weights(alpha=1.0, beta=1.0) == {"lexical": 1.0, "vector": 1.0}
    assert weights(lexical_weight=0.4) == weights(vector_weight=0.6) == weights(alpha=0.4)


def test_alpha_weighs_bm25_and_beta_the_cosine(collection: Collection) -> None:
    found = find(collection, fusion="weighted", alpha=0.4, beta=0.6, depth=40)
    best = max(hit.lexical or 0.0 for hit in found.hits)
    assert {arm.name: arm.weight for arm in found.arms} == {"lexical": 0.4, "vector": 0.6}
    for hit in found.hits:
        expected = 0.4 * (hit.lexical or 0.0) / best
        assert hit.contributions["lexical"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "given",
    [
        {"alpha": 0.4, "lexical_weight": 0.4},
        {"beta": 0.6, "vector_weight": 0.6},
        {"alpha": 0.4, "weights": {"lexical": 0.4}},
        {"alpha": 0.0, "beta": 0.0},
    ],
)
def test_weights_are_said_once_and_not_all_zero(given: Any) -> None:
    with pytest.raises(InvalidInput):
        RetrievalOptions(**given)
