"""Directories for embedded servers of a test's own."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragsite import embedded


@contextmanager
def instance_dir(name: str = "var") -> Iterator[Path]:
    """A var directory that does not exist yet; at the end whatever runs in it is stopped.

    Not pytest's tmp_path, whose depth leaves no room for a socket and which lets nobody else in.
    """
    top = Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    top.chmod(0o755)
    try:
        yield top / name
    finally:
        with suppress(embedded.ServiceError):
            embedded.stop(top / name)
        shutil.rmtree(embedded.socket_dir(top / name), ignore_errors=True)
        shutil.rmtree(top)
