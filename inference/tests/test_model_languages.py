"""Which languages a reranker was made for, by its entry of INFERENCE."""

import pytest

from inference.model_languages import is_made_for, reranker_languages

ONNX = "inference.backends.onnx_local.OnnxReranker"
CROSS_ENCODER = "inference.backends.rerank_cross_encoder.CrossEncoderReranker"


@pytest.mark.parametrize(
    ("entry", "languages"),
    [
        ({"BACKEND": ONNX}, {"en"}),
        ({"BACKEND": ONNX, "OPTIONS": {"model": "/models/mmarco-mMiniLMv2-L12-H384-v1/"}}, {"*"}),
        ({"BACKEND": CROSS_ENCODER, "OPTIONS": {"model": "BAAI/bge-reranker-v2-m3"}}, {"*"}),
        ({"BACKEND": CROSS_ENCODER, "OPTIONS": {"model": "./our-own"}}, set()),
        ({"BACKEND": "inference.backends.rerank_http.HttpReranker"}, set()),
    ],
)
def test_a_reranker_has_the_languages_of_its_model(settings, entry, languages):
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": entry}}
    assert reranker_languages("default") == languages


def test_a_reranker_for_english_is_not_made_for_german(settings):
    settings.INFERENCE = {**settings.INFERENCE, "reranker": {"default": {"BACKEND": ONNX}}}
    assert is_made_for(reranker_languages("default"), "en")
    assert not is_made_for(reranker_languages("default"), "de")
    assert is_made_for(reranker_languages("other"), "de")
