"""Making a backup: dump, counts and hashes out of one snapshot, then the files."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from common.wording import counted
from ragsite.backup import contents, files, manifest, product
from ragsite.backup.errors import BackupError, told_in_words
from ragsite.backup.files import OnProgress, Record
from ragsite.backup.manifest import Manifest, Migration
from ragsite.backup.programs import program_for, running
from ragsite.backup.server import Connection, Server

#: Not the owner's name, nor who may do what: roles are not in a dump, and `migrate` grants anew.
_DUMP = ("--format=custom", "--no-owner", "--no-privileges", "--no-comments")
_UNFINISHED = ".unfinished"


@dataclass(frozen=True, slots=True)
class Made:
    """A backup that lies in `path`, whole."""

    path: Path
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class _Database:
    """What is noted of the database. `named` are the stored files that its rows name."""

    tables: dict[str, contents.Table]
    extensions: dict[str, str]
    migrations: tuple[Migration, ...]
    named: frozenset[str]


def make(
    *, path: Path, server: Server, media_root: Path, secret_key: str | None, say: OnProgress
) -> Made:
    """Back up `server` and all files below `media_root` into the new folder `path`.

    The site may work meanwhile. `secret_key` comes along where it is given. Raises BackupError, and
    then leaves nothing.
    """
    if path.resolve().is_relative_to(media_root.resolve()):
        raise BackupError(f"{path} lies in {media_root}, which is backed up. Name another folder.")
    with told_in_words(path), _whole(path) as folder:
        postgresql, database = _dump(server, folder, say)
        dump = files.look_at(folder / manifest.DUMP, name=manifest.DUMP)
        kept, gone, links = _copied(media_root, folder / manifest.FILES, say)
        if secret_key is not None:
            files.write(folder / manifest.SECRET_KEY, secret_key.encode())
        noted = Manifest(
            version=product.version(),
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            postgresql=postgresql,
            extensions=database.extensions,
            migrations=database.migrations,
            tables=database.tables,
            settings=product.noted_settings(),
            dump=dump,
            files=kept,
            secret_key=None
            if secret_key is None
            else files.look_at(folder / manifest.SECRET_KEY, name=manifest.SECRET_KEY),
            lost=tuple(sorted(gone | database.named.difference(file.path for file in kept))),
            links=links,
        )
        noted.write(folder)
    return Made(path, noted)


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A private folder that gets the name `path` once it is whole and on the disk."""
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
        files.sync_folders(folder)
        folder.rename(path)
        files.sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _dump(server: Server, folder: Path, say: OnProgress) -> tuple[str, _Database]:
    """Write the dump, and give the server's version and what the same snapshot holds."""
    with server.connect() as connection:
        version = connection.info.server_version
        program = program_for("pg_dump", major=version // 10000)
        say(f"database {server.name} with pg_dump {program.version}")
        with _reading(connection):
            ((snapshot,),) = connection.execute("SELECT pg_export_snapshot()").fetchall()
            target = folder / manifest.DUMP
            words = [*_DUMP, f"--snapshot={snapshot}", f"--file={target}"]
            with running(program, words, server):
                database = _noted(connection)
        rows = sum(table.rows for table in database.tables.values())
        say(f"{counted(rows, 'row')} of {counted(len(database.tables), 'table')}")
        _sync(target)
        return f"{version // 10000}.{version % 10000}", database


@contextmanager
def _reading(connection: Connection) -> Iterator[None]:
    """One snapshot of the database for all that is read. Raises BackupError."""
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


def _noted(connection: Connection) -> _Database:
    tables = contents.tables(connection)
    migrations: list[tuple[Any, ...]] = []
    if "django_migrations" in tables:
        applied = "SELECT app, name FROM django_migrations ORDER BY app, name"
        migrations = connection.execute(applied).fetchall()
    extensions = connection.execute("SELECT extname, extversion FROM pg_extension ORDER BY 1")
    return _Database(
        tables=tables,
        extensions=dict(extensions.fetchall()),
        migrations=tuple((app, name) for app, name in migrations),
        named=frozenset(_named(connection)),
    )


def _named(connection: Connection) -> Iterator[str]:
    for table, column in product.file_columns():
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


def _copied(
    media_root: Path, target: Path, say: OnProgress
) -> tuple[tuple[Record, ...], set[str], tuple[str, ...]]:
    """The files that were copied, those that were deleted meanwhile, and what is no file.

    After the dump: a file that comes between the two is one too many, and none is missing.
    """
    target.mkdir(mode=0o700)
    kept, gone, links = [], set(), []
    for path, is_plain in files.below(media_root):
        if not is_plain:
            links.append(path)
            continue
        try:
            kept.append(files.copy(media_root / path, target / path, path=path))
        except FileNotFoundError:
            gone.add(path)
    say(f"{counted(len(kept), 'file')}, {counted(sum(record.size for record in kept), 'byte')}")
    return tuple(kept), gone, tuple(links)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
