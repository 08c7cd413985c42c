"""Model folders: what is read from them and what is refused."""

import json
from pathlib import Path

import pytest

from inference.interfaces import BackendUnavailable
from inference.local.model_folder import Prompts, locate_model, read_model_folder

MODEL = {"hidden_size": 32, "max_position_embeddings": 512, "pad_token_id": 1}


def module(kind, path=""):
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


def folder(at: Path, **files):
    """Writes `files`, JSON by dotted-out name, over a folder that is whole."""
    whole = {
        "config": MODEL,
        "modules": [module("Transformer"), module("Pooling", "1_Pooling"), module("Normalize")],
        "1_Pooling/config": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    }
    for name, content in {**whole, **files}.items():
        path = at / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        if content is not None:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
    return at


def test_the_bundled_folder_is_read():
    path, name = locate_model(None)
    model = read_model_folder(path)
    assert name == "all-MiniLM-L6-v2"
    assert (model.hidden_size, model.max_length, model.pooling) == (384, 256, "mean")
    assert (model.prompts, model.lowercase, model.pad_id) == (Prompts(), False, 0)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_lasttoken": True}, "lasttoken"),
        ({"pooling_mode": "lasttoken", "embedding_dimension": 32}, "lasttoken"),
        ({"pooling_mode": ["cls"]}, "cls"),
    ],
)
def test_pooling_is_read_in_its_old_and_new_spelling(tmp_path, config, pooling):
    assert read_model_folder(folder(tmp_path, **{"1_Pooling/config": config})).pooling == pooling


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({"sentence_bert_config": {"max_seq_length": 128}}, 128),
        ({"sentence_bert_config": {"max_seq_length": None}}, 512),
        ({"tokenizer_config": {"model_max_length": 300}}, 300),
        ({"tokenizer_config": {"model_max_length": 1e30}}, 512),
        ({}, 512),
    ],
)
def test_the_window_is_the_folders_own_within_the_models_positions(tmp_path, files, length):
    assert read_model_folder(folder(tmp_path, **files)).max_length == length


def test_options_override_the_folder(tmp_path):
    model = read_model_folder(folder(tmp_path), pooling="cls", max_length=64)
    assert (model.pooling, model.max_length) == ("cls", 64)


def test_a_plain_checkpoint_works_once_its_pooling_is_named(tmp_path):
    plain = folder(tmp_path, modules=None, **{"1_Pooling/config": None})
    with pytest.raises(BackendUnavailable, match=r"does not say how.*OPTIONS\['pooling'\]"):
        read_model_folder(plain)
    assert read_model_folder(plain, pooling="lasttoken").pooling == "lasttoken"


@pytest.mark.parametrize(
    ("files", "options", "fault"),
    [
        ({"config": None}, {}, r"config\.json cannot be read"),
        ({"config": "{ broken"}, {}, r"config\.json cannot be read"),
        ({"config": {}}, {}, "how long its vectors are"),
        ({"modules": [module("Transformer"), module("Dense", "2_Dense")]}, {}, "needs Dense"),
        ({"1_Pooling/config": None}, {}, r"1_Pooling/config\.json cannot be read"),
        ({"1_Pooling/config": {"pooling_mode": "max"}}, {}, "pools by max"),
        ({"1_Pooling/config": {"pooling_mode": ["cls", "mean"]}}, {}, "pools by cls and mean"),
        ({}, {"pooling": "max"}, "pools by max"),
        ({}, {"max_length": 513}, "reads 512 tokens at most, not 513"),
        (
            {
                "1_Pooling/config": {"pooling_mode": "mean", "include_prompt": False},
                "config_sentence_transformers": {"prompts": {"query": "q"}},
            },
            {},
            "leaves its prompt out of pooling",
        ),
    ],
)
def test_what_cannot_be_run_rightly_is_refused(tmp_path, files, options, fault):
    with pytest.raises(BackendUnavailable, match=fault):
        read_model_folder(folder(tmp_path, **files), **options)


def test_a_folder_is_called_by_its_name(tmp_path):
    assert locate_model(str(tmp_path)) == (tmp_path, tmp_path.name)


@pytest.mark.parametrize("name", ["nobody/has-this-model", "/no/such/folder"])
@pytest.mark.usefixtures("socket_disabled")
def test_a_model_that_is_not_here_is_refused_without_the_network(name):
    with pytest.raises(BackendUnavailable, match="neither a folder here nor in the Hugging Face"):
        locate_model(name)
