"""Searching in one space and in two: indexes, precisions, metrics, and chunks on the move."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.db import connection

from common.fusion import normalize_across_spaces
from documents import services
from documents.embedders import SimilarityScale
from documents.ingestion import reembed
from documents.ingestion.sources import text_source
from documents.ingestion.vector_indexes import build_index
from documents.models import Chunk, Collection, EmbeddingSpace
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, DocumentFactory
from inference.backends.hashing import HashingEmbedder
from search.query import parse_query
from search.query_options import site_scope
from search.results import SearchResult
from search.retrieval import arms
from search.retrieval.arms import gather
from search.retrieval.scope_facts import read_scope_facts
from search.retrieval.statements import SpaceQueries, SpaceQuery, gather_statement
from search.services import search

ROWS = 400


@pytest.fixture
def fill(transactional_db: None) -> Callable[..., tuple[EmbeddingSpace, Any]]:
    def make(**options: Any) -> tuple[EmbeddingSpace, Any]:
        """A space of clustered vectors, as texts have them, indexed; and the vectors."""
        space, _ = services.add_space(name="tried", **options)
        collection = CollectionFactory(space=space)
        document = DocumentFactory(collection=collection)
        random = np.random.default_rng(5)
        centres = random.normal(size=(20, space.dimensions))
        vectors = centres[random.integers(0, 20, ROWS)] + 0.6 * random.normal(
            size=(ROWS, space.dimensions)
        )
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        Chunk.objects.bulk_create(
            Chunk(
                workspace=collection.workspace,
                collection=collection,
                document=document,
                space=space,
                ordinal=ordinal,
                text=f"passage {ordinal}",
                start=ordinal,
                end=ordinal + 1,
                language="simple",
                embedding=vector.astype(np.float32),
                content_sha256=str(ordinal),
            )
            for ordinal, vector in enumerate(vectors)
        )
        build_index(space)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE documents_chunk")
        return space, vectors

    return make


@pytest.mark.parametrize("metric", ["cosine", "l2", "ip"])
@pytest.mark.parametrize("precision", ["full", "half", "binary"])
@pytest.mark.parametrize("index_type", ["hnsw", "ivfflat"])
def test_every_index_is_used_and_finds_the_nearest(
    fill: Callable[..., Any], settings: Any, index_type: str, precision: str, metric: str
) -> None:
    space, vectors = fill(index_type=index_type, precision=precision, metric=metric)
    scope = site_scope(workspace=Collection.objects.get(space=space).workspace)
    query = vectors[3] + 0.02 * np.random.default_rng(1).normal(size=space.dimensions)
    query = (query / np.linalg.norm(query)).astype(np.float32)

    def nearest(exact: bool) -> tuple[Any, Any, str]:
        spaces = (SpaceQuery(space.sql, query, exact=exact),)
        asked = {"scope": scope, "depth": 10, "lexical": False}
        queries = SpaceQueries(queries=spaces, probes=10)
        found, _ = gather(parse_query("x"), **asked, facts=read_scope_facts(scope), spaces=queries)
        rows, similarity = found.candidates, found.candidates.scores["similarity"]
        assert set(rows.index_ids) == set(found.near)
        sql, parameters = gather_statement(parse_query("x"), **asked, spaces=spaces)
        with connection.cursor() as cursor:
            # On a few hundred rows reading all of them is rightly taken for cheaper.
            cursor.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
            cursor.execute("SET enable_sort = off")
            cursor.execute("EXPLAIN " + sql, parameters)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            cursor.execute("RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort")
        order = np.argsort(-similarity)
        return rows.chunk_ids[order], similarity[order], plan

    exact, similarities, plan = nearest(exact=True)
    assert space.sql.index_name not in plan
    found, _, plan = nearest(exact=False)
    assert space.sql.index_name in plan
    ordinals = dict(Chunk.objects.values_list("id", "ordinal"))
    truth = np.argsort(-(vectors @ query))[:10]
    assert [ordinals[pk] for pk in exact] == list(truth)
    assert similarities == pytest.approx(vectors[truth] @ query, abs=1e-5)
    assert len({*found.tolist()} & {*exact.tolist()}) >= 9


@pytest.mark.parametrize(
    ("index_type", "name", "automatic"), [("hnsw", "ef_search", 64), ("ivfflat", "probes", 10)]
)
def test_a_request_goes_before_the_space_and_this_before_what_suits_the_index(
    fill: Callable[..., Any],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    index_type: str,
    name: str,
    automatic: int,
) -> None:
    settings.EXACT_SCAN_CHUNKS = 0
    space, vectors = fill(index_type=index_type)
    scope = site_scope(workspace=Collection.objects.get(space=space).workspace)
    told: list[str] = []

    def snapshot(connection: Any, settings: str) -> Any:
        told.append(settings)
        return real(connection, settings)

    real = arms.read_snapshot
    monkeypatch.setattr(arms, "read_snapshot", snapshot)

    def looked_at(**asked: int) -> str:
        found = search("", scope=scope, mode="vector", vector=vectors[0], k=5, **asked)
        assert len(found.hits) == 5
        return told[-1]

    setting = f"{'hnsw' if index_type == 'hnsw' else 'ivfflat'}.{name}"
    assert f"{setting} = {automatic};" in looked_at()
    services.change_search_options(space=space, **{name: 7})
    assert f"{setting} = 7;" in looked_at()
    assert f"{setting} = 9;" in looked_at(**{name: 9})


WIDE = {
    "default": {"BACKEND": "inference.backends.hashing.HashingEmbedder"},
    "wide": {
        "BACKEND": "inference.backends.hashing.HashingEmbedder",
        "OPTIONS": {"dimensions": 768},
    },
}
SUBJECTS = ("otter", "heron", "beaver", "salmon", "badger", "falcon", "marten", "plover")
TEXTS = {
    f"{subject}-{number}": f"The {subject} of river {number} sleeps by day."
    for subject in SUBJECTS
    for number in range(40)
}


@pytest.fixture
def collection(transactional_db: None, media_root: Any, settings: Any) -> Collection:
    settings.INFERENCE = {"embedder": WIDE, "reranker": {}}
    collection = CollectionFactory(slug="notes", default_language="en")
    sources = [text_source(key, text) for key, text in TEXTS.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


def find(collection: Collection, query: str, **options: Any) -> SearchResult:
    scope = site_scope(workspace=collection.workspace)
    return search(query, scope=scope, **{"mode": "vector", "k": 1, **options})


def half_moved(collection: Collection) -> reembed.Reembedding:
    services.add_space(name="wide", embedder="wide")
    row = reembed.start_reembedding(target=services.get_space("wide"))
    reembed.move_batch(row, token=reembed.take_over(row))
    reembed.stop_reembedding(row)
    moved = Chunk.objects.filter(space=row.target).count()
    assert 0 < moved < len(TEXTS)
    return row


def test_while_chunks_move_every_one_is_found_in_its_own_space(collection: Collection) -> None:
    half_moved(collection)
    for mode in ("vector", "hybrid"):
        for key, text in list(TEXTS.items())[::7]:
            (hit,) = find(collection, text, mode=mode).hits
            assert hit.document_key == key
            assert hit.similarity == pytest.approx(1, abs=0.05)


def test_ranks_of_two_spaces_are_one_list_and_nobody_comes_twice(collection: Collection) -> None:
    half_moved(collection)
    result = find(collection, "the otter sleeps", k=100)
    assert len({hit.chunk_id for hit in result.hits}) == 100
    ranks = [hit.ranks["vector"] for hit in result.hits]
    assert ranks == list(range(1, 101))
    assert {hit.document_key.partition("-")[0] for hit in result.hits[:30]} == {"otter"}


def test_a_space_whose_model_is_down_leaves_the_other_one(
    collection: Collection, settings: Any
) -> None:
    half_moved(collection)
    broken = {**WIDE, "wide": {"BACKEND": "tests.kit.Down", "OPTIONS": {"dimensions": 768}}}
    settings.INFERENCE = {"embedder": broken, "reranker": {}}
    there = Chunk.objects.filter(space__name="minilm-384").first()
    assert there
    result = find(collection, there.text)
    assert result.hits[0].chunk_id == there.pk
    assert result.degraded == ("vector",)
    assert "only some of the passages" in result.notes[0]


class Mover(HashingEmbedder):
    """Moves everything to another space while a query is being embedded: the worst moment."""

    def embed_query(self, text: str, instruction: str | None = None) -> Any:
        if EmbeddingSpace.objects.get(name="wide").state == "live":
            services.reembed_inline(target=services.get_space("wide"))
        return super().embed_query(text, instruction)


def test_chunks_that_move_while_a_query_is_embedded_are_found(
    collection: Collection, settings: Any
) -> None:
    services.add_space(name="wide", embedder="wide")
    moving = {**WIDE, "default": {"BACKEND": f"{__name__}.Mover"}}
    settings.INFERENCE = {"embedder": moving, "reranker": {}}
    key, text = next(iter(TEXTS.items()))
    (hit,) = find(collection, text).hits
    assert hit.document_key == key
    assert not Chunk.objects.exclude(space__name="wide").exists()


def test_vectors_of_another_model_are_never_compared(collection: Collection, settings: Any) -> None:
    EmbeddingSpace.objects.update(model_name="another-model")
    result = find(collection, "otter", mode="hybrid")
    assert result.degraded == ("vector",)
    assert result.hits[0].similarity is None


def test_each_models_own_scale_is_taken_off() -> None:
    similarities, spaces = np.array([0.6, 0.05, 0.88, 0.75, 1.0]), np.array([1, 1, 2, 2, 2])
    close = normalize_across_spaces(similarities, spaces, {1: 0.05, 2: 0.75})
    assert np.argsort(close, kind="stable").tolist() == [1, 3, 2, 0, 4]
    assert close[[1, 3, 4]] == pytest.approx((0, 0, 1))
    assert (
        normalize_across_spaces(similarities, spaces, {1: 0.05}).tolist() == similarities.tolist()
    )


def test_a_model_of_high_similarities_is_compared_above_what_it_gives_to_anything(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shares() -> list[float]:
        hits = find(
            collection, "otter", mode="hybrid", k=5, weights={"lexical": 1, "vector": 1}
        ).hits
        return sorted(hit.contributions["vector"] for hit in hits if hit.similarity)

    as_it_is = shares()
    scale = SimilarityScale(unrelated=0.1, related=0.9)
    monkeypatch.setattr("search.retrieval.statements.scale_of", lambda space: scale)
    above = shares()
    assert above[-1] == pytest.approx(as_it_is[-1])  # the best has its whole weight
    assert above[0] < as_it_is[0]
