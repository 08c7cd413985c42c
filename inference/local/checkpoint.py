"""What the JSON files of any checkpoint say about the text it reads. No torch, no network."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.base import BackendUnavailable

# Models claim windows of 32,768 and 131,072 tokens. Qwen3's cards read 8,192, and beyond that one
# text fills the memory of most machines: whoever wants more says so.
LONGEST_UNASKED = 8192
UNLIMITED = 10**30  # what tokenizers that know no limit write
# These count positions from the padding token's number on, so that many rows are never used.
OFFSET_POSITIONS = {"camembert", "mpnet", "roberta", "xlm-roberta", "xlm-roberta-xl"}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder with a model in it, as far as it can be known without loading it."""

    path: Path
    config: Mapping[str, Any]
    max_length: int  # tokens of one forward pass, special ones included
    lowercase: bool
    pad_id: int


def read_checkpoint(path: Path, *, max_length: int | None = None) -> Checkpoint:
    """`max_length` overrides the folder's own. Raises BackendUnavailable."""
    config = read_json(path / "config.json", required=True)
    transformer = read_json(path / "sentence_bert_config.json")
    positions = _positions(config)
    if max_length and max_length > positions:
        raise BackendUnavailable(
            f"{path} reads {positions} tokens at most, not {max_length}: lower"
            " OPTIONS['max_length']."
        )
    tokenizer = read_json(path / "tokenizer_config.json")
    own = transformer.get("max_seq_length") or tokenizer.get("model_max_length") or UNLIMITED
    return Checkpoint(
        path=path,
        config=config,
        max_length=max_length or int(min(own, positions, LONGEST_UNASKED)),
        lowercase=bool(transformer.get("do_lower_case")),
        pad_id=config.get("pad_token_id") or 0,
    )


def read_json(path: Path, *, required: bool = False, default: Any = None) -> Any:
    """The content of `path`; `default`, or {}, where it may be absent and is."""
    if not path.is_file() and not required:
        return {} if default is None else default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackendUnavailable(
            f"{path} cannot be read ({error}): is the model folder whole?"
        ) from error


def _positions(config: Mapping[str, Any]) -> int:
    positions: int = config.get("max_position_embeddings") or UNLIMITED
    if positions < 0:  # XLNet's way of saying that it has none
        return UNLIMITED
    if config.get("model_type") in OFFSET_POSITIONS:
        return positions - (config.get("pad_token_id") or 0) - 1
    return positions
