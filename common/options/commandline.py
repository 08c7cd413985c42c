"""Options as arguments of a command."""

from argparse import BooleanOptionalAction
from collections.abc import Collection
from typing import Any

from common.options import Options, flat_options


def add_options(
    parser: Any, model: type[Options], *, skip: Collection[str] = (), only: Collection[str] = ()
) -> None:
    """Add an argument `--rrf-k` for each option of the model, or `only` for some. They are read
    by `model.pick(options)`, which checks bounds.

    `parser` is a parser or a group of one. A name of one letter gets one dash. An
    option that may be left open and is a switch gets `--rerank` and `--no-rerank`.
    """
    for name, option in flat_options(model, skip=skip).items():
        if only and name not in only:
            continue
        told = option.plain_description.replace("%", "%%")
        given: dict[str, Any] = {"help": told, "default": option.default}
        if option.default not in (None, False, "", ()) and "default" not in told.lower():
            given["help"] = f"{told} Default: {option.default}.".strip()
        if option.kind is bool:
            is_switch = option.default is False
            given["action"] = "store_true" if is_switch else BooleanOptionalAction
        elif option.choices:
            given["choices"] = option.choices
        elif option.kind is list:
            given |= {"action": "append", "default": []}
        else:
            given["type"] = option.kind
        parser.add_argument(f"{'--'[: len(name)]}{name.replace('_', '-')}", **given)
