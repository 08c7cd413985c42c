"""Reranking by a server, one that keeps to the protocol and ones that do not."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.backends.rerank_http import HttpReranker
from inference.interfaces import BackendUnavailable, InvalidScore, MalformedAnswer
from inference.tests.stub_server import Reply, Silence, stub_server

TEXTS = ["first", "second", "third"]


@pytest.fixture
def stub(stub):
    stub.always(by_length)
    return stub


def by_length(payload):
    """The longer a document, the better, within 0..1."""
    return results(*((at, len(text) / 100) for at, text in enumerate(payload["documents"])))


def results(*pairs):
    return Reply({"results": [{"index": at, "relevance_score": score} for at, score in pairs]})


def reranker(stub, **options):
    return HttpReranker("a-model", stub.url, **options)


def test_the_request_is_the_one_that_servers_agree_on(stub):
    assert reranker(stub, api_key="sk-1").score("a query", TEXTS) == [0.05, 0.06, 0.05]
    request = stub.requests[0]
    assert request.path == "/v1/rerank"
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.json == {
        "model": "a-model",
        "query": "a query",
        "documents": TEXTS,
        "top_n": 3,
    }


def test_no_texts_need_no_request(stub):
    assert reranker(stub).score("q", []) == []
    assert stub.requests == []


@pytest.mark.parametrize("items", ["results", "data"])
@pytest.mark.parametrize("score", ["relevance_score", "score"])
def test_both_names_of_the_fields_are_understood(stub, items, score):
    stub.first(Reply({items: [{"index": 1, score: 0.9}, {"index": 0, score: 0.25}]}))
    assert reranker(stub).score("q", ["a", "b"]) == [0.25, 0.9]


@pytest.fixture(scope="module")
def shared():
    with stub_server() as server:
        yield server


@settings(max_examples=30, deadline=None)
@given(scores=st.lists(st.floats(0, 1), min_size=1, max_size=8), data=st.data())
def test_what_is_listed_stands_above_what_is_left_out(shared, scores, data):
    order = data.draw(st.permutations(range(len(scores))))
    kept = order[: data.draw(st.integers(0, len(scores)))]
    shared.first(results(*((at, scores[at]) for at in kept)))
    got = HttpReranker("m", shared.url).score("q", ["text"] * len(scores))
    omitted = [got[at] for at in range(len(scores)) if at not in kept]
    assert all(0 <= score <= 1 for score in got)
    assert omitted == [0.0] * len(omitted)
    if omitted:
        assert all(got[at] > 0 for at in kept)
    by_server = sorted(kept, key=lambda at: scores[at])
    assert [got[at] for at in by_server] == sorted(got[at] for at in kept)


def test_unbounded_scores_are_brought_into_0_to_1_all_alike(stub):
    stub.first(results((0, -3.0), (1, 0.5), (2, 900.0)))
    got = reranker(stub).score("q", TEXTS)
    assert got == pytest.approx([1 / (1 + math.exp(3)), 1 / (1 + math.exp(-0.5)), 1.0])


def test_scores_of_all_batches_are_treated_alike(stub):
    stub.always(lambda payload: results((0, 7.0 if payload["documents"] == ["third"] else 0.5)))
    got = reranker(stub, batch_size=1).score("q", TEXTS)
    assert got == pytest.approx([1 / (1 + math.exp(-0.5))] * 2 + [1 / (1 + math.exp(-7))])


def test_it_can_be_said_that_scores_are_logits_or_that_they_are_not(stub):
    stub.first(results((0, 0.5)), results((0, 1.5)))
    assert reranker(stub, logits=True).score("q", ["x"])[0] == pytest.approx(0.6225, abs=1e-4)
    assert reranker(stub, logits=False).score("q", ["x"]) == [1.0]


def test_a_probability_rounded_beyond_one_stays_a_probability(stub):
    stub.first(results((0, 1.0000002), (1, 0.2), (2, -1e-7)))
    assert reranker(stub).score("q", TEXTS) == [1.0, 0.2, 0.0]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_a_score_that_sorts_nothing_is_refused(stub, score):
    stub.first(results((1, score)))
    with pytest.raises(InvalidScore, match="text 1 has the score"):
        reranker(stub).score("q", TEXTS)


@pytest.mark.parametrize("index", [3, -1, None, "0", 1.0, True])
def test_an_index_that_belongs_to_no_text_is_malformed(stub, index):
    stub.first(results((index, 0.5)))
    with pytest.raises(MalformedAnswer, match="none of them or comes twice"):
        reranker(stub).score("q", TEXTS)


def test_an_index_that_comes_twice_is_malformed(stub):
    stub.first(results((0, 0.5), (0, 0.6)))
    with pytest.raises(MalformedAnswer, match="comes twice"):
        reranker(stub).score("q", TEXTS)


@pytest.mark.parametrize("answer", [[], {}, {"results": None}, {"data": [0.5]}])
def test_an_answer_of_another_shape_is_malformed(stub, answer):
    stub.first(Reply(answer))
    with pytest.raises(MalformedAnswer, match="neither `results` nor `data`"):
        reranker(stub).score("q", TEXTS)


def test_a_score_that_is_no_number_is_malformed(stub):
    stub.first(results((0, "high")))
    with pytest.raises(MalformedAnswer, match="is no number"):
        reranker(stub).score("q", TEXTS)


@pytest.mark.parametrize("status", [413, 422])
def test_too_many_texts_are_sent_in_halves(stub, status):
    def at_most_two(payload):
        if len(payload["documents"]) > 2:
            return Reply({"error": "batch size 7 > maximum allowed batch size 2"}, status)
        return by_length(payload)

    stub.always(at_most_two)
    texts = ["x" * length for length in range(1, 8)]
    assert reranker(stub).score("q", texts) == pytest.approx([n / 100 for n in range(1, 8)])


def test_a_text_too_long_for_the_server_has_its_best_parts_score(stub):
    def short_only(payload):
        if max(map(len, payload["documents"])) > 40:
            return Reply({"error": "`inputs` must have less than 9 tokens"}, 413)
        return by_length(payload)

    stub.always(short_only)
    got = reranker(stub).score("q", ["short", "words " * 9])
    assert got == pytest.approx([0.05, max(len(("words " * n).strip()) for n in (4, 5)) / 100])


def test_an_instruction_goes_nowhere_because_there_is_no_field_for_it(stub):
    reranker(stub).score("q", TEXTS, instruction="find laws", stored=[1, 2, 3])
    assert "find laws" not in str(stub.requests[0].json)


def test_half_a_surrogate_pair_drops_no_text(stub):
    reranker(stub).score("q\ud800", ["a\udfff"])
    assert stub.requests[0].json["query"] == "q?"


def test_a_failing_server_is_asked_again_and_a_slow_one_given_up(stub):
    stub.first(Reply({}, 503))
    assert len(reranker(stub).score("q", TEXTS)) == 3
    stub.first(Silence())
    with pytest.raises(BackendUnavailable, match="did not answer"):
        reranker(stub, timeout=0.2).score("q", TEXTS)
    assert len(stub.requests) == 3
