"""EMBEDDER_…, EMBEDDERS and their like become INFERENCE, or an error that tells the cure."""

import json
import runpy
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import override_settings

from inference.checks import check_inference
from ragsite import settings

HASHING = "inference.backends.hashing.HashingEmbedder"
OPENAI_CHAT = "inference.backends.chat_openai.OpenAIChat"
WORKER_EMBEDDER = "inference.backends.worker.WorkerEmbedder"
WORKER_RERANKER = "inference.backends.worker.WorkerReranker"
WORKER_TOKEN_ENCODER = "inference.backends.worker.WorkerTokenEncoder"


@pytest.fixture
def inference(monkeypatch: pytest.MonkeyPatch) -> Any:
    """INFERENCE as the settings make it of these variables."""

    def read(**variables: str) -> Any:
        for name, value in {"REDIS_URL": "redis://cache.example.org/3", **variables}.items():
            monkeypatch.setenv(name, value)
        return runpy.run_path(settings.__file__)["INFERENCE"]

    return read


def test_further_models_stand_beside_the_default(inference: Any) -> None:
    small = {"BACKEND": HASHING, "OPTIONS": {"dimensions": 8}, "LANGUAGES": ["*"]}
    models = inference(
        EMBEDDER_BACKEND=HASHING,
        EMBEDDER_LANGUAGES="en,de",
        EMBEDDERS=json.dumps({"small": small}),
        RERANKERS='{"score": {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}}',
        CHAT_BACKEND=OPENAI_CHAT,
        CHAT_OPTIONS='{"model": "big", "api_key": ""}',
        CHATS=json.dumps({"small": {"BACKEND": OPENAI_CHAT, "OPTIONS": {"model": "small"}}}),
    )
    assert models["embedder"] == {
        "default": {"BACKEND": HASHING, "OPTIONS": {}, "LANGUAGES": ["en", "de"]},
        "small": small,
    }
    assert sorted(models["reranker"]) == ["default", "none", "score"]
    assert models["chat"] == {
        "default": {"BACKEND": OPENAI_CHAT, "OPTIONS": {"model": "big", "api_key": ""}},
        "small": {"BACKEND": OPENAI_CHAT, "OPTIONS": {"model": "small"}},
    }
    with override_settings(INFERENCE=models):
        assert check_inference() == []


@pytest.mark.parametrize("nothing", ["", "{}"])
def test_without_further_models_there_is_the_default_or_none(inference: Any, nothing: str) -> None:
    models = inference(EMBEDDERS=nothing, RERANKERS=nothing, CHATS=nothing)
    assert {kind: list(aliases) for kind, aliases in models.items()} == {
        "embedder": ["default"],
        "reranker": ["default", "none"],
        "chat": ["default"],
        "token_encoder": [],
    }


def test_the_bundled_models_are_the_default_and_options_alone_are_those_of_a_model_folder(
    inference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EMBEDDER_BACKEND", "RERANKER_BACKEND", "TOKEN_ENCODER_BACKEND"):
        monkeypatch.delenv(name)
    models = inference()
    onnx = "inference.backends.onnx_local."
    assert models["embedder"]["default"] == {"BACKEND": f"{onnx}OnnxEmbedder", "OPTIONS": {}}
    assert {"multilingual", "minilm"} <= models["embedder"].keys()
    assert models["reranker"]["default"] == {"BACKEND": f"{onnx}OnnxReranker", "OPTIONS": {}}
    encoder = {"BACKEND": f"{onnx}OnnxTokenEncoder", "OPTIONS": {}}
    assert models["token_encoder"] == {"default": encoder}
    folder = inference(EMBEDDER_OPTIONS='{"model": "Qwen/Qwen3-Embedding-0.6B"}')["embedder"]
    assert folder["default"]["BACKEND"].endswith(".TransformersEmbedder")
    assert list(folder) == ["default"]


def test_those_that_ask_a_worker_are_told_where_and_for_what(inference: Any) -> None:
    models = inference(
        EMBEDDER_BACKEND=WORKER_EMBEDDER,
        EMBEDDER_OPTIONS='{"timeout": 2}',
        EMBEDDERS=json.dumps(
            {
                "qwen3": {"BACKEND": WORKER_EMBEDDER},
                "far": {"BACKEND": WORKER_EMBEDDER, "OPTIONS": {"url": "redis://far/0"}},
            }
        ),
        RERANKER_BACKEND=WORKER_RERANKER,
        TOKEN_ENCODER_BACKEND=WORKER_TOKEN_ENCODER,
    )
    here = "redis://cache.example.org/3"
    options = {alias: entry["OPTIONS"] for alias, entry in models["embedder"].items()}
    assert options == {
        "default": {"url": here, "alias": "default", "timeout": 2},
        "qwen3": {"url": here, "alias": "qwen3"},
        "far": {"url": "redis://far/0", "alias": "far"},
    }
    for kind in ("reranker", "token_encoder"):
        assert models[kind]["default"]["OPTIONS"] == {"url": here, "alias": "default"}
    with override_settings(INFERENCE=models):
        assert check_inference() == []


@pytest.mark.parametrize(
    ("variable", "value", "cure"),
    [
        ("EMBEDDERS", '{"default": {}}', "set EMBEDDER_BACKEND and EMBEDDER_OPTIONS"),
        ("RERANKERS", '{"default": {}}', "set RERANKER_BACKEND and RERANKER_OPTIONS"),
        ("CHATS", '{"default": {}}', "set CHAT_BACKEND and CHAT_OPTIONS"),
        ("EMBEDDERS", "qwen3", "EMBEDDERS is no JSON"),
        ("EMBEDDERS", "[]", "EMBEDDERS must be a JSON object"),
        ("EMBEDDER_OPTIONS", "7", "EMBEDDER_OPTIONS must be a JSON object"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_cure(
    inference: Any, variable: str, value: str, cure: str
) -> None:
    with pytest.raises(ImproperlyConfigured, match=cure):
        inference(**{variable: value})


@pytest.mark.parametrize(
    "entry",
    [
        "text",
        {"BACKEND": WORKER_EMBEDDER, "OPTIONS": []},
        {"BACKEND": HASHING, "LANGUAGES": "en"},
        {"BACKEND": HASHING, "LANGUAGES": ["English"]},
        {},
    ],
)
def test_an_entry_of_another_shape_is_left_to_the_checks(inference: Any, entry: Any) -> None:
    models = inference(EMBEDDERS=json.dumps({"odd": entry}))
    with override_settings(INFERENCE=models):
        assert [error.id for error in check_inference()] == ["inference.E001"]
