"""Where the processes of one web server keep their counts, so that each can tell those of all.

A directory for each server, below RAGSITE_VAR_DIR: it goes with the server, and the next one
removes what a killed one left. A worker that dies leaves its counts, which go on being added.
"""

import os
import shutil
from pathlib import Path

import psutil  # type: ignore[import-untyped]

#: prometheus_client reads it when it is first imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def begin(var_dir: Path) -> Path:
    """An empty directory for the server that this process is, named to those it starts."""
    own = _top(var_dir) / str(os.getpid())
    for left in _top(var_dir).glob("[0-9]*"):
        if left == own or not psutil.pid_exists(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    own.mkdir(parents=True)
    os.environ[VARIABLE] = str(own)
    return own


def end(var_dir: Path) -> None:
    """Remove it."""
    shutil.rmtree(_top(var_dir) / str(os.getpid()), ignore_errors=True)


def _top(var_dir: Path) -> Path:
    return var_dir / "metrics"
