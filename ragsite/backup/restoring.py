"""Restoring a checked backup: files beside, database compared with the manifest, then in place."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from common.wording import counted
from ragsite.backup import contents, manifest, placing, product, target
from ragsite.backup.errors import BackupError, told_in_words
from ragsite.backup.files import OnProgress
from ragsite.backup.manifest import Manifest
from ragsite.backup.programs import Program, program_for, running
from ragsite.backup.server import Connection, Server

#: All or nothing. What needs an owner, a grantee or a superuser is left to `migrate`.
_RESTORE = (
    *("--exit-on-error", "--single-transaction"),
    *("--no-owner", "--no-privileges", "--no-comments"),
)


class NotTheSame(BackupError):
    """What was restored is not what was backed up; `differences` tells of each table."""

    def __init__(self, message: str, differences: list[str]) -> None:
        super().__init__(message)
        self.differences = differences


@dataclass(frozen=True, slots=True)
class Restored:
    """Done, and the same as the backup by counts and hashes. `settings` are those that differ from
    the backup's, by name: then and now."""

    manifest: Manifest
    settings: dict[str, tuple[Any, Any]]
    seconds: float


def restore(
    *,
    folder: Path,
    noted: Manifest,
    server: Server,
    media_root: Path,
    replace: bool,
    say: OnProgress,
) -> Restored:
    """Restore the checked backup in `folder` into `server` and `media_root`. The tables are then
    those of the version that made it: migrate.

    Both must be empty unless `replace`; what they held stays until the backup is in its place, and
    is put back where it does not come to that. Raises BackupError.
    """
    started = time.monotonic()
    with server.connect() as connection, target.alone(connection):
        program = _program(connection, noted)
        target.check(connection, replace=replace)
        with told_in_words(media_root):
            placing.check(media_root, replace=replace)
            source = folder / manifest.FILES
            with placing.placed(source, noted.files, media_root), target.set_aside(connection):
                say(f"{counted(len(noted.files), 'file')} copied")
                _load(folder / manifest.DUMP, program, server, say)
                _compare(connection, noted, say)
                connection.execute("ANALYZE")
    return Restored(noted, _other_settings(noted), round(time.monotonic() - started, 3))


def _program(connection: Connection, noted: Manifest) -> Program:
    """The program that reads the dump and speaks to this server. Raises BackupError."""
    major = connection.info.server_version // 10000
    if major < noted.postgresql_major:
        raise BackupError(
            f"The backup was made on PostgreSQL {noted.postgresql}, and this server is PostgreSQL"
            f" {major}: restore into PostgreSQL {noted.postgresql_major} or later."
        )
    return program_for("pg_restore", major=major)


def _load(dump: Path, program: Program, server: Server, say: OnProgress) -> None:
    say(f"database {server.name} with pg_restore {program.version}")
    with running(program, [*_RESTORE, dump], server):
        pass


def _compare(connection: Connection, noted: Manifest, say: OnProgress) -> None:
    say("comparing with the manifest")
    try:
        here = contents.tables(connection, but=target.ASIDE)
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise BackupError(f"What was restored cannot be read: {said}.") from error
    if found := contents.differences(noted.tables, here):
        raise NotTheSame(
            f"What was restored is not what was backed up: {len(found)} of {len(noted.tables)}"
            " tables differ. Nothing was changed here.",
            found,
        )


def _other_settings(noted: Manifest) -> dict[str, tuple[Any, Any]]:
    now = json.loads(json.dumps(product.noted_settings()))
    return {
        name: (then, now.get(name))
        for name, then in noted.settings.items()
        if then != now.get(name)
    }
