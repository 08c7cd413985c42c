"""Creation of a backup: dump, counts and hashes out of one snapshot, then the files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
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
from ragsite.backup.manifest import FileRecord, Manifest, OnProgress

#: Without owners and privileges: roles are not in a dump, and `migrate` grants anew.
_DUMP = ("--format=custom", "--no-owner", "--no-privileges", "--no-comments")
_UNFINISHED = ".unfinished"


def create_backup(
    *, path: Path, server: Server, media_root: Path, secret_key: str | None, say: OnProgress
) -> Manifest:
    """Back up `server` and all files below `media_root` into the new folder `path`.

    The site may run meanwhile. `secret_key` is included where it is given. Raises BackupError, and
    then leaves nothing behind.
    """
    if path.resolve().is_relative_to(media_root.resolve()):
        raise BackupError(f"{path} lies in {media_root}, which is backed up. Name another folder.")
    with backup_errors(path), _unfinished_folder(path) as folder:
        fields, named_files = _dump(server, folder, say)
        dump = manifest.file_record(folder / manifest.DUMP, name=manifest.DUMP)
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
def _unfinished_folder(path: Path) -> Iterator[Path]:
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
