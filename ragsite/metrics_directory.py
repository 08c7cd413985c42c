"""The directory in which the processes of one web server share their counts. Without
prometheus_client, which reads the variable when it is first imported.

One directory for each server, below RAGSITE_VAR_DIR: it is removed with the server, and the next
one removes what a killed one left. Counts of a worker that died are still added.
"""

import os
import shutil
from pathlib import Path

import psutil  # type: ignore[import-untyped]

#: prometheus_client reads it when it is first imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def create_directory(var_dir: Path) -> Path:
    """Create an empty directory for this server and set the variable for its processes."""
    own = _parent_directory(var_dir) / str(os.getpid())
    for left in _parent_directory(var_dir).glob("[0-9]*"):
        if left == own or not psutil.pid_exists(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    own.mkdir(parents=True)
    os.environ[VARIABLE] = str(own)
    return own


def remove_gauges(pid: int) -> None:
    """Remove the gauges of a process that died; its counters stay."""
    if VARIABLE in os.environ:
        from prometheus_client import multiprocess  # noqa: PLC0415 (reads the variable)

        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]


def remove_directory(var_dir: Path) -> None:
    shutil.rmtree(_parent_directory(var_dir) / str(os.getpid()), ignore_errors=True)


def _parent_directory(var_dir: Path) -> Path:
    return var_dir / "metrics"
