"""The bundled MiniLM: real weights, real vectors."""

import shutil
import threading

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from inference.backends.transformers_local import TransformersEmbedder
from inference.interfaces import BackendUnavailable, EmptyText, InferenceError
from inference.local.model_folder import locate_model

pytestmark = pytest.mark.model

TEXTS = [
    "Nausea and headache are common side effects of these tablets.",
    "heart",
    "Was kostet die Überfahrt? 世界, emoji 🙂 and a\ttab.",
    "A boundary layer grows along the wing in supersonic flow. " * 8,
    "!",
    "the harbour at evening " * 30,
    "The committee approved the annual budget without debate.",
    "Dosage: 10 mg once daily\n\n- with food\n- never more than 30 mg",
]
PAIR = ["one", "two two two two"]


def cosines(left, right):
    return np.sum(left * right, axis=1)


@pytest.fixture(scope="module")
def exact():
    """In float32, where a batch cannot differ from a single text by rounding."""
    return TransformersEmbedder(dtype="float32")


def test_vectors_agree_with_sentence_transformers_in_float32(minilm, exact):
    reference = SentenceTransformer(str(locate_model(None)[0]), device="cpu", local_files_only=True)
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    vectors = minilm.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert cosines(vectors, expected).min() >= 0.999
    assert cosines(exact.embed_documents(TEXTS), expected).min() >= 0.999999


def test_a_text_has_the_same_vector_alone_and_in_a_padded_batch(exact):
    together = exact.embed_documents(TEXTS)
    alone = np.stack([exact.embed_query(text) for text in TEXTS])
    assert cosines(together, alone).min() >= 0.99999


@pytest.mark.nightly
def test_texts_are_compared_by_their_vectors_and_token_by_token(exact):
    question = "How much of the medicine may I take a day?"
    compared = exact.compare(question, TEXTS)
    vectors = exact.embed_documents(TEXTS) @ exact.embed_query(question)
    assert compared.shape == (len(TEXTS), 2)
    short = [len(text) < 500 for text in TEXTS]  # of longer ones the beginning is compared
    np.testing.assert_allclose(compared[short, 0], vectors[short], atol=1e-5)
    assert compared[:, 1].argmax() == len(TEXTS) - 1
    # Every token finds itself; those around it, such as padding, are no part of the text.
    assert exact.compare("heart", ["heart", *TEXTS])[0] == pytest.approx([1, 1], abs=1e-4)


def test_small_batches_and_large_ones_give_the_same_vectors_in_order(exact):
    small = TransformersEmbedder(dtype="float32", batch_tokens=64).embed_documents(TEXTS)
    assert cosines(small, exact.embed_documents(TEXTS)).min() >= 0.99999


def test_the_chosen_number_format_costs_no_more_than_rounding(minilm):
    together = minilm.embed_documents(TEXTS)
    alone = np.stack([minilm.embed_query(text) for text in TEXTS])
    assert cosines(together, alone).min() >= 0.9995


def test_a_long_text_is_the_token_weighted_mean_of_its_windows(exact):
    head, tail = "heart " * 254, "engine " * 100
    assert exact.token_counter().count(head + tail) == 354
    window_vectors = exact.embed_documents([head, tail])
    mean = np.array([254, 100]) @ window_vectors
    vectors = exact.embed_documents(["before", head + tail, "after"])
    assert vectors[1] @ mean / np.linalg.norm(mean) >= 0.9999
    assert vectors[1] @ window_vectors[0] < 0.99  # cut at the first window, it would be that one
    neighbours = exact.embed_documents(["before", "after"])
    assert cosines(vectors[[0, 2]], neighbours).min() >= 0.9999


def test_a_question_is_nearest_to_the_text_that_answers_it(minilm):
    question = minilm.embed_query("Which complaints may this medicine cause?")
    assert int(np.argmax(minilm.embed_documents(TEXTS) @ question)) == 0


def test_fewer_dimensions_are_the_leading_ones_normalised_again(minilm):
    short = TransformersEmbedder(dimensions=64)
    assert short.dimensions == 64
    expected = minilm.embed_documents(PAIR)[:, :64]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert cosines(short.embed_documents(PAIR), expected).min() >= 0.9999
    with pytest.raises(InferenceError, match="has 384 dimensions"):
        _ = TransformersEmbedder(dimensions=385).dimensions


def test_an_instruction_stands_before_the_query(minilm):
    plain = minilm.embed_query("represent this: heart")
    assert plain @ minilm.embed_query("heart", "represent this: ") >= 0.9999


def test_no_texts_give_no_vectors(minilm):
    assert minilm.embed_documents([]).shape == (0, 384)


@pytest.mark.parametrize("blank", ["", " \n", "\u200b"])
def test_a_text_with_nothing_in_it_is_refused_by_its_index(minilm, blank):
    with pytest.raises(EmptyText, match="Text 1"):
        minilm.embed_documents(["fine", blank])


def test_the_model_is_loaded_once_by_the_first_of_many_threads():
    class Counted(TransformersEmbedder):
        loads = 0

        def _load(self):
            self.loads += 1
            return super()._load()

    embedder = Counted()
    together = threading.Barrier(6)
    vectors = []

    def embed():
        together.wait()
        vectors.append(embedder.embed_documents(PAIR))

    threads = [threading.Thread(target=embed) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert embedder.loads == 1
    assert len(vectors) == 6
    assert all(cosines(vectors[0], other).min() >= 0.9999 for other in vectors)


@pytest.mark.usefixtures("socket_disabled")
def test_no_network_is_needed():
    assert TransformersEmbedder().embed_documents(["heart"]).shape == (1, 384)


def test_a_folder_without_weights_fails_with_its_name(tmp_path):
    shutil.copytree(
        locate_model(None)[0], tmp_path / "half", ignore=shutil.ignore_patterns("*.safetensors")
    )
    embedder = TransformersEmbedder(str(tmp_path / "half"))
    assert embedder.dimensions == 384
    with pytest.raises(BackendUnavailable, match=r"half cannot be loaded.*Is the folder whole"):
        embedder.embed_query("heart")


def test_vectors_are_filed_under_the_models_name():
    assert TransformersEmbedder().model_name == "all-MiniLM-L6-v2"
    assert TransformersEmbedder(name="ours").model_name == "ours"
