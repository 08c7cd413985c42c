"""What the services share when they start: waiting, logs, and errors with a cure."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from ragsite.embedded.errors import ServiceError

START_SECONDS = 60.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LOG_LINES = 15
_LOG_BYTES = 10 * 1024 * 1024
_DISK_BYTES = 100 * 1024 * 1024


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` came true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def rotate_log(log: Path) -> None:
    """Keep the last log beside a new one, once it has grown large."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))


def failure(what: str, *, home: Path, log: Path | None = None, output: str = "") -> ServiceError:
    """The error for `what`, with the last lines that the program printed or logged and a cure."""
    if log is not None and log.exists():
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            output += file.read().decode(errors="replace")
    lines = [line for line in output.splitlines() if line.strip()][-_LOG_LINES:]
    message = "\n  ".join([f"{what}.", *lines])
    full = "No space left on device" in message or shutil.disk_usage(home).free < _DISK_BYTES
    if full:
        message += (
            f"\nThe disk that holds {home} is full: free at least 500 MB there, or set "
            "RAGSITE_VAR_DIR to a directory on another disk, and start again."
        )
    elif log is not None:
        message += f"\nThe whole log is {log}."
    return ServiceError(message)
