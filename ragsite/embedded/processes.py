"""Which processes are really ours: a server is known by its working directory, never by its pid.

Pids are reused after a crash or a reboot, so a pid file proves nothing.
"""

import contextlib
import os
import signal
from pathlib import Path

from ragsite.embedded.support import wait_until

_ORPHAN_SECONDS = 10.0


def running_in(directory: Path, name: str) -> list[int]:
    """Pids of the live processes called `name` that work in `directory`."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - not on the fast path

    try:
        wanted = directory.stat()
    except OSError:
        return []
    found = []
    for process in psutil.process_iter(["name"]):
        if process.info["name"] != name:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            # Zombies and other people's processes have no directory that we can read.
            if os.path.samestat(Path(process.cwd()).stat(), wanted):
                found.append(process.pid)
    return found


def exists(pid: int) -> bool:
    """Whether the system knows this pid, be it ours, another's or a zombie."""
    import psutil  # noqa: PLC0415

    return bool(psutil.pid_exists(pid))


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie, which a container's init may never bury."""
    import psutil  # noqa: PLC0415

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def terminate(pid: int, how: signal.Signals) -> None:
    """Send the signal; a process that is gone already is fine."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)


def clear_orphans(directory: Path, name: str) -> None:
    """Wait for processes whose parent server was killed, then end those that linger.

    A new server beside a lingering backend of the old one would corrupt the data.
    """
    if wait_until(lambda: not running_in(directory, name), _ORPHAN_SECONDS):
        return
    for pid in running_in(directory, name):
        terminate(pid, signal.SIGKILL)
    wait_until(lambda: not running_in(directory, name), _ORPHAN_SECONDS)
