"""Options of the chunkers. Loaded when they are needed, because of pydantic."""

from typing import Any

from pydantic import Field

from common.options import Options
from reading.chunkers import CHUNKERS


def _number(name: str, least: int, most: int, description: str) -> Any:
    by_default: dict[int, list[str]] = {}
    for chunker, kind in CHUNKERS.items():
        if name in kind.defaults:
            by_default.setdefault(kind.defaults[name], []).append(chunker)
    defaults = "; ".join(f"{value} for {', '.join(of)}" for value, of in by_default.items())
    told = f"{description} Default: {defaults}."
    return Field(default=None, ge=least, le=most, description=told)


class ChunkerOptions(Options):
    """Those of all chunkers. `check_options` refuses those that a chunker does not have."""

    max_tokens: int | None = _number("max_tokens", 8, 8192, "Tokens of a chunk, at most.")
    overlap: int | None = _number(
        "overlap", 0, 4096, "Tokens that a chunk repeats of the one before it."
    )
    size: int | None = _number("size", 1, 100, "Sentences of a window, if they fit.")
    step: int | None = _number("step", 1, 100, "Sentences by which the window moves.")
    min_tokens: int | None = _number("min_tokens", 1, 4096, "Tokens that a piece has at least.")
    group: int | None = _number(
        "group", 1, 10, "Sentences that are compared with as many behind them."
    )
    percentile: int | None = _number(
        "percentile", 1, 99, "Distances above this share of all are cuts."
    )
    parent_tokens: int | None = _number("parent_tokens", 8, 32_768, "Tokens of a parent, at most.")
