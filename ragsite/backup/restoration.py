"""Restoration of a checked backup: files copied beside the old ones, database compared, then
swapped.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from common.text import pluralized
from ragsite.backup import database, manifest
from ragsite.backup.database import BackupError
from ragsite.backup.manifest import FileRecord, Manifest, OnProgress

# Below the folder itself, which may be a volume: renaming works only within it.
_INCOMING_FOLDER = ".restoring"
_OUTGOING_FOLDER = ".before-restore"
_MODE = 0o644


def check_media_root(media_root: Path, *, replace: bool) -> None:
    """Raise BackupError where files exist already. Raises OSError."""
    held = _existing_files(media_root)
    if held and not replace:
        raise BackupError(
            f"{media_root} is not empty: {held[0]} is there. Name an empty folder by MEDIA_ROOT, or"
            " put the backup's files in their place with --replace."
        )


@contextmanager
def place_files(source: Path, records: tuple[FileRecord, ...], media_root: Path) -> Iterator[None]:
    """Copy the files next to the existing ones and swap them at the end. If the block fails,
    nothing has changed. Raises OSError, and BackupError for a file that changed.
    """
    coming, leaving = media_root / _INCOMING_FOLDER, media_root / _OUTGOING_FOLDER
    shutil.rmtree(coming, ignore_errors=True)  # of one that was cut off
    try:
        coming.mkdir(parents=True)
        for record in records:
            copied = manifest.copy_file(
                source / record.path,
                coming / record.path,
                path=record.path,
                mode=settings.FILE_UPLOAD_PERMISSIONS or _MODE,
            )
            if copied != record:
                raise BackupError(f"{source / record.path} changed while it was restored.")
        owner = media_root.stat()
        if os.geteuid() == 0 and owner.st_uid:
            # Root restores for the site's account.
            for path, _, names in os.walk(coming):
                for name in (path, *(os.path.join(path, name) for name in names)):  # noqa: PTH118
                    os.chown(name, owner.st_uid, owner.st_gid)
        manifest.sync_folders(coming)
        yield
        leaving.mkdir(exist_ok=True)
        for name in _existing_files(media_root):
            (media_root / name).rename(leaving / name)
        for entry in coming.iterdir():
            entry.rename(media_root / entry.name)
        manifest.sync_folder(media_root)
        shutil.rmtree(leaving)
    finally:
        shutil.rmtree(coming, ignore_errors=True)


def _existing_files(media_root: Path) -> list[str]:
    try:
        return sorted(set(os.listdir(media_root)) - {_INCOMING_FOLDER, _OUTGOING_FOLDER})  # noqa: PTH208
    except FileNotFoundError:
        return []


def restore_secret_key(folder: Path, noted: Manifest, *, say: OnProgress) -> bool:
    """Restore the secret key; returns whether it is the site's from the next start on."""
    if noted.secret_key is None:
        return False
    key = (folder / manifest.SECRET_KEY).read_text()
    if os.environ.get("SECRET_KEY"):
        if key != settings.SECRET_KEY:
            say("SECRET_KEY is not the backup's: everybody must log in again")
        return key == settings.SECRET_KEY
    place = settings.VAR_DIR / "secret-key"
    if key == settings.SECRET_KEY:
        return True
    coming = place.with_name(f"{place.name}.new")
    try:
        coming.unlink(missing_ok=True)
        manifest.write_file(coming, key.encode())
        coming.replace(place)
    except OSError as error:
        say(f"{place} cannot be written ({error.strerror}): everybody must log in again")
        return False
    say(f"the backup's secret key is in {place}")
    return True


#: All or nothing. What needs an owner, a grantee or a superuser is left to `migrate`.
_RESTORE = (
    *("--exit-on-error", "--single-transaction"),
    *("--no-owner", "--no-privileges", "--no-comments"),
)


class RestoreMismatch(BackupError):
    """The restored database differs from the backup; `differences` lists the tables."""

    def __init__(self, message: str, differences: list[str]) -> None:
        super().__init__(message)
        self.differences = differences


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """A verified restore. `settings` are those that differ from the backup's, by name: then and
    now.
    """

    manifest: Manifest
    settings: dict[str, tuple[Any, Any]]
    seconds: float


def restore_backup(
    *,
    folder: Path,
    noted: Manifest,
    server: database.Server,
    media_root: Path,
    replace: bool,
    say: OnProgress,
) -> RestoreResult:
    """Restore the checked backup in `folder` into `server` and `media_root`. The tables are then
    those of the version that made it: migrate afterwards.

    Both must be empty unless `replace`; what they held is kept until the backup is in place, and
    put back on failure. Raises BackupError.
    """
    started = time.monotonic()
    with server.connect() as connection, database.migrations_locked(connection):
        # The program that can read the dump and talk to this server. Raises BackupError.
        major = connection.info.server_version // 10000
        if major < noted.postgresql_major:
            raise BackupError(
                f"The backup was made on PostgreSQL {noted.postgresql}, and this server is"
                " PostgreSQL"
                f" {major}: restore into PostgreSQL {noted.postgresql_major} or later."
            )
        program, version = database.find_program("pg_restore", major=major)
        database.check_database(connection, replace=replace)
        with database.backup_errors(media_root):
            check_media_root(media_root, replace=replace)
            source = folder / manifest.FILES
            with (
                place_files(source, noted.files, media_root),
                database.tables_set_aside(connection),
            ):
                say(f"{pluralized(len(noted.files), 'file')} copied")
                dump = folder / manifest.DUMP
                say(f"database {server.name} with pg_restore {version}")
                with database.run_program(program, [*_RESTORE, dump], server):
                    pass
                _compare_tables(connection, noted, say)
                connection.execute("ANALYZE")
    now = json.loads(json.dumps(manifest.recorded_settings()))
    changed_settings = {
        name: (then, now.get(name))
        for name, then in noted.settings.items()
        if then != now.get(name)
    }
    return RestoreResult(noted, changed_settings, round(time.monotonic() - started, 3))


def _compare_tables(connection: database.Connection, noted: Manifest, say: OnProgress) -> None:
    say("comparing with the manifest")
    try:
        here = database.read_tables(connection, excluded_schema=database.ASIDE_SCHEMA)
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise BackupError(f"What was restored cannot be read: {said}.") from error
    if found := database.table_differences(noted.tables, here):
        raise RestoreMismatch(
            f"What was restored is not what was backed up: {len(found)} of {len(noted.tables)}"
            " tables differ. Nothing was changed here.",
            found,
        )
