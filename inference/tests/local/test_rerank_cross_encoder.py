"""Cross-encoders, tiny and random, score as sentence-transformers does."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertModel

from inference.backends.rerank_cross_encoder import CrossEncoderReranker
from inference.interfaces import BackendUnavailable
from inference.local.model_folder import read_checkpoint
from inference.tests.local.checkpoints import cross_encoder

pytestmark = pytest.mark.model

QUERY = "Who carries cold water?"
TEXTS = ["a wing", "The pump carries cold water before noon. " * 3, "maps", "cold water " * 200]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return cross_encoder(tmp_path_factory.mktemp("hub") / "tiny-marco")


@pytest.fixture(scope="module")
def reranker(folder):
    return CrossEncoderReranker(folder)


def pairs(query=QUERY):
    return [(query, text) for text in TEXTS]


def test_one_label_agrees_with_sentence_transformers(folder, reranker):
    reference = CrossEncoder(folder, device="cpu", local_files_only=True)
    scores = reranker.score(QUERY, TEXTS)
    np.testing.assert_allclose(scores, reference.predict(pairs()), atol=1e-5)
    assert max(scores) - min(scores) > 0.05  # so that agreeing means something
    assert all(0 <= score <= 1 for score in scores)


def test_the_longer_of_a_pair_is_cut_first(folder, reranker):
    reference = CrossEncoder(folder, device="cpu", local_files_only=True)
    query = "who carries the water " * 40
    np.testing.assert_allclose(
        reranker.score(query, TEXTS), reference.predict(pairs(query)), atol=1e-5
    )
    windows = reranker._columns(QUERY, TEXTS, None)["input_ids"]
    assert max(map(len, windows)) == 128
    shorter = CrossEncoderReranker(folder, max_length=24)
    reference = CrossEncoder(folder, device="cpu", max_length=24, local_files_only=True)
    np.testing.assert_allclose(shorter.score(QUERY, TEXTS), reference.predict(pairs()), atol=1e-5)


def test_two_labels_give_the_probability_of_the_second(tmp_path):
    folder = cross_encoder(tmp_path / "two", labels=2)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    inputs = tokenizer(
        pairs(), padding=True, truncation="longest_first", max_length=128, return_tensors="pt"
    )
    with torch.inference_mode():
        expected = model(**inputs).logits.softmax(dim=1)[:, 1].numpy()
    scores = CrossEncoderReranker(folder).score(QUERY, TEXTS)
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_a_model_without_token_types_is_not_given_any(tmp_path):
    folder = cross_encoder(tmp_path / "untyped", type_vocab_size=1)
    reference = CrossEncoder(folder, device="cpu", local_files_only=True)
    expected = reference.tokenizer(
        pairs(), padding=True, truncation=True, max_length=128, return_tensors="pt"
    )
    with torch.inference_mode():
        logits = reference.model(
            input_ids=expected["input_ids"], attention_mask=expected["attention_mask"]
        ).logits
    scores = CrossEncoderReranker(folder).score(QUERY, TEXTS)
    np.testing.assert_allclose(scores, logits[:, 0].sigmoid().numpy(), atol=1e-5)


def test_token_types_that_the_tokenizer_keeps_to_itself_are_not_given(tmp_path, reranker):
    folder = cross_encoder(tmp_path / "quiet")
    config = tmp_path / "quiet" / "tokenizer_config.json"
    names = {"model_input_names": ["input_ids", "attention_mask"]}
    config.write_text(json.dumps(json.loads(config.read_text()) | names))
    scores = CrossEncoderReranker(folder).score(QUERY, TEXTS)
    reference = CrossEncoder(folder, device="cpu", local_files_only=True)
    np.testing.assert_allclose(scores, reference.predict(pairs()), atol=1e-5)
    assert np.abs(np.subtract(scores, reranker.score(QUERY, TEXTS))).max() > 1e-3


def test_more_labels_are_no_score(tmp_path):
    folder = cross_encoder(tmp_path / "three", labels=3)
    with pytest.raises(BackendUnavailable, match="three sorts texts into 3 classes"):
        CrossEncoderReranker(folder).score(QUERY, TEXTS)


def test_a_model_without_a_classifier_is_not_given_a_random_one(tmp_path):
    folder = cross_encoder(tmp_path / "bare")
    BertModel.from_pretrained(folder).save_pretrained(folder)
    with pytest.raises(BackendUnavailable, match=r"bare lacks 2 of the weights.*classifier\.bias"):
        CrossEncoderReranker(folder).score(QUERY, TEXTS)


def test_a_model_that_names_no_padding_token_is_refused(tmp_path):
    folder = cross_encoder(tmp_path / "unpadded")
    config = tmp_path / "unpadded" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pad_token_id": None}))
    with pytest.raises(BackendUnavailable, match="names no pad_token_id"):
        CrossEncoderReranker(folder).score(QUERY, TEXTS)


def test_a_window_without_room_for_a_pair_is_refused(folder):
    with pytest.raises(BackendUnavailable, match="max_length 4 leaves no room"):
        CrossEncoderReranker(folder, max_length=4).score(QUERY, TEXTS)


def test_positions_that_start_behind_the_padding_token_are_not_counted(tmp_path):
    config = {"max_position_embeddings": 514, "pad_token_id": 1, "model_type": "xlm-roberta"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_checkpoint(tmp_path).max_length == 512
