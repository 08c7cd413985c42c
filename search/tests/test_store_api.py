"""The API of stores."""

import json
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Chunk, Collection, Document
from documents.tests.factories import CollectionFactory
from search.api import stores

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
STORE = "/api/v1/collections/notes/store/"
ITEMS = f"{STORE}items/"
SEARCH = f"{STORE}search/"
DELETE = f"{STORE}delete/"


@pytest.fixture
def notes(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, slug="notes", default_language="en")


@pytest.fixture
def client(api: APIClient, notes: Collection) -> APIClient:
    return api


def item_url(key: str) -> str:
    return f"{ITEMS}{quote(key, safe='')}/"


def vector(seed: int = 0) -> list[float]:
    return [float(x) for x in np.random.default_rng(seed).normal(size=384).astype(np.float32)]


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.json()
    return [match["id"] for match in answer.json()["matches"]]


def faults(answer: Any) -> dict[str, str]:
    assert answer.status_code == 400, answer.status_code
    return {error["attr"]: error["detail"] for error in answer.json()["errors"]}


# --- storing -------------------------------------------------------------------------------------


def test_a_batch_of_texts_and_vectors_is_stored_and_found(client: APIClient) -> None:
    batch = [
        {"id": "text", "text": "Cats purr.", "metadata": {"year": 2026}, "title": "Cats"},
        {"id": "vector", "vector": vector(1), "metadata": {"year": 2020}},
        {"id": "both", "text": "Dogs bark.", "vector": vector(2), "language": "en"},
        {"text": "Birds sing."},
    ]
    stored = client.post(ITEMS, {"items": batch}).json()
    assert stored["ids"][:3] == ["text", "vector", "both"]
    assert (stored["stored"], stored["unchanged"]) == (4, 0)
    again = client.post(ITEMS, {"items": batch[:3]}).json()
    assert (again["stored"], again["unchanged"]) == (0, 3)

    store = client.get(STORE).json()
    assert store == {
        "collection": "notes",
        "count": 4,
        "dimension": 384,
        "metric": "cosine",
        "model": "hashing-384",
    }
    item = client.get(item_url("text")).json()
    assert (item["id"], item["text"], item["title"]) == ("text", "Cats purr.", "Cats")
    assert item["metadata"] == {"year": 2026}
    assert client.get(f"/api/v1/documents/{item['document']}/").json()["key"] == "text"

    assert ids(client.post(SEARCH, {"query": "cats", "mode": "lexical"})) == ["text"]
    assert ids(client.post(SEARCH, {"vector": vector(1), "k": 1})) == ["vector"]
    assert ids(client.post(SEARCH, {"query": "cats", "filter": "year=2020"})) == ["vector"]


def test_an_item_is_put_read_replaced_and_deleted(client: APIClient) -> None:
    url = item_url("my note")
    assert client.get(url).status_code == 404
    put = client.put(url, {"text": "Cats purr.", "metadata": {"n": 1}})
    assert (put.status_code, put.json()["text"]) == (200, "Cats purr.")
    client.put(url, {"vector": vector(3)})
    read = client.get(url, {"vectors": "true"}).json()
    assert (read["text"], read["metadata"], read["vector"]) == ("", {}, vector(3))
    assert "vector" not in client.get(url).json()
    assert client.delete(url).status_code == 204
    assert client.delete(url).status_code == 404
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()


@pytest.mark.parametrize(
    "key",
    [
        "a/b//c",
        "a/",
        "/",
        "items/",
        'say "yes" & <b>',
        "'; DROP TABLE x; --",
        "naïve ☃ 漢字",
        "?a=b#c",
        "100%",
        "%2F",
        " ",
        "x" * 1024,
    ],
)
def test_any_id_works_in_an_address(client: APIClient, key: str) -> None:
    assert client.put(item_url(key), {"text": "Cats purr."}).status_code == 200
    assert client.get(item_url(key)).json()["id"] == key
    assert ids(client.post(SEARCH, {"query": "cats"})) == [key]
    assert client.delete(item_url(key)).status_code == 204


@pytest.mark.parametrize("key", [".", "..", "a/../b", "new\nline", "\ufeff"])
def test_ids_that_no_address_can_hold_are_read_and_deleted_otherwise(
    client: APIClient, key: str
) -> None:
    assert client.post(ITEMS, {"items": [{"id": key, "text": "Cats."}]}).status_code == 200
    read = client.get(ITEMS, {"id": [key, "not there"]}).json()
    assert [item["id"] for item in read["items"]] == [key]
    assert read["missing"] == ["not there"]
    assert client.post(DELETE, {"ids": [key, "not there"]}).json() == {"deleted": 1}


# --- what cannot be ------------------------------------------------------------------------------


def test_faults_are_told_by_place_and_id_and_nothing_is_stored(client: APIClient) -> None:
    batch = [
        {"id": "good", "text": "Cats purr."},
        {"id": "short", "vector": [1.0, 2.0]},
        {"id": "empty"},
        {"id": "zero", "vector": [0] * 384},
    ]
    told = faults(client.post(ITEMS, {"items": batch}))
    assert set(told) == {"items.1.vector", "items.2.text", "items.3.vector"}
    assert "“short”" in told["items.1.vector"]
    assert "has 2 dimensions; those of hashing-384" in told["items.1.vector"]
    assert "zeros" in told["items.3.vector"]
    assert not Document.objects.exists()
    assert set(faults(client.put(item_url("a"), {"vector": [1]}))) == {"vector"}


@pytest.mark.parametrize(
    ("asked", "attr"),
    [
        ({"query": "  "}, "query"),
        ({"query": "?!"}, "query"),
        ({"vector": [1.0]}, "vector"),
        ({"vector": [0.0] * 384}, "vector"),
        ({"query": "cats", "vector": [1.0]}, "vector"),
        ({"query": "cats", "vector": [1.0] * 384, "mode": "lexical"}, "vector"),
        ({"query": "cats", "vector": [1.0] * 384, "mode": "vector"}, "vector"),
        ({"query": "cats", "vector": [1.0] * 384, "mode": "graph"}, "vector"),
        ({"vector": [1.0] * 384, "mode": "hybrid"}, "query"),
        ({"query": "cats", "metric": "l2"}, "metric"),
        ({"vector": [1.0] * 384, "weights": {"lexical": 1}}, "weights"),
        ({"query": "cats", "weights": {"graph": 1}}, "weights.graph"),
        ({"query": "cats", "weights": {"lexical": -1}}, "weights.lexical"),
        ({"query": "cats", "weights": {"lexical": 0}}, "weights"),
        ({"query": "cats", "filter": {"n": {"$near": 1}}}, "filter"),
        ({"vector": [1.0] * 384, "filter": "n>>3"}, "filter"),
        ({"vector": [1.0] * 384, "filter": [1]}, "filter"),
        ({"query": "cats", "mode": "lexical", "fusion": "rrf"}, "fusion"),
        ({"query": "cats", "text": "dogs", "vector": [1.0] * 384}, "text"),
    ],
)
def test_searches_that_cannot_be_are_refused_by_name(
    client: APIClient, asked: dict[str, Any], attr: str
) -> None:
    assert attr in faults(client.post(SEARCH, asked))


def test_numbers_that_json_lacks_are_refused(client: APIClient) -> None:
    for text in ('{"vector": [NaN]}', '{"vector": [1e400]}', '{"items": [{"vector": [Infinity]}]}'):
        for url in (SEARCH, ITEMS):
            answer = client.post(url, text, content_type="application/json")
            assert answer.status_code == 400, (text, url)


def test_bodies_are_bounded(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {
        "items": [{"id": str(n), "text": "x", "metadata": {"a": [0] * 300}} for n in range(700)]
    }
    answer = client.post(ITEMS, many)
    assert (answer.status_code, "200,000 values" in answer.json()["detail"]) == (400, True)
    deep: Any = "x"
    for _ in range(40):
        deep = {"a": deep}
    assert client.post(ITEMS, {"items": [{"text": "x", "vector": deep}]}).status_code == 400
    monkeypatch.setattr(stores.VectorsJSONParser, "max_bytes", 1000)
    too_large = client.post(ITEMS, {"items": [{"id": "a", "text": "x" * 1000}]})
    assert (too_large.status_code, too_large.json()["code"]) == (413, "too_large")


def test_a_thousand_vectors_fit_in_one_batch(client: APIClient) -> None:
    values = np.random.default_rng(5).normal(size=(1000, 384)).astype(np.float32)
    batch = {"items": [{"id": f"v{n}", "vector": row.tolist()} for n, row in enumerate(values)]}
    body = json.dumps(batch)
    with CaptureQueriesContext(connection) as captured:
        answer = client.post(ITEMS, body, content_type="application/json")
    assert answer.json()["stored"] == 1000
    assert len(captured) < 100
    found = client.post(SEARCH, {"vector": values[500].tolist(), "k": 1000})
    assert len(ids(found)) == 1000
    assert ids(found)[0] == "v500"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
vectors = (
    st.lists(st.floats(allow_nan=False), max_size=4)
    | st.just([1.0] * 384)
    | st.floats(allow_nan=False).map(lambda value: [value] * 384)
    | anything
)


# --- searching -----------------------------------------------------------------------------------


def test_a_search_takes_metrics_weights_and_filters(client: APIClient) -> None:
    near, far = vector(1), vector(2)
    client.post(
        ITEMS,
        {
            "items": [
                {"id": "words", "text": "Cats purr.", "vector": far, "metadata": {"n": 1}},
                {"id": "meaning", "text": "Dogs bark.", "vector": near, "metadata": {"n": 2}},
            ]
        },
    )
    for metric, score in (("cosine", 1.0), ("l2", 0.0), ("ip", float(np.dot(near, near)))):
        answer = client.post(SEARCH, {"vector": near, "metric": metric}).json()
        assert (answer["mode"], answer["metric"]) == ("vector", metric)
        best = answer["matches"][0]
        assert best["id"] == "meaning"
        assert best["score"] == best["similarity"] == pytest.approx(score, abs=1e-3)
        assert best["snippet"] is None
    for name, metric in (("COSINE", "cosine"), ("Euclidean", "l2"), ("inner-product", "ip")):
        answer = client.post(SEARCH, {"vector": near, "metric": name}).json()
        assert answer["metric"] == metric
    assert "l2" in faults(client.post(SEARCH, {"vector": near, "metric": "hamming"}))["metric"]
    both = {"query": "cats", "vector": near}
    assert ids(client.post(SEARCH, both))[0] == "meaning"
    weighed = client.post(SEARCH, {**both, "weights": {"lexical": 0.9, "vector": 0.1}})
    assert ids(weighed)[0] == "words"
    assert ids(client.post(SEARCH, {**both, "filter": {"n": {"$lt": 2}}})) == ["words"]
    assert ids(client.post(SEARCH, {**both, "filter": {"n": [2]}})) == ["meaning"]
    client.post(ITEMS, {"items": [{"id": "embedded", "text": "Dogs bark and howl."}]})
    by_text = {"query": "cats", "text": "Dogs bark and howl.", "weights": {"vector": 1}}
    assert ids(client.post(SEARCH, by_text))[0] == "embedded"
    client.post(DELETE, {"ids": ["embedded"]})
    by_rank = client.post(SEARCH, {**both, "fusion": "rrf", "rrf_k": 1, "depth": 10}).json()
    assert {match["id"]: match["score"] for match in by_rank["matches"]} == pytest.approx(
        {"meaning": 1 / 2, "words": 1 / 2 + 1 / 3}
    )
    assert {match["id"]: match["snippet"] for match in by_rank["matches"]} == {
        "meaning": "Dogs bark.",
        "words": "Cats purr.",
    }
    by_meaning = client.post(SEARCH, {"query": "cats", "mode": "vector"}).json()
    assert [match["score"] for match in by_meaning["matches"]] == [
        match["similarity"] for match in by_meaning["matches"]
    ]


# --- who may what --------------------------------------------------------------------------------
