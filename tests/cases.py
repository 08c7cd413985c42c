"""Cases that are nothing but text: `cases/NAME.toml` beside the tests that read them."""

import tomllib
from pathlib import Path
from typing import Any


def read_cases(test_file: str, name: str) -> dict[str, Any]:
    """The tables of `cases/NAME.toml` in the folder of `test_file`, by their names."""
    return tomllib.loads(Path(test_file).with_name("cases").joinpath(f"{name}.toml").read_text())
