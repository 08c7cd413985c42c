"""The bundled multilingual model: our tokenizer, our unpacking and our runner against others'."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from inference.backends.transformers_local import TransformersEmbedder
from inference.interfaces import BackendUnavailable
from inference.local.model_folder import MULTILINGUAL_E5, locate_model
from inference.local.packed_encoder import PackedWordTable
from inference.local.packed_model import PackedModel

pytestmark = [pytest.mark.model, pytest.mark.nightly]

TEXTS = [
    "How much protein should a woman eat a day?",
    "Wie viele Urlaubstage kann ich ins nächste Jahr mitnehmen?",
    "東京大学の学生、２０２４年。",
    "Сколько стоит билет?   Два  рубля.",
    "La lluvia en Sevilla es una maravilla. " * 12,
]


@pytest.fixture(scope="module")
def packed():
    return PackedModel(locate_model(MULTILINGUAL_E5)[0])


@pytest.fixture(scope="module")
def multilingual():
    return TransformersEmbedder(MULTILINGUAL_E5, dtype="float32")


def test_the_tokens_are_those_of_xlm_roberta(packed):
    tokenizer = packed.tokenizer(max_length=512)
    assert tokenizer.windows(["query: how much protein"]) == [
        [[0, 41, 1294, 12, 3642, 5045, 21308, 2]]
    ]
    [once, twice] = tokenizer.encode(
        ["query: Wie viele Urlaubstage?", "query:  Wie viele  Urlaubstage?"]
    )
    assert once == twice
    assert once[:3] == [41, 1294, 12]


def test_words_are_looked_up_in_the_file(packed):
    table = packed.tensor("emb.word", packed.words, packed.hidden_size)
    ids = np.array([[0, 41], [packed.words - 1, 5045]])
    np.testing.assert_array_equal(packed.embed(ids), table[ids])


def test_weights_are_unpacked_as_the_format_says(packed):
    scales, halves = packed.packed("l0.q.w", packed.hidden_size)
    unpacked = packed.tensor("l0.q.w", packed.hidden_size, packed.hidden_size)
    row, block, byte = 7, 3, 5
    scale, both = float(scales[row, block]), int(halves[row, block, byte])
    assert unpacked[row, 32 * block + byte] == pytest.approx((both % 16 - 8) * scale)
    assert unpacked[row, 32 * block + byte + 16] == pytest.approx((both // 16 - 8) * scale)


def test_vectors_are_those_of_the_card_s_formula(packed, multilingual):
    """Prefix, mean over the tokens, length 1 (https://huggingface.co/intfloat/multilingual-e5-small),
    computed by transformers' BERT with the same weights, text by text."""
    tokenizer = packed.tokenizer(max_length=512)
    ids = [window for [window] in tokenizer.windows([f"passage: {text}" for text in TEXTS])]
    used = sorted({token for each in ids for token in each})
    size, wide = packed.hidden_size, packed.feed_forward_size
    reference = BertModel(
        BertConfig(
            vocab_size=len(used),
            hidden_size=size,
            num_hidden_layers=packed.layers,
            num_attention_heads=packed.heads,
            intermediate_size=wide,
            max_position_embeddings=packed.positions,
            type_vocab_size=packed.token_types,
            layer_norm_eps=packed.epsilon,
        ),
        add_pooling_layer=False,
    ).eval()
    table = PackedWordTable(packed, torch.float32)(torch.tensor(used))
    weights = {
        "embeddings.word_embeddings.weight": table,
        "embeddings.position_embeddings.weight": read(packed, "emb.pos", packed.positions, size),
        "embeddings.token_type_embeddings.weight": read(
            packed, "emb.type", packed.token_types, size
        ),
        "embeddings.LayerNorm.weight": read(packed, "emb.ln.w", size),
        "embeddings.LayerNorm.bias": read(packed, "emb.ln.b", size),
    }
    names = {
        "q": ("attention.self.query", (size, size)),
        "k": ("attention.self.key", (size, size)),
        "v": ("attention.self.value", (size, size)),
        "ao": ("attention.output.dense", (size, size)),
        "aln": ("attention.output.LayerNorm", (size,)),
        "fi": ("intermediate.dense", (wide, size)),
        "fo": ("output.dense", (size, wide)),
        "oln": ("output.LayerNorm", (size,)),
    }
    for layer in range(packed.layers):
        for short, (name, shape) in names.items():
            of = f"encoder.layer.{layer}.{name}"
            weights[f"{of}.weight"] = read(packed, f"l{layer}.{short}.w", *shape)
            weights[f"{of}.bias"] = read(packed, f"l{layer}.{short}.b", shape[0])
    assert not reference.load_state_dict(weights).missing_keys
    expected = []
    for each in ids:
        own = torch.tensor([[used.index(token) for token in each]])
        with torch.inference_mode():
            mean = reference(input_ids=own).last_hidden_state.mean(dim=1)[0].numpy()
        expected.append(mean / np.linalg.norm(mean))
    vectors = multilingual.embed_documents(TEXTS)  # in one padded batch
    assert np.sum(vectors * expected, axis=1).min() >= 0.99999


def read(packed, name, *shape):
    return torch.from_numpy(packed.tensor(name, *shape))


def test_a_question_finds_its_answer_in_another_language(multilingual):
    answers = multilingual.embed_documents(
        [
            "Five days of leave can be carried over to the next year.",
            "The bicycles are serviced every spring.",
            "Der Vertrag endet am 31. März.",
        ]
    )
    assert multilingual.max_tokens == multilingual.token_counter().max_tokens == 510
    for question in (TEXTS[1], "¿Cuántos días de vacaciones puedo pasar al año que viene?"):
        assert np.argmax(answers @ multilingual.embed_query(question)) == 0


def test_other_weights_are_refused(tmp_path):
    other = tmp_path / "e5-small-q4.bin"
    other.write_bytes(b"E5S1 and no more")
    with pytest.raises(BackendUnavailable, match="pip install"):
        PackedModel(other)
