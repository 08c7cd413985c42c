"""Qwen3-Embedding, tiny and random in the layout of the hub, is run as its card says."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from inference.backends.transformers_local import TransformersEmbedder
from inference.interfaces import BackendUnavailable
from inference.tests.local.checkpoints import QUERY_PROMPT, qwen3_embedding

pytestmark = pytest.mark.model

TEXTS = [
    "a wing",
    "the pump carries cold water before noon " * 6,
    "maps",
    "three letters, forgotten",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return qwen3_embedding(tmp_path_factory.mktemp("hub") / "Qwen3-Embedding-0.6B")


@pytest.fixture(scope="module")
def embedder(folder):
    return TransformersEmbedder(folder)


def left_padding(folder, **options):
    """The pipeline of the model card."""
    return SentenceTransformer(
        folder,
        device="cpu",
        model_kwargs={"dtype": torch.float32},
        processor_kwargs={"padding_side": "left"},
        local_files_only=True,
        **options,
    )


@pytest.fixture(scope="module")
def reference(folder):
    pipeline = left_padding(folder)
    assert pipeline.tokenizer.padding_side == "left"
    return pipeline


def cosines(left, right):
    return np.sum(left * right, axis=1)


def alone(embedder):
    return np.concatenate([embedder.embed_documents([text]) for text in TEXTS])


def test_the_folder_is_read_as_it_stands_on_the_hub(embedder):
    assert embedder.model_name == "Qwen3-Embedding-0.6B"
    assert embedder.dimensions == 32
    assert embedder.max_tokens == 8191  # it claims 32768, and one token is the end of the text
    assert embedder.token_counter().windows(["a"])[0][0][-1] == 0  # <|endoftext|>


def test_a_wider_window_is_used_where_it_is_asked_for(folder):
    assert TransformersEmbedder(folder, max_length=32768).max_tokens == 32767
    with pytest.raises(BackendUnavailable, match="reads 32768 tokens at most, not 40000"):
        _ = TransformersEmbedder(folder, max_length=40000).max_tokens


def test_documents_agree_with_the_left_padding_pipeline(embedder, reference):
    vectors = embedder.embed_documents(TEXTS)
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(cosines(vectors, expected), 1, atol=1e-5)


def test_queries_carry_the_instruction_and_documents_are_bare(embedder, reference):
    own = reference.encode_query("maps", normalize_embeddings=True)
    assert embedder.embed_query("maps") @ own == pytest.approx(1, abs=1e-5)
    spelled = reference.encode(f"{QUERY_PROMPT}maps", normalize_embeddings=True)
    assert embedder.embed_query("maps") @ spelled == pytest.approx(1, abs=1e-5)
    other = reference.encode("Instruct: Find maps\nQuery:maps", normalize_embeddings=True)
    assert embedder.embed_query("maps", "Find maps") @ other == pytest.approx(1, abs=1e-5)
    assert embedder.embed_query("maps") @ embedder.embed_documents(["maps"])[0] < 0.999


def test_a_text_alone_and_in_a_padded_batch_is_the_same(embedder):
    assert cosines(embedder.embed_documents(TEXTS), alone(embedder)).min() >= 0.9999


def test_bfloat16_is_had_by_asking_and_moves_a_text_a_little_with_its_batch(folder, embedder):
    half = TransformersEmbedder(folder, dtype="bfloat16")
    assert half._loaded()._model.dtype == torch.bfloat16
    assert embedder._loaded()._model.dtype == torch.float32
    assert cosines(half.embed_documents(TEXTS), alone(half)).min() >= 0.999
    assert cosines(half.embed_documents(TEXTS), embedder.embed_documents(TEXTS)).min() >= 0.999


def test_fewer_dimensions_agree_with_truncate_dim(folder):
    vectors = TransformersEmbedder(folder, dimensions=8).embed_documents(TEXTS)
    expected = left_padding(folder, truncate_dim=8).encode(TEXTS, normalize_embeddings=True)
    assert vectors.shape == expected.shape == (len(TEXTS), 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_another_pooling_would_be_seen(folder, reference, pooling):
    wrong = TransformersEmbedder(folder, dtype="float32", pooling=pooling).embed_documents(TEXTS)
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    assert cosines(wrong, expected).max() < 0.99
