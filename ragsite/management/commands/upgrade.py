"""`manage.py upgrade`: the database of an earlier release made one of this release."""

import sys
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path

from django.conf import settings
from django.db import connection

from common.console import CommandOutput, Options, ServiceCommand, add_json_option
from common.text import pluralized
from ragsite import backup
from ragsite.shards import prepare_shard
from ragsite.upgrade import Item, report, upgrade

STOP_THE_SITE = 1
BLOCKED = 2
PROBLEMS = 3


class Command(ServiceCommand):
    stays_in_main = True
    # They need the tables of this release.
    requires_system_checks = []

    help = (
        "Upgrade the database of an earlier release in steps, while its site works, up to where it"
        " must be stopped; then check it. Run it again after whatever interrupted it. Exit code: 0"
        " done, or with --check ready; 1 stop the site and run it again, which takes seconds; 2"
        " not possible, or cut off; 3 done, with problems."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing: before an upgrade versions, migrations, disk, processes and"
            " backup; after it the indexes, `validate` and a search",
        )
        parser.add_argument(
            "--backup",
            type=Path,
            metavar="PATH",
            help="the backup to go back to; made first where the folder does not exist yet",
        )
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        path = options["backup"].absolute() if options["backup"] else None
        if path and not path.exists() and not options["check"]:
            backup.create_backup(
                path=path,
                server=backup.Server.of(connection),
                media_root=Path(settings.MEDIA_ROOT),
                secret_key=None,
                say=say,
            )
        before = report(backup=path)
        is_blocked = any(item.state == "blocked" for item in before)
        if options["check"] or is_blocked:
            return _output(before, {}, code=BLOCKED if is_blocked else _code(before))
        for item in before:
            say(_line(item))
        done = upgrade(say=say)
        if done.running:
            return _output(
                [],
                asdict(done),
                f"{pluralized(done.applied, 'migration')} applied in {done.seconds} s. Now stop the"
                f" site ({'; '.join(done.running)}) and run `manage.py upgrade` again: the other"
                f" {done.left} take seconds.",
                code=STOP_THE_SITE,
            )
        for shard in settings.DATABASE_SHARDS:
            prepare_shard(shard, say=say)
        say("migrated: the site may be started while this is checked")
        after = report()
        return _output(
            after,
            asdict(done),
            f"{pluralized(done.applied, 'migration')} applied in {done.seconds} s; this is the"
            f" database of ragsite {settings.RAGSITE_VERSION}",
            code=_code(after),
        )


def say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr, flush=True)


def _code(items: list[Item]) -> int:
    """A report before an upgrade warns of what a person decides; after it, nothing may be wrong."""
    is_after = any(item.subject == "search" for item in items)
    return PROBLEMS if is_after and any(item.state != "ok" for item in items) else 0


def _output(items: list[Item], data: dict[str, object], *lines: str, code: int) -> CommandOutput:
    content = {**data, "checks": [asdict(item) for item in items], "code": code}
    return CommandOutput(content, [*map(_line, items), *lines], code=code)


def _line(item: Item) -> str:
    mark = {"ok": "", "warning": "warning: ", "blocked": "not possible: "}[item.state]
    return f"{item.subject}: {mark}{item.detail}"
