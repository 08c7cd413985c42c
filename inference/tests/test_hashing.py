"""The embedders that need no model."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.backends.given import GivenVectors
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable, EmptyText, InferenceError

TEXT = st.text(min_size=1).filter(lambda text: not text.isspace())


@given(st.lists(TEXT, max_size=8), st.sampled_from([1, 2, 384]))
def test_every_text_gets_a_unit_vector(texts, dimensions):
    vectors = HashingEmbedder(dimensions=dimensions).embed_documents(texts)
    assert vectors.shape == (len(texts), dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@given(st.lists(TEXT, min_size=1, max_size=8))
def test_a_text_has_the_same_vector_alone_in_company_and_as_a_query(texts):
    embedder = HashingEmbedder()
    together = embedder.embed_documents(texts)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_array_equal(row, embedder.embed_documents([text])[0])
        np.testing.assert_array_equal(row, embedder.embed_query(text, "an instruction"))


def test_another_process_computes_the_same_vector():
    program = (
        "from inference.backends.hashing import HashingEmbedder as H;"
        "print(H().embed_query('Grüße, 世界 and aripiprazole').tobytes().hex())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    own = HashingEmbedder().embed_query("Grüße, 世界 and aripiprazole").tobytes().hex()
    assert outputs == {own.encode() + b"\n"}


def test_texts_are_nearer_the_more_words_they_share():
    question, near, related, far = HashingEmbedder().embed_documents(
        [
            "common side effects of aripiprazole",
            "Aripiprazole: side effects, common and rare",
            "Effect of an aripiprazol tablet on the liver",
            "The wing of the plane in supersonic flow",
        ]
    )
    assert question @ near > 0.6 > question @ related > 0.15 > question @ far


def test_a_word_in_another_form_is_nearer_than_a_stranger():
    word, plural, stranger = HashingEmbedder().embed_documents(["tablet", "tablets", "wing"])
    assert word @ plural > 0.3 > abs(word @ stranger)


def test_repeating_a_word_changes_less_than_adding_as_many_others():
    once, often, diluted = HashingEmbedder().embed_documents(
        ["pump valve", "pump pump pump pump valve", "pump valve harbour engine letter"]
    )
    assert once @ often > once @ diluted


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u3000"])
def test_a_blank_text_is_refused_by_its_index(blank):
    with pytest.raises(EmptyText, match="Text 1 is empty") as refused:
        HashingEmbedder().embed_documents(["fine", blank])
    assert refused.value.index == 1


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(InferenceError, match="Text 0 has an unpaired surrogate at 2"):
        HashingEmbedder().embed_query("ab\ud800")


def test_tokens_are_words_and_punctuation_marks():
    counter = HashingEmbedder(max_tokens=9).token_counter()
    assert counter.count("Take 2 tablets, twice.") == 6
    assert counter.count(" ") == 0
    assert counter.max_tokens == 9
    assert counter.tokenizer is None


@given(TEXT, TEXT)
def test_counts_add_up_over_separate_texts(first, second):
    counter = HashingEmbedder().token_counter()
    assert counter.count(f"{first}\n{second}") == counter.count(first) + counter.count(second)


def test_that_of_given_vectors_says_how_long_vectors_are_and_embeds_nothing():
    embedder = GivenVectors(dimensions=1536, name="text-embedding-3-small")
    assert (embedder.dimensions, embedder.model_name) == (1536, "text-embedding-3-small")
    for ask in (lambda: embedder.embed_documents(["a"]), lambda: embedder.embed_query("a")):
        with pytest.raises(BackendUnavailable, match="give the vector"):
            ask()
    assert embedder.token_counter().count("some words here") > 0
