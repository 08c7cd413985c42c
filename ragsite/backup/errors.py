"""What the package raises, and words for a disk that is full."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import RagsiteError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class BackupError(RagsiteError):
    """A backup cannot be made or restored; nothing was changed, and the message names the cure."""

    code = "backup_failed"


@contextmanager
def told_in_words(where: Path) -> Iterator[None]:
    """Raise BackupError for an OSError of the work on `where`."""
    try:
        yield
    except OSError as error:
        path = error.filename or where
        if error.errno in _FULL:
            raise BackupError(
                f"No room for {path}: {error.strerror}. Free some, or name a folder on another"
                " disk; nothing half-written was left."
            ) from error
        raise BackupError(f"{path}: {error.strerror or error}.") from error
