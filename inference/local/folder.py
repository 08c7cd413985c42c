"""Reads a model folder in the sentence-transformers layout: JSON only, no torch, no network."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from inference.base import BackendUnavailable
from inference.local.checkpoint import read_checkpoint, read_json
from inference.local.prompts import Prompts, read_prompts

Pooling = Literal["mean", "cls", "lasttoken"]
POOLINGS: tuple[str, ...] = get_args(Pooling)
MODULES = {"Transformer", "Pooling", "Normalize"}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What a folder says about how its model is to be run."""

    path: Path
    hidden_size: int
    max_length: int  # tokens of one forward pass, special ones included
    pooling: Pooling
    prompts: Prompts
    lowercase: bool
    pad_id: int


def read_model_folder(
    path: Path, *, pooling: Pooling | None = None, max_length: int | None = None
) -> ModelFolder:
    """`pooling` and `max_length` override the folder's own.

    Raises BackendUnavailable for a folder that is not whole or that this package cannot run.
    """
    checkpoint = read_checkpoint(path, max_length=max_length)
    prompts = read_prompts(read_json(path / "config_sentence_transformers.json"))
    pooling_config = _pooling_config(path)
    if pooling_config.get("include_prompt", True) is False and prompts != Prompts():
        raise BackendUnavailable(
            f"{path} leaves its prompt out of pooling, which is not supported: serve the model over"
            " HTTP or choose another."
        )
    return ModelFolder(
        path=path,
        hidden_size=_hidden_size(path, pooling_config, checkpoint.config),
        max_length=checkpoint.max_length,
        pooling=_pooling(path, [pooling] if pooling else _pooling_modes(pooling_config)),
        prompts=prompts,
        lowercase=checkpoint.lowercase,
        pad_id=checkpoint.pad_id,
    )


def _pooling_config(path: Path) -> dict[str, Any]:
    """The Pooling module's configuration, {} where there is none."""
    modules = read_json(path / "modules.json", default=[])
    places = {module["type"].rpartition(".")[2]: path / module["path"] for module in modules}
    if unknown := sorted(places.keys() - MODULES):
        raise BackendUnavailable(
            f"{path} needs {', '.join(unknown)}, which this backend does not run: serve the model"
            " over HTTP or choose another."
        )
    if "Pooling" not in places:
        return {}
    config: dict[str, Any] = read_json(places["Pooling"] / "config.json", required=True)
    return config


def _pooling(path: Path, modes: list[str]) -> Pooling:
    match modes:
        case ["mean" | "cls" | "lasttoken" as mode]:
            known: Pooling = mode
            return known
        case []:
            fault = "does not say how its tokens are pooled"
        case _:
            fault = f"pools by {' and '.join(modes)}, which is not supported"
    # Guessing the mean would give a last-token model plausible, wrong vectors.
    raise BackendUnavailable(
        f"{path} {fault}: put what its card says into OPTIONS['pooling'], one of"
        f" {', '.join(POOLINGS)}."
    )


def _pooling_modes(config: Mapping[str, Any]) -> list[str]:
    if "pooling_mode" in config:  # sentence-transformers 6; before it one flag for each mode
        mode = config["pooling_mode"]
        return [mode] if isinstance(mode, str) else list(mode)
    prefix = "pooling_mode_"
    flags = [
        key.removeprefix(prefix) for key, on in config.items() if key.startswith(prefix) and on
    ]
    return [flag.removesuffix("_tokens").removesuffix("_token") for flag in flags]


def _hidden_size(path: Path, pooling: dict[str, Any], config: Mapping[str, Any]) -> int:
    # sentence-transformers 6 named it anew; a plain checkpoint says it in its own configuration.
    for source, key in (
        (pooling, "embedding_dimension"),
        (pooling, "word_embedding_dimension"),
        (config, "hidden_size"),
    ):
        if key in source:
            return int(source[key])
    raise BackendUnavailable(f"{path} does not say how long its vectors are: is it whole?")
