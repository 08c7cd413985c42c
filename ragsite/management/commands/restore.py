"""`manage.py restore PATH`: what `backup` wrote, checked before, compared and validated after."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections

from common.errors import RagsiteError
from common.wording import counted
from documents.management.commands.validate import content_of
from documents.validation import Report, validate
from ragsite import backup
from ragsite.backup import Restored, keys
from ragsite.backup.restoring import NotTheSame
from ragsite.database import pending

FATAL = 2
PROBLEMS = 3


class Command(BaseCommand):
    requires_system_checks = ()

    help = (
        "Restore what `manage.py backup` wrote into an empty database and an empty MEDIA_ROOT. The"
        " backup is checked byte by byte before; after it every table is compared by its rows and"
        " its hash, migrated where the backup is older, and validated. Stop the site first. Exit"
        " code: 0 restored and clean, 2 not restored, 3 restored, and `validate` found problems."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="the folder of the backup")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="put it in the place of what is there, which is gone once all is restored",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = _restored(options["path"].absolute(), replace=options["replace"])
        except NotTheSame as error:
            if options["json"]:
                self.stdout.write(json.dumps({"restored": False, "differs": error.differences}))
            message = "\n  ".join([str(error), *error.differences])
            raise CommandError(message, returncode=FATAL) from error
        except RagsiteError as error:
            raise CommandError(str(error), returncode=FATAL) from error
        key = keys.put_in_place(options["path"].absolute(), done.manifest, say=say)
        migrations = pending()
        if migrations:
            say(f"applying {migrations} migrations")
        # Where there are none, too: it grants what a dump does not hold.
        call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)
        say("validating")
        report = validate()
        if options["json"]:
            content = _content(done, migrations, report) | {"secret_key": key}
            self.stdout.write(json.dumps(content, ensure_ascii=False))
        else:
            self._print(done, report)
        if not report.is_clean:
            sys.exit(PROBLEMS)

    def _print(self, done: Restored, report: Report) -> None:
        noted = done.manifest
        for name, (then, now) in done.settings.items():
            self.stdout.write(f"setting {name}: {then} in the backup, {now} here")
        for name in noted.lost:
            self.stdout.write(f"not in the backup: {name}")
        for finding in report.findings:
            self.stdout.write(str(finding))
        self.stdout.write(
            f"{counted(noted.rows, 'row')} of {counted(len(noted.tables), 'table')} and"
            f" {counted(len(noted.files), 'file')} as"
            f" they were at {noted.made_at}, {done.seconds} s;"
            f" {'clean' if report.is_clean else counted(len(report.findings), 'problem')}"
        )


def say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)


def _restored(path: Path, *, replace: bool) -> Restored:
    noted = backup.checked(path, say=say)
    connections.close_all()  # else this process would be taken for a site that runs
    return backup.restore(
        folder=path,
        noted=noted,
        server=backup.Server.of(connection),
        media_root=Path(settings.MEDIA_ROOT),
        replace=replace,
        say=say,
    )


def _content(done: Restored, migrations: int, report: Report) -> dict[str, Any]:
    """What a program wants to know of a restore."""
    noted = done.manifest
    return {
        "restored": True,
        "version": noted.version,
        "made_at": noted.made_at,
        "rows": noted.rows,
        "tables": len(noted.tables),
        "files": len(noted.files),
        "bytes": noted.size,
        "migrations_applied": migrations,
        "settings": {name: {"then": a, "now": b} for name, (a, b) in done.settings.items()},
        "lost": list(noted.lost),
        "validation": content_of(report),
        "seconds": done.seconds,
    }
