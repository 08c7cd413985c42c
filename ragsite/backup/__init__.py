"""Backups: a folder with a dump of the database, the uploaded files, and a manifest to verify a
restore (docs/decisions/0046). Begin with `create_backup` and `restore_backup`.

Dump, counts and hashes come out of one snapshot, then the files. A restore copies files beside the
old ones, compares the database, then swaps.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from psycopg import sql

from common.text import pluralized
from ragsite.backup import database, manifest
from ragsite.backup.database import (
    BackupError,
    Connection,
    Server,
    backup_errors,
    find_program,
    run_program,
)
from ragsite.backup.manifest import FileRecord, Manifest, OnProgress, checked_manifest

__all__ = [
    "BackupError",
    "RestoreResult",
    "Server",
    "backup_errors",
    "checked_manifest",
    "create_backup",
    "restore_backup",
    "unfinished_folder",
]

#: Without owners and privileges: roles are not in a dump, and `migrate` grants anew.
#: Shards are made ready anew after a restore (`manage.py shards prepare`).
_DUMP = (
    *("--format=custom", "--no-owner", "--no-privileges", "--no-comments"),
    *("--no-publications", "--no-subscriptions"),
)
_UNFINISHED = ".unfinished"


def create_backup(
    *, path: Path, server: Server, media_root: Path | None, secret_key: str | None, say: OnProgress
) -> Manifest:
    """Back up `server` and all files below `media_root` into the new folder `path`; without the
    latter no files, for a shard.

    The site may run meanwhile. `secret_key` is included where it is given. Raises BackupError, and
    then leaves nothing behind.
    """
    if media_root and path.resolve().is_relative_to(media_root.resolve()):
        raise BackupError(f"{path} lies in {media_root}, which is backed up. Name another folder.")
    with backup_errors(path), unfinished_folder(path) as folder:
        fields, named_files = _dump(server, folder, say)
        dump = manifest.file_record(folder / manifest.DUMP, name=manifest.DUMP)
        kept: tuple[FileRecord, ...] = ()
        gone: set[str] = set()
        links: tuple[str, ...] = ()
        if media_root is None:
            named_files = frozenset()
        else:
            kept, gone, links = _copy_media(media_root, folder / manifest.FILES, say)
        if secret_key is not None:
            manifest.write_file(folder / manifest.SECRET_KEY, secret_key.encode())
        noted = Manifest(
            version=manifest.product_version(),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            **fields,
            settings=manifest.recorded_settings(),
            dump=dump,
            files=kept,
            secret_key=None
            if secret_key is None
            else manifest.file_record(folder / manifest.SECRET_KEY, name=manifest.SECRET_KEY),
            lost=tuple(sorted(gone | named_files.difference(file.path for file in kept))),
            links=links,
        )
        noted.write(folder)
    return noted


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """A private temporary folder that is renamed to `path` once it is complete and on disk."""
    folder = path.with_name(f"{path.name}{_UNFINISHED}")
    if os.path.lexists(path):
        raise BackupError(f"{path} is there already. Name a new folder; nothing is overwritten.")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise BackupError(
            f"{folder} is there: another backup is being written, or one was cut off. Remove it if"
            " none is."
        ) from error
    try:
        yield folder
        manifest.sync_folders(folder)
        folder.rename(path)
        manifest.sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _dump(server: Server, folder: Path, say: OnProgress) -> tuple[dict[str, Any], frozenset[str]]:
    """Write the dump; returns fields of the manifest as of the same snapshot, and the stored files
    that rows refer to.
    """
    with server.connect() as connection:
        version = connection.info.server_version
        program, program_version = find_program("pg_dump", major=version // 10000)
        say(f"database {server.name} with pg_dump {program_version}")
        with _reading(connection):
            ((snapshot,),) = connection.execute("SELECT pg_export_snapshot()").fetchall()
            target = folder / manifest.DUMP
            words = [*_DUMP, f"--snapshot={snapshot}", f"--file={target}"]
            with run_program(program, words, server):
                tables = database.read_tables(connection)
                migrations: list[tuple[Any, ...]] = []
                if "django_migrations" in tables:
                    applied = "SELECT app, name FROM django_migrations ORDER BY app, name"
                    migrations = connection.execute(applied).fetchall()
                extensions = connection.execute(
                    "SELECT extname, extversion FROM pg_extension ORDER BY 1"
                )
                fields = {
                    "postgresql": f"{version // 10000}.{version % 10000}",
                    "tables": tables,
                    "extensions": dict(extensions.fetchall()),
                    "migrations": tuple((app, name) for app, name in migrations),
                }
                named_files = frozenset(_named_files(connection))
        rows = sum(table.rows for table in tables.values())
        say(f"{pluralized(rows, 'row')} of {pluralized(len(tables), 'table')}")
        with target.open("rb") as file:
            os.fsync(file.fileno())
        return fields, named_files


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """One snapshot of the database for all reads. Raises BackupError."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise BackupError(
            f"The database cannot be read whole: {said}. Back up as the owner of its tables."
        ) from error
    finally:
        connection.close()


def _named_files(connection: Connection) -> Iterator[str]:
    for table, column in manifest.file_columns():
        found = connection.execute(
            "SELECT FROM information_schema.columns WHERE table_schema = 'public'"
            " AND table_name = %s AND column_name = %s",
            [table, column],
        )
        if found.rowcount:  # else the tables are of an earlier version
            statement = sql.SQL("SELECT {} FROM {} WHERE {} <> ''").format(
                sql.Identifier(column), sql.Identifier(table), sql.Identifier(column)
            )
            yield from (name for (name,) in connection.execute(statement))


def _copy_media(
    media_root: Path, target: Path, say: OnProgress
) -> tuple[tuple[FileRecord, ...], set[str], tuple[str, ...]]:
    """The copied files, those that were deleted meanwhile, and paths that are no regular files.

    After the dump: a file added in between is one too many, and none is missing.
    """
    target.mkdir(mode=0o700)
    kept, gone, links = [], set(), []
    for path, is_plain in manifest.files_below(media_root):
        if not is_plain:
            links.append(path)
            continue
        try:
            kept.append(manifest.copy_file(media_root / path, target / path, path=path))
        except FileNotFoundError:
            gone.add(path)
    say(
        f"{pluralized(len(kept), 'file')},"
        f" {pluralized(sum(record.size for record in kept), 'byte')}"
    )
    return tuple(kept), gone, tuple(links)


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
    media_root: Path | None,
    replace: bool,
    say: OnProgress,
) -> RestoreResult:
    """Restore the checked backup in `folder` into `server` and `media_root`, if it has files. The
    tables are then those of the version that made it: migrate afterwards.

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
        with ExitStack() as stack:
            if media_root is not None:
                stack.enter_context(database.backup_errors(media_root))
                check_media_root(media_root, replace=replace)
                source = folder / manifest.FILES
                stack.enter_context(place_files(source, noted.files, media_root))
            with database.tables_set_aside(connection):
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
