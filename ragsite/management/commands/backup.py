"""`manage.py backup PATH`: database, uploaded files and a manifest, in one folder."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

from django.conf import settings
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from common.console import CommandOutput, Options, ServiceCommand, add_json_option
from common.text import pluralized
from ragsite import backup
from ragsite.backup.manifest import Manifest

#: Of the main database, where a backup has one folder for each server.
MAIN_FOLDER = "main"


class Command(ServiceCommand):
    stays_in_main = True
    # A wrong setting of a model or a limit is no reason to have no backup.
    requires_system_checks = []

    help = (
        "Write a dump of the database, the uploaded files and a manifest with counts and hashes to"
        " a new folder, for `manage.py restore`; of a site with shards a folder with one of each"
        " server. The site may run meanwhile. The embedded database"
        " is not migrated first. Exit code: 0 written, 2 not, and nothing is left."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a folder that does not exist yet")
        parser.add_argument(
            "--with-secret-key",
            action="store_true",
            help="with what sessions are signed with: keep it as you would a password",
        )
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        started, path = perf_counter(), options["path"].absolute()
        secret_key = settings.SECRET_KEY if options["with_secret_key"] else None
        whole: dict[str, Any] = {"media_root": Path(settings.MEDIA_ROOT), "secret_key": secret_key}
        if not settings.DATABASE_SHARDS:
            noted = _back_up(path, connection, **whole)
        else:
            with backup.backup_errors(path), backup.unfinished_folder(path) as folder:
                for shard in settings.DATABASE_SHARDS:
                    _back_up(folder / shard, connections[shard])
                # Last, so that it has the accounts that the others refer to.
                noted = _back_up(folder / MAIN_FOLDER, connection, **whole)
        seconds = round(perf_counter() - started, 3)
        return CommandOutput(
            {
                "path": str(path),
                "version": noted.version,
                "postgresql": noted.postgresql,
                "rows": noted.rows,
                "files": len(noted.files),
                "bytes": noted.size,
                "with_secret_key": noted.secret_key is not None,
                "lost": list(noted.lost),
                "links": list(noted.links),
                "seconds": seconds,
            },
            [
                *(f"not there any more: {name}" for name in noted.lost),
                *(f"left out, no file: {name}" for name in noted.links),
                f"{path}: {pluralized(noted.rows, 'row')},"
                f" {pluralized(len(noted.files), 'file')}, {pluralized(noted.size, 'byte')},"
                f" {seconds} s",
                *(f"and shard {shard}" for shard in settings.DATABASE_SHARDS),
            ],
        )


def _back_up(
    path: Path,
    server: BaseDatabaseWrapper,
    *,
    media_root: Path | None = None,
    secret_key: str | None = None,
) -> Manifest:
    return backup.create_backup(
        path=path,
        server=backup.Server.of(server),
        media_root=media_root,
        secret_key=secret_key,
        say=lambda what: print(f"ragsite: {what}", file=sys.stderr),
    )
