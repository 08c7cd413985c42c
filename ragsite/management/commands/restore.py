"""`manage.py restore PATH`: restore a backup, check it before, compare and validate after."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, connections

from common.console import FATAL, CommandOutput, Options, ServiceCommand, add_json_option
from common.shards import MAIN, on_shard
from common.text import pluralized
from documents.management.commands.validate import report_as_dict
from documents.validation import ValidationReport, validate
from ragsite import backup
from ragsite.backup import RestoreMismatch, RestoreResult
from ragsite.bootstrap import pending_migrations
from ragsite.management.commands.backup import MAIN_FOLDER
from ragsite.shards import detach_shards, prepare_shard

PROBLEMS = 3


class Command(ServiceCommand):
    stays_in_main = True
    requires_system_checks = []

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
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        path = options["path"].absolute()
        if (path / MAIN_FOLDER).is_dir():
            return self._restore_shards(path, options)
        return self._restore(path, MAIN, options)

    def _restore_shards(self, path: Path, options: Options) -> CommandOutput:
        """Each server's backup into that server, then accounts are copied to them again."""
        there = {each.name for each in path.iterdir() if each.is_dir()} - {MAIN_FOLDER}
        if there != set(settings.DATABASE_SHARDS):
            raise CommandError(
                f"The backup is of the shards {', '.join(sorted(there)) or 'none'}: name the same"
                " ones in DATABASE_SHARD_URLS, each an empty database.",
                returncode=FATAL,
            )
        detach_shards()
        outputs = [self._restore(path / MAIN_FOLDER, MAIN, options)]
        for shard in settings.DATABASE_SHARDS:
            outputs.append(self._restore(path / shard, shard, options))
            prepare_shard(shard, say=say)
        return CommandOutput(
            [output.data for output in outputs],
            [line for output in outputs for line in output.lines],
            code=max(output.code for output in outputs),
        )

    def _restore(self, path: Path, shard: str, options: Options) -> CommandOutput:
        try:
            noted = backup.checked_manifest(path, say=say)
            connections.close_all()  # else this process would be taken for a site that runs
            done = backup.restore_backup(
                folder=path,
                noted=noted,
                server=backup.Server.of(connections[shard or DEFAULT_DB_ALIAS]),
                media_root=None if shard else Path(settings.MEDIA_ROOT),
                replace=options["replace"],
                say=say,
            )
        except RestoreMismatch as error:
            if options["json"]:
                self.print_json({"restored": False, "differs": error.differences})
            message = "\n  ".join([str(error), *error.differences])
            raise CommandError(message, returncode=FATAL) from error
        key = backup.restore_secret_key(path, done.manifest, say=say)
        with on_shard(shard, is_alone=True):
            migrations = pending_migrations()
            if migrations:
                say(f"applying {migrations} migrations")
            # Also without pending migrations: it grants what a dump does not hold.
            call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)
            say("validating")
            report = validate()
        problems = pluralized(len(report.findings), "problem")
        return CommandOutput(
            _content(done, migrations, report) | {"secret_key": key},
            [
                *(
                    f"setting {name}: {then} in the backup, {now} here"
                    for name, (then, now) in done.settings.items()
                ),
                *(f"not in the backup: {name}" for name in noted.lost),
                *map(str, report.findings),
                f"{pluralized(noted.rows, 'row')} of {pluralized(len(noted.tables), 'table')} and"
                f" {pluralized(len(noted.files), 'file')} as they were at {noted.made_at},"
                f" {done.seconds} s; {'clean' if report.is_clean else problems}",
            ],
            code=0 if report.is_clean else PROBLEMS,
        )


def say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)


def _content(done: RestoreResult, migrations: int, report: ValidationReport) -> dict[str, Any]:
    """The restore as data for JSON output."""
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
        "validation": report_as_dict(report),
        "seconds": done.seconds,
    }
