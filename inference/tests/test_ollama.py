"""Embedding by Ollama's API. What it shares with OpenAI's is tested there."""

import numpy as np
import pytest

from inference.backends.ollama import KNOWN, OllamaEmbedder
from inference.interfaces import (
    BackendUnavailable,
    MalformedAnswer,
)
from inference.tests.stub_server import DIMENSIONS, Reply, ollama_reply, vector


@pytest.fixture
def stub(stub):
    stub.always(ollama_reply)
    return stub


def embedder(stub, model="small", **options):
    return OllamaEmbedder(model, base_url=stub.url, **{"dimensions": DIMENSIONS, **options})


def unit(text):
    return np.array(vector(text)) / 3


def test_documents_go_as_a_list_and_nothing_may_be_cut(stub):
    vectors = embedder(stub).embed_documents(["one", "two"])
    np.testing.assert_allclose(vectors, [unit("one"), unit("two")], atol=1e-6)
    assert stub.requests[0].path == "/api/embed"
    assert stub.requests[0].json == {"model": "small", "input": ["one", "two"], "truncate": False}


def test_the_default_model_gets_its_prompts_and_its_whole_window(stub):
    stub.always(lambda payload: Reply({"embeddings": [[1.0] * 768]}))
    nomic = OllamaEmbedder(base_url=stub.url)
    nomic.embed_documents(["x"])
    nomic.embed_query("y")
    first, second = (request.json for request in stub.requests)
    assert (first["input"], second["input"]) == (["search_document: x"], ["search_query: y"])
    assert first["model"] == "nomic-embed-text"
    assert first["options"] == {"num_ctx": 2048}
    assert nomic.dimensions == 768
    assert nomic.max_tokens == 2046 - nomic.token_counter().count("search_document: ")


def test_qwen3_gets_its_instruction_and_documents_stay_bare(stub):
    stub.always(lambda payload: Reply({"embeddings": [[1.0] * 1024]}))
    qwen = OllamaEmbedder("qwen3-embedding:0.6b", base_url=stub.url)
    qwen.embed_documents(["x"])
    qwen.embed_query("y")
    qwen.embed_query("y", "Find the law")
    assert [request.json["input"][0] for request in stub.requests] == [
        "x",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
        "Query:y",
        "Instruct: Find the law\nQuery:y",
    ]


def test_prompts_can_be_replaced_and_taken_away(stub):
    stub.always(lambda payload: Reply({"embeddings": [[1.0] * 768]}))
    bare = OllamaEmbedder(base_url=stub.url, document_prompt="", query_prompt="Q ")
    bare.embed_documents(["x"])
    bare.embed_query("x")
    assert [request.json["input"] for request in stub.requests] == [["x"], ["Q x"]]


@pytest.mark.parametrize("model", [*KNOWN, "nomic-embed-text:latest"])
def test_known_models_need_no_options(model):
    known = KNOWN[model.removesuffix(":latest")]
    made = OllamaEmbedder(model)
    assert (made.dimensions, made.model_name) == (known.dimensions, model)


def test_for_another_model_the_length_must_be_said():
    with pytest.raises(BackendUnavailable, match=r"'other' is not known.*OPTIONS\['dimensions'\]"):
        OllamaEmbedder("other")


@pytest.mark.parametrize("keep_alive", ["30m", -1, 0])
def test_how_long_the_model_stays_loaded_can_be_said(stub, keep_alive):
    embedder(stub, keep_alive=keep_alive, max_tokens=100).embed_query("x")
    assert stub.requests[0].json["keep_alive"] == keep_alive
    assert stub.requests[0].json["options"] == {"num_ctx": 102}


def test_shorter_vectors_are_asked_for_where_they_are_wished(stub):
    stub.first(Reply({"embeddings": [[1.0] * 256]}))
    OllamaEmbedder("qwen3-embedding:0.6b", base_url=stub.url, dimensions=256).embed_query("x")
    assert stub.requests[0].json["dimensions"] == 256


def test_a_model_that_is_not_pulled_is_said_to_be_so(stub):
    stub.first(Reply({"error": 'model "small" not found, try pulling it first'}, 404))
    with pytest.raises(BackendUnavailable, match=r"try pulling it first.*`ollama pull small`"):
        embedder(stub).embed_query("x")


def test_an_ollama_that_does_not_run_is_said_not_to():
    with pytest.raises(BackendUnavailable, match="ollama serve"):
        OllamaEmbedder(base_url="http://127.0.0.1:9", query_timeout=0.1).embed_query("x")


@pytest.mark.parametrize(
    "error",
    [
        "the input length exceeds the context length",
        '{"error":{"code":400,"message":"request (90 tokens) exceeds the available context size"}}',
    ],
)
@pytest.mark.parametrize("status", [400, 500])
def test_a_text_that_is_too_long_after_all_is_embedded_in_halves(stub, error, status):
    def reads_forty_characters(payload):
        too_long = max(map(len, payload["input"])) > 40
        return Reply({"error": error}, status) if too_long else ollama_reply(payload)

    stub.always(reads_forty_characters)
    short, long = embedder(stub).embed_documents(["short", "a word and another " * 5])
    np.testing.assert_allclose(short, unit("short"), atol=1e-6)
    assert np.linalg.norm(long) == pytest.approx(1)


@pytest.mark.parametrize("answer", [[], {}, {"embeddings": None}, {"embedding": [1.0]}])
def test_an_answer_of_another_shape_is_malformed(stub, answer):
    stub.first(Reply(answer))
    with pytest.raises(MalformedAnswer, match="no list `embeddings`"):
        embedder(stub).embed_query("x")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_vectors_is_malformed(stub, count):
    stub.first(Reply({"embeddings": [vector("x")] * count}))
    with pytest.raises(MalformedAnswer, match=f"2 texts were sent and {count} vectors came"):
        embedder(stub).embed_documents(["a", "b"])
