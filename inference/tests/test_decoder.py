"""A decoder (Qwen3, tiny and random) is pooled at its last token, padding or none."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

from inference.backends.transformers_local import TransformersEmbedder

pytestmark = pytest.mark.model

END = "<|endoftext|>"
TEXTS = [
    "a wing",
    "the pump carries cold water before noon " * 6,
    "maps",
    "three letters, forgotten",
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Left-padding last-token pipeline, and its folder."""
    at = tmp_path_factory.mktemp("qwen")
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(at / "plain")
    _model(len(tokenizer)).save_pretrained(at / "plain")
    pipeline = SentenceTransformer(
        modules=[
            Transformer(str(at / "plain")),
            Pooling(32, pooling_mode="lasttoken"),
            Normalize(),
        ],
        prompts={"query": "Instruct: Find the answer\nQuery:"},
        device="cpu",
    )
    pipeline.save_pretrained(str(at / "tiny-qwen3"))
    return pipeline, str(at / "tiny-qwen3")


def _tokenizer():
    bytewise = Tokenizer(models.BPE())
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END],
        show_progress=False,
    )
    bytewise.train_from_iterator(TEXTS, trainer)
    bytewise.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, bytewise.token_to_id(END))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=bytewise, pad_token=END, padding_side="left", model_max_length=512
    )


def _model(vocabulary):
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        initializer_range=0.3,  # so that texts differ and a wrong token shows
    )
    return Qwen3Model(config)


def test_documents_agree_with_the_left_padding_pipeline(reference):
    pipeline, folder = reference
    assert pipeline.tokenizer.padding_side == "left"
    vectors = TransformersEmbedder(folder, dtype="float32").embed_documents(TEXTS)
    expected = pipeline.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(np.sum(vectors * expected, axis=1), 1, atol=1e-5)


def test_queries_carry_the_instruction_and_documents_are_bare(reference):
    pipeline, folder = reference
    embedder = TransformersEmbedder(folder, dtype="float32")
    own = pipeline.encode_query("maps", normalize_embeddings=True)
    assert embedder.embed_query("maps") @ own == pytest.approx(1, abs=1e-5)
    other = pipeline.encode("Instruct: Find maps\nQuery:maps", normalize_embeddings=True)
    assert embedder.embed_query("maps", "Find maps") @ other == pytest.approx(1, abs=1e-5)
    assert embedder.embed_query("maps") @ embedder.embed_documents(["maps"])[0] < 0.999


def test_a_text_alone_and_in_a_padded_batch_is_the_same(reference):
    embedder = TransformersEmbedder(reference[1], dtype="float32")
    together = embedder.embed_documents(TEXTS)
    alone = np.concatenate([embedder.embed_documents([text]) for text in TEXTS])
    assert np.sum(together * alone, axis=1).min() >= 0.9999


def test_mean_pooling_would_be_seen(reference):
    pipeline, folder = reference
    wrong = TransformersEmbedder(folder, dtype="float32", pooling="mean").embed_documents(TEXTS)
    expected = pipeline.encode(TEXTS, normalize_embeddings=True)
    assert np.sum(wrong * expected, axis=1).max() < 0.99
