"""Weights from a folder into memory: all of them, or none."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers.utils import logging as transformers_logging

from inference.base import BackendUnavailable

UNREADABLE = (OSError, ValueError, RuntimeError, SafetensorError)

_progress_bar = threading.Lock()  # transformers has one switch for the whole process


def load_model(
    auto_class: Any, path: Path, *, device: str, dtype: torch.dtype, unread: str = r"(?!)"
) -> Any:
    """`auto_class` of transformers with the weights in `path`, ready to run on `device`.

    `unread`: a pattern for parameters that may be absent because nothing reads what they make.
    Raises BackendUnavailable.
    """
    try:
        with _without_progress_bar():
            model, report = auto_class.from_pretrained(
                path, dtype=dtype, local_files_only=True, output_loading_info=True
            )
        _refuse_missing(path, [key for key in report["missing_keys"] if not re.match(unread, key)])
        model = model.to(device)
    except UNREADABLE as error:
        raise BackendUnavailable(
            f"the model in {path} cannot be loaded: {error}. Is the folder whole?"
        ) from error
    model.config.use_cache = False  # keys and values are for generating; here they only fill memory
    return model.eval()


def _refuse_missing(path: Path, missing: list[str]) -> None:
    """transformers fills what a checkpoint lacks with random numbers, and only warns."""
    if missing:
        raise BackendUnavailable(
            f"{path} lacks {len(missing)} of the weights this backend needs"
            f" ({', '.join(sorted(missing)[:3])}): it was made for another task, or the folder is"
            " not whole."
        )


@contextmanager
def _without_progress_bar() -> Iterator[None]:
    with _progress_bar:
        shown = transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            if shown:
                transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
