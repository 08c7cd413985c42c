"""Files of a backup to where the site keeps its own: beside them first, then in their place."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from ragsite.backup import files
from ragsite.backup.errors import BackupError
from ragsite.backup.files import Record

# Below the folder itself, which may be a volume of its own: nothing can be renamed into those.
_COMING = ".restoring"
_LEAVING = ".before-restore"
_MODE = 0o644


def check(media_root: Path, *, replace: bool) -> None:
    """Raise BackupError where files are there already. Raises OSError."""
    held = _held(media_root)
    if held and not replace:
        raise BackupError(
            f"{media_root} is not empty: {held[0]} is there. Name an empty folder by MEDIA_ROOT, or"
            " put the backup's files in their place with --replace."
        )


@contextmanager
def placed(source: Path, records: tuple[Record, ...], media_root: Path) -> Iterator[None]:
    """Copy the files beside those that are there; at the end they take their place. Where the work
    within fails nothing has changed. Raises OSError, and BackupError for a file that changed."""
    coming, leaving = media_root / _COMING, media_root / _LEAVING
    shutil.rmtree(coming, ignore_errors=True)  # of one that was cut off
    try:
        coming.mkdir(parents=True)
        for record in records:
            copied = files.copy(
                source / record.path,
                coming / record.path,
                path=record.path,
                mode=settings.FILE_UPLOAD_PERMISSIONS or _MODE,
            )
            if copied != record:
                raise BackupError(f"{source / record.path} changed while it was restored.")
        _give(coming, media_root)
        files.sync_folders(coming)
        yield
        leaving.mkdir(exist_ok=True)
        for name in _held(media_root):
            (media_root / name).rename(leaving / name)
        for entry in coming.iterdir():
            entry.rename(media_root / entry.name)
        files.sync_folder(media_root)
        shutil.rmtree(leaving)
    finally:
        shutil.rmtree(coming, ignore_errors=True)


def _held(media_root: Path) -> list[str]:
    try:
        return sorted(set(os.listdir(media_root)) - {_COMING, _LEAVING})  # noqa: PTH208
    except FileNotFoundError:
        return []


def _give(folder: Path, media_root: Path) -> None:
    """To whom MEDIA_ROOT belongs, where root restores for the site's own account."""
    owner = media_root.stat()
    if os.geteuid() or not owner.st_uid:
        return
    for path, _, names in os.walk(folder):
        for name in (path, *(os.path.join(path, name) for name in names)):  # noqa: PTH118
            os.chown(name, owner.st_uid, owner.st_gid)
