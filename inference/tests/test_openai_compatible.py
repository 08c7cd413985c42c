"""Embedding by the OpenAI protocol, against servers that keep to it and servers that do not."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.backends.openai_compatible import OpenAIEmbedder
from inference.interfaces import (
    BackendUnavailable,
    DimensionMismatch,
    EmptyText,
    InferenceError,
    InvalidVector,
    MalformedAnswer,
)
from inference.local.model_folder import locate_model
from inference.tests.stub_server import (
    DIMENSIONS,
    Reply,
    Silence,
    openai_reply,
    stub_server,
    vector,
)

TEXTS = ["a first text", "a second text", "a third one"]


@pytest.fixture
def stub(stub):
    stub.always(openai_reply)
    return stub


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def embedder(stub, **options):
    return OpenAIEmbedder(
        "a-model", base_url=stub.url, **{"dimensions": DIMENSIONS, "query_timeout": 2, **options}
    )


def unit(text):
    return np.array(vector(text)) / 3


def inputs(stub):
    return [request.json["input"] for request in stub.requests]


def data(*rows):
    return Reply({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})


def test_documents_become_unit_vectors_in_their_order(stub):
    vectors = embedder(stub).embed_documents(TEXTS)
    assert vectors.shape == (3, DIMENSIONS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS], atol=1e-6)
    assert stub.requests[0].path == "/v1/embeddings"
    assert stub.requests[0].json == {"model": "a-model", "input": TEXTS}


def test_a_query_becomes_one_vector(stub):
    query = embedder(stub).embed_query("a question")
    assert query.shape == (DIMENSIONS,)
    np.testing.assert_allclose(query, unit("a question"), atol=1e-6)


def test_no_documents_need_no_request(stub):
    assert embedder(stub).embed_documents([]).shape == (0, DIMENSIONS)
    assert stub.requests == []


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_address_may_end_in_v1_or_not(stub, suffix):
    OpenAIEmbedder("m", base_url=stub.url + suffix, dimensions=DIMENSIONS).embed_query("x")
    assert stub.requests[0].path == "/v1/embeddings"


def test_prompts_go_before_texts_and_an_instruction_replaces_the_querys(stub):
    prompted = embedder(stub, query_prompt="query: ", document_prompt="passage: ")
    prompted.embed_documents(["x"])
    prompted.embed_query("x")
    prompted.embed_query("x", "find: ")
    assert inputs(stub) == [["passage: x"], ["query: x"], ["find: x"]]


def test_an_instruction_takes_its_place_in_an_instruct_prompt(stub):
    embedder(stub, query_prompt="Instruct: search\nQuery:").embed_query("x", "find laws")
    assert inputs(stub) == [["Instruct: find laws\nQuery:x"]]


@pytest.fixture(scope="module")
def shuffling():
    with stub_server() as server:
        yield server


@settings(max_examples=30, deadline=None)
@given(order=st.permutations(range(5)))
def test_in_whatever_order_vectors_come_they_belong_to_their_texts(shuffling, order):
    texts = [f"text number {number}" for number in range(5)]

    def shuffled(payload):
        items = openai_reply(payload).body["data"]
        return Reply({"data": [items[at] for at in order]})

    shuffling.always(shuffled)
    vectors = embedder(shuffling).embed_documents(texts)
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)


@pytest.mark.parametrize("indexes", [[0], [0, 0], [0, 2], [-1, 0], [0, None], [True, 0], ["0", 1]])
def test_missing_repeated_and_unknown_indexes_are_malformed(stub, indexes):
    items = [{"index": index, "embedding": vector("x")} for index in indexes]
    stub.first(Reply({"data": items}))
    with pytest.raises(MalformedAnswer, match="each index must come once"):
        embedder(stub).embed_documents(["a", "b"])


@pytest.mark.parametrize("answer", [[], None, {}, {"data": None}, {"data": [1]}, "x"])
def test_an_answer_of_another_shape_is_malformed(stub, answer):
    stub.first(Reply(answer))
    with pytest.raises(MalformedAnswer, match="no list `data`"):
        embedder(stub).embed_query("x")


@pytest.mark.parametrize("embedding", ["AAAA", {}, ["1"] * DIMENSIONS, [[1.0]] * DIMENSIONS])
def test_a_vector_that_is_no_list_of_numbers_is_malformed(stub, embedding):
    stub.first(data(embedding))
    with pytest.raises(MalformedAnswer, match="no list of numbers"):
        embedder(stub).embed_query("x")


@pytest.mark.parametrize("length", [0, DIMENSIONS - 1, DIMENSIONS + 1])
def test_a_vector_of_another_length_is_refused(stub, length):
    stub.first(data(vector("x"), [1.0] * length))
    with pytest.raises(DimensionMismatch, match=f"Expected {DIMENSIONS} dimensions, got {length}"):
        embedder(stub).embed_documents(["x", "y"])


@pytest.mark.parametrize(
    "row",
    [
        None,
        [None] * DIMENSIONS,
        [float("nan")] * DIMENSIONS,
        [float("inf")] * DIMENSIONS,
        [1e300] * DIMENSIONS,
        [0.0] * DIMENSIONS,
    ],
)
def test_a_vector_by_which_nothing_is_found_is_refused(stub, row):
    stub.first(data(vector("x"), row))
    with pytest.raises(InvalidVector, match="vector 1 is"):
        embedder(stub).embed_documents(["x", "y"])


def test_a_blank_text_is_refused_before_anything_is_sent(stub):
    with pytest.raises(EmptyText, match="Text 1"):
        embedder(stub).embed_documents(["x", " "])
    with pytest.raises(InferenceError, match="surrogate"):
        embedder(stub).embed_query("\ud800")
    assert stub.requests == []


def test_batches_are_bounded_by_texts_and_by_tokens(stub):
    one_at_a_time = {"parallel": 1, "dimensions": DIMENSIONS}
    embedder(stub, batch_size=2, **one_at_a_time).embed_documents(["a", "b", "c", "d", "e"])
    assert inputs(stub) == [["a", "b"], ["c", "d"], ["e"]]
    stub.requests.clear()
    words = ["abc " * count for count in (3, 3, 9, 1)]
    embedder(stub, batch_tokens=8, **one_at_a_time).embed_documents(words)
    assert [len(batch) for batch in inputs(stub)] == [2, 1, 1]


def test_batches_go_out_together_and_come_back_in_order(stub):
    met = threading.Barrier(4)

    def together(payload):
        met.wait(5)  # broken unless four requests are under way at once
        return openai_reply(payload)

    stub.always(together)
    texts = [f"text {number}" for number in range(8)]
    vectors = embedder(stub, batch_size=1, parallel=4).embed_documents(texts)
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)


def test_the_first_error_ends_the_rest(stub):
    stub.always(lambda payload: Reply({"error": "no"}, 400))
    with pytest.raises(BackendUnavailable, match="answers 400: no"):
        embedder(stub, batch_size=1, parallel=2).embed_documents([f"t{n}" for n in range(50)])
    assert len(stub.requests) < 25


@pytest.mark.parametrize(
    ("status", "limit"), [(413, 3), (422, 1)], ids=["payload too large", "unprocessable"]
)
def test_a_batch_that_is_too_large_is_halved_until_it_fits(stub, status, limit):
    def picky(payload):
        given = len(payload["input"])
        if given > limit:
            error = f"batch size {given} > maximum allowed batch size {limit}"
            return Reply({"error": error, "error_type": "Validation"}, status)
        return openai_reply(payload)

    stub.always(picky)
    texts = [f"text {number}" for number in range(7)]
    vectors = embedder(stub).embed_documents(texts)
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)


def test_a_refusal_for_another_reason_is_not_answered_with_less(stub):
    stub.always(lambda payload: Reply({"error": "model is loading"}, 422))
    with pytest.raises(BackendUnavailable, match="model is loading"):
        embedder(stub).embed_documents(TEXTS)
    assert len(stub.requests) == 1


def test_a_server_that_finds_everything_too_large_is_not_asked_for_ever(stub):
    stub.always(lambda payload: Reply(b"", 413))
    with pytest.raises(BackendUnavailable, match="answers 413"):
        embedder(stub).embed_documents(["many words " * 50] * 4)
    assert len(stub.requests) < 20


def weighted_mean(windows, count):
    mean = np.average(
        [unit(window) for window in windows], axis=0, weights=list(map(count, windows))
    )
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("tokenizer", [None, "the model's own"])
def test_a_long_text_is_embedded_in_windows_and_nothing_of_it_is_lost(stub, tokenizer):
    path = str(locate_model(None)[0]) if tokenizer else None
    long = " ".join(f"word{number}" for number in range(40))
    windowed = embedder(stub, max_tokens=30, tokenizer=path, document_prompt="p: ")
    short, averaged = windowed.embed_documents(["short", long])
    sent = [text.removeprefix("p: ") for batch in inputs(stub) for text in batch]
    count = windowed.token_counter().count
    assert " ".join(sent) == f"short {long}"
    assert all(count(text) <= windowed.max_tokens for text in sent)
    np.testing.assert_allclose(short, unit("p: short"), atol=1e-6)
    assert windowed.max_tokens == 30 - count("p: ")
    mean = np.average(
        [unit(f"p: {text}") for text in sent[1:]], axis=0, weights=list(map(count, sent[1:]))
    )
    np.testing.assert_allclose(averaged, mean / np.linalg.norm(mean), atol=1e-6)


def test_a_text_that_the_server_finds_too_long_is_embedded_in_halves(stub):
    def reads_forty_characters(payload):
        if max(map(len, payload["input"])) > 40:
            return Reply({"error": {"message": "maximum context length is 9 tokens"}}, 400)
        return openai_reply(payload)

    stub.always(reads_forty_characters)
    long = " ".join(f"word{number}" for number in range(20))
    wide = embedder(stub)
    vectors = wide.embed_documents(["before", long, "after"])
    accepted = [batch for batch in inputs(stub) if max(map(len, batch)) <= 40]
    pieces = [text for batch in accepted for text in batch if text not in {"before", "after"}]
    assert " ".join(pieces) == long
    expected = weighted_mean(pieces, wide.token_counter().count)
    np.testing.assert_allclose(vectors, [unit("before"), expected, unit("after")], atol=1e-6)


def test_openais_models_are_known(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    lengths = {
        model: (OpenAIEmbedder(model).dimensions, OpenAIEmbedder(model).max_tokens)
        for model in ("text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002")
    }
    assert list(lengths.values()) == [(1536, 8191), (3072, 8191), (1536, 8191)]
    assert OpenAIEmbedder().model_name == "text-embedding-3-small"
    assert OpenAIEmbedder(name="ours").model_name == "ours"


def test_for_another_model_the_length_must_be_said(stub):
    with pytest.raises(BackendUnavailable, match=r"'other' is not known.*OPTIONS\['dimensions'\]"):
        OpenAIEmbedder("other", base_url=stub.url)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"model": "text-embedding-3-small"}, None),
        ({"model": "text-embedding-3-small", "dimensions": 1536}, None),
        ({"model": "text-embedding-3-small", "dimensions": 8}, 8),
        ({"model": "text-embedding-3-small", "send_dimensions": True}, 1536),
        ({"model": "text-embedding-3-small", "dimensions": 8, "send_dimensions": False}, None),
        ({"model": "other", "dimensions": 8}, None),
        ({"model": "other", "dimensions": 8, "send_dimensions": True}, 8),
    ],
)
def test_dimensions_are_sent_only_where_they_are_a_wish(stub, options, sent):
    made = OpenAIEmbedder(base_url=stub.url, **options)
    stub.first(data([1.0] * made.dimensions))
    made.embed_query("x")
    assert stub.requests[0].json.get("dimensions") == sent


@pytest.mark.parametrize(
    ("option", "variable", "sent"),
    [
        (None, "sk-variable", "Bearer sk-variable"),
        ("sk-option", "sk-variable", "Bearer sk-option"),
        ("", "sk-variable", None),
        (None, "", None),
    ],
)
def test_the_key_comes_from_the_options_or_the_environment(
    stub, monkeypatch, option, variable, sent
):
    monkeypatch.setenv("OPENAI_API_KEY", variable)
    embedder(stub, api_key=option).embed_query("x")
    assert stub.requests[0].headers.get("authorization") == sent


def test_openai_itself_is_not_asked_without_a_key():
    with pytest.raises(BackendUnavailable, match="Set OPENAI_API_KEY"):
        OpenAIEmbedder()


def test_a_wrong_key_is_said_to_be_wrong_and_not_shown(stub):
    stub.first(Reply({"error": {"message": "Incorrect API key: sk-secret-1."}}, 401))
    with pytest.raises(BackendUnavailable, match="OPENAI_API_KEY") as failed:
        embedder(stub, api_key="sk-secret-1").embed_query("x")
    assert "sk-secret" not in str(failed.value)


@pytest.mark.parametrize("option", ["batch_size", "parallel", "timeout", "attempts", "dimensions"])
def test_an_option_that_lets_nothing_through_is_refused(stub, option):
    with pytest.raises(BackendUnavailable, match=rf"OPTIONS\['{option}'\] is 0"):
        embedder(stub, **{option: 0})


def test_a_prompt_longer_than_the_window_is_refused(stub):
    with pytest.raises(BackendUnavailable, match="document_prompt leaves no room"):
        embedder(stub, max_tokens=4, document_prompt="many more words than four: ")


def test_a_query_waits_for_a_second_try_but_not_for_long(stub):
    stub.first(Reply({}, 429, {"Retry-After": "0"}))
    np.testing.assert_allclose(embedder(stub).embed_query("x"), unit("x"), atol=1e-6)
    stub.first(Silence())
    with pytest.raises(BackendUnavailable, match="did not answer"):
        embedder(stub, query_timeout=0.2).embed_query("x")
    assert len(stub.requests) == 3


def test_several_queries_go_in_one_request(stub):
    vectors = embedder(stub, query_prompt="q: ").embed_queries(["x", "y"])
    np.testing.assert_allclose(vectors, [unit("q: x"), unit("q: y")], atol=1e-6)
    assert len(stub.requests) == 1


def test_a_server_may_have_another_path_and_another_header_for_its_key(stub):
    azure = OpenAIEmbedder(
        "text-embedding-3-small",
        base_url=f"{stub.url}/openai/deployments/mine",
        path="/embeddings?api-version=2024-10-21",
        api_key="sk-azure",
        key_header="api-key",
        dimensions=DIMENSIONS,
        send_dimensions=False,
    )
    np.testing.assert_allclose(azure.embed_documents(TEXTS), [unit(text) for text in TEXTS])
    (request,) = stub.requests
    assert request.path == "/openai/deployments/mine/embeddings?api-version=2024-10-21"
    assert request.headers["api-key"] == "sk-azure"
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    "options",
    [{"path": "embeddings"}, {"path": "/a b"}, {"path": "/a#b"}, {"key_header": "api key:"}],
)
def test_a_path_or_header_that_cannot_be_is_refused(stub, options):
    with pytest.raises(BackendUnavailable, match=next(iter(options))):
        embedder(stub, **options)
