"""`manage.py backup PATH`: database, uploaded files and a manifest, in one folder."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from common.errors import RagsiteError
from common.text import pluralized
from ragsite import backup

FATAL = 2


class Command(BaseCommand):
    # A wrong setting of a model or a limit is no reason to have no backup.
    requires_system_checks = ()

    help = (
        "Write a dump of the database, the uploaded files and a manifest with counts and hashes to"
        " a new folder, for `manage.py restore`. The site may run meanwhile. The embedded database"
        " is not migrated first. Exit code: 0 written, 2 not, and nothing is left."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a folder that does not exist yet")
        parser.add_argument(
            "--with-secret-key",
            action="store_true",
            help="with what sessions are signed with: keep it as you would a password",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        started, path = perf_counter(), options["path"].absolute()
        try:
            noted = backup.create_backup(
                path=path,
                server=backup.Server.of(connection),
                media_root=Path(settings.MEDIA_ROOT),
                secret_key=settings.SECRET_KEY if options["with_secret_key"] else None,
                say=lambda what: print(f"ragsite: {what}", file=sys.stderr),
            )
        except RagsiteError as error:
            raise CommandError(str(error), returncode=FATAL) from error
        seconds = round(perf_counter() - started, 3)
        if options["json"]:
            content = {
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
            }
            self.stdout.write(json.dumps(content))
            return
        for name in noted.lost:
            self.stdout.write(f"not there any more: {name}")
        for name in noted.links:
            self.stdout.write(f"left out, no file: {name}")
        self.stdout.write(
            f"{path}: {pluralized(noted.rows, 'row')}, {pluralized(len(noted.files), 'file')},"
            f" {pluralized(noted.size, 'byte')}, {seconds} s"
        )
